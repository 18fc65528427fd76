"""The page of a job: its HTML, drawings, style and script, for the coordinator and ``ytf ui``.

Everything here is made from the document of ``status.json``. The room opens no connection and asks nobody.
"""

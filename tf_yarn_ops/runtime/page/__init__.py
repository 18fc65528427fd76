"""The page of a job: its HTML, drawings, style and script, for the coordinator, ``ytf ui`` and ``ytf report --html``.

Everything here is made from the document of ``status.json``. The room opens no connection and asks nobody.
"""

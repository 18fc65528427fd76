"""Environments that travel: pack an interpreter with its packages into an archive, check one, build one on request.

Input: a file of requirements, a project, an environment or nothing. Output: a ``.tar.gz`` for ``--environment``.
"""

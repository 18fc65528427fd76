"""Environments that travel: pack an interpreter with its packages into an archive, check one, build one on request.

In comes a file of requirements, a project, an environment or nothing; out comes a ``.tar.gz`` for ``--environment``.
"""

"""Our files in the cluster's file system: the shared cache, the directory of each application, and their clean-up.

In come local files and URIs; out go local resources as YARN localizes them (URL, size, timestamp, visibility).
This room knows no jobs, and never overwrites a file.
"""

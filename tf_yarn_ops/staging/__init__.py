"""Our files in the cluster's file system: the shared cache, the directory of each application, and their clean-up.

Input: local files and URIs. Output: local resources as YARN localizes them (URL, size, timestamp, visibility).
This room knows no jobs, and never overwrites a file.
"""

"""The door of the browser: ``ytf ui``, pages over the history and the live jobs, on this machine only.

Input: the records of ended jobs and the reports of live ones. Output: pages. This room never submits, kills or changes
anything, and never listens on another address than the loopback.
"""

"""The coordinator, one process in the application master: rendezvous, lifecycle, verdict, page.

Input: messages of the agents and Skein's list of containers. Output: the cluster spec, restarts and one verdict.
This room never runs code of the user, and never imports `runtime.agent`.
"""

"""The diagnosis of a cluster: what works from this machine, what does not, and what to do about it.

Input: the way to a cluster, as the other commands take it. Output: results, one for each check of the table, each
with what to do. This room never prints, and it submits an application only on request.
"""

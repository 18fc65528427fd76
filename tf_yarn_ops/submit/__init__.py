"""From a `JobSpec` to an application that YARN has accepted, over HTTP or through Skein's Java client.

Input: a valid job, a cluster and an application id. Output: the Skein specification, the staged files and
YARN's answer. This room never waits for the end of an application, and never decides whether a job may be
submitted again.
"""

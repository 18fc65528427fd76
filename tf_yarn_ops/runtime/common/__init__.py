"""The agreement of agents, coordinator and clients: reasons, roles, the report, the job file, the messages.

Input: plain values. Output: the same values in frozen types, and back. This room never opens a connection and never
imports another room: it uses the standard library of Python 3.9 only.
"""

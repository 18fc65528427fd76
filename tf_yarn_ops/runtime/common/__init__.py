"""What both ends in the cluster and all readers outside agree on: reasons, roles, the report, the job file, the wire.

In come plain values; out go the same values in frozen types, and back. This room never opens a connection and never
imports another room: it uses the standard library of Python 3.9 only.
"""

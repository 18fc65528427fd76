"""What is asked for: one job as one frozen, valid value.

In come options, a document (YAML) or keyword arguments, as people write them; out goes a `JobSpec`, or
`SpecInvalid` with every fault of the request. This room never asks a cluster, reads no file but a job document,
and knows nothing of YARN.
"""

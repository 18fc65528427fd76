"""The request: one job as one frozen, valid value.

Input: options, a document (YAML) or keyword arguments, as people write them. Output: a `JobSpec`, or
`SpecInvalid` with every fault of the request. This room never asks a cluster, and reads only the files of job
documents.
"""

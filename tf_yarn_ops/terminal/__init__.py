"""The output of every door for people, and its handling of signals.

Input: reports and plain values. Output: lines of text, a table or JSON. This room sees `runtime.common` and `errors`
only, and never asks a cluster.
"""

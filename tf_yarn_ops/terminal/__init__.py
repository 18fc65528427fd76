"""The output of every door for people, and its handling of signals.

In come reports and plain values; out go lines of text, a table or JSON. This room sees `runtime.common` and `errors`
only, and never asks a cluster.
"""

"""What every door shows to a person, and how it notices a signal.

In come reports and plain values; out go lines of text, a table or JSON. This room sees `runtime.common` and `errors`
only, and never asks a cluster.
"""

"""What every door prints: reports, progress, the dry run; and how it notices a signal.

In come reports and plain values; out go lines of text, a table or JSON. This room sees `runtime.common` and
`errors` only, and never asks a cluster.
"""

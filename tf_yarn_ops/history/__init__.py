"""Jobs that have ended: find their records, read one, compare several.

In come a cluster and a query; out go summaries, records and comparisons. This room only reads: it never submits, and
never changes a record.
"""

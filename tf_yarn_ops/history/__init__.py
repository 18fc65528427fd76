"""Jobs that have ended: find their records, read one, compare several.

`records` holds paths, indexes and retention, `missing_record` writes what a coordinator could not; the rest only reads.
This room never submits, and never changes a record.
"""

"""The only door for the engines: submit a job, attach to it, follow it, kill it, list it.

In come a `JobSpec` and an `Identity`; out goes a `JobReport`. This room combines `submit` and `follow`, makes sure that
exactly one application trains for one identity, and never speaks HTTP itself.
"""

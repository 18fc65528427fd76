"""The only door for the engines: submit a job, attach to it, follow it, kill it, list it.

Input: a `JobSpec` and an `Identity`. Output: a `JobReport`. This room combines `submit` and `follow`, makes sure that
exactly one application trains for one identity, and never speaks HTTP itself.
"""

"""From an application id to a verdict: look, read logs, wait, kill.

Input: an application id and YARN's answers about it. Output: a `JobReport`, a log, or the end of the application.
This room never submits anything.
"""

"""From an application id to a verdict: look, read logs, wait, kill.

In come an application id and YARN's answers about it; out go a `JobReport`, a log, or the end of the application.
This room never submits anything.
"""

"""The agent, one process in every container: it holds a port, registers, runs the command and reports its end.

Input: the job file and messages of the coordinator. Output: the processes of the user and their exit codes.
This room never decides about the job, and never imports `runtime.master`.
"""

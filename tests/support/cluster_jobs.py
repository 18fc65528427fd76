"""A small job for the real cluster, on the interpreter of the tests."""

import sys

from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


def job(command="true", **values):
    tasks = values.pop("tasks", {"worker": TaskSpec(instances=values.pop("instances", 1), memory=256)})
    return JobSpec(tasks=tasks, command=command, environment=Environment.parse(f"venv://{sys.prefix}"), **values)

"""A small job for the real cluster, on the interpreter of the tests."""

import sys

from support.waiting import until
from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


def job(command="true", **values):
    tasks = values.pop("tasks", {"worker": TaskSpec(instances=values.pop("instances", 1), memory=256)})
    return JobSpec(tasks=tasks, command=command, environment=Environment.parse(f"venv://{sys.prefix}"), **values)


def until_it_runs(launcher, application_id):
    """Wait until all tasks of a job run."""

    def tasks_run():
        report = launcher.report(application_id)
        assert report.reason is None, report
        return report.tasks and all(task.state == "running" for task in report.tasks)

    until(tasks_run, 120)


def until_its_log_is_stored(launcher, application_id):
    """Wait until YARN has stored the logs of a job that has ended: each `ytf logs` that is too early costs a process."""
    resourcemanager = launcher.session.resourcemanager
    until(lambda: resourcemanager.get(application_id).get("logAggregationStatus") == "SUCCEEDED", 120)

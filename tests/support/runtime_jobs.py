"""Jobs for the runtime without Java, and their tasks in a report."""

from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

QUICK = Deadlines(heartbeat=5, stop_grace=2)


FOREVER = "exec tail -f /dev/null"


def job(command, ps=True, workers=2, **fields):
    tasks = {"worker": TaskSpec(instances=workers)}
    if ps:
        tasks = {"ps": TaskSpec(command=FOREVER), **tasks}
    return JobSpec(command=command, **{"tasks": tasks, "deadlines": QUICK, **fields})


def task(report, name):
    return next(t for t in report.tasks if t.task == name)

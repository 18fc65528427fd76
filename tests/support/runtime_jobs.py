"""Jobs for the runtime without Java, and their tasks in a report."""

from pathlib import Path

from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

QUICK = Deadlines(stop_grace=2)
#: A busy machine leaves an agent silent for seconds, so only tests of silence have this deadline.
SHORT_HEARTBEAT = Deadlines(heartbeat=5, stop_grace=2)
FOREVER = "exec tail -f /dev/null"


def job(command, ps=True, workers=2, **fields):
    tasks = {"worker": TaskSpec(instances=workers)}
    if ps:
        tasks = {"ps": TaskSpec(command=FOREVER), **tasks}
    return JobSpec(command=command, **{"tasks": tasks, "deadlines": QUICK, **fields})


def task(report, name):
    return next(t for t in report.tasks if t.task == name)


def processes_of(am):
    """Every living process whose environment holds this job's application id and folder."""
    left = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (
                str(am.folder).encode() in (entry / "environ").read_bytes()
                and b"YTF_APPLICATION_ID" in (entry / "environ").read_bytes()
                and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            ):
                left.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return left

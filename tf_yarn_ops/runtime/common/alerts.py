"""What deserves attention at a running job: `find_alerts`, a pure function from the document of ``status.json``.

The page, ``ytf status``, ``--wait`` and the lists show its sentences; the coordinator makes them, once for all.
"""

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .clock import duration, utc_clock
from .report import Alert, list_names

#: Seconds without CPU, output and metrics after which a task counts as silent.
SILENT_SECONDS = 300.0
#: Seconds without them after which no task counts as training, and a job may only wait for servers.
LEAST_IDLE = 20.0
#: Seconds after which a wait for containers, and a pause of the metrics, deserve a look.
WAIT_SECONDS, METRICS_PAUSE = 60.0, 600.0
#: The part of its memory from which a task may be killed soon; the part of a deadline that is near its end; the part of
#: the others' steps below which a task is slow.
FULL, NEAR, SLOW = 0.9, 0.9, 0.5
#: Seconds for which a command runs before it counts as slow; samples come every 5 s, and a program first warms up.
SLOW_SECONDS = 60.0
#: The metric with the number of steps of the whole training.
STEPS = "steps"


def find_alerts(document: Mapping[str, Any]) -> List[Alert]:
    """Return what deserves attention, the most urgent first; nothing of a job that has ended.

    Parameters
    ----------
    document : mapping
        Of ``status.json``; keys may be missing.
    """
    if document.get("reason") or not document.get("at"):
        return []
    every = [task for task in document.get("tasks") or () if task.get("state") == "running"]
    running = [task for task in every if not task.get("silent_seconds")]
    return [
        *_out_of_contact(every),
        *(_after_chief(document, every) or _silent(running)),
        *_full(running),
        *_unisolated(running),
        *_slow(document, running),
        *_waiting(document),
        *_deadlines(document),
        *_metrics(document, running),
        *_restarts(document),
    ]


def _out_of_contact(running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    silent = {task["task"]: task["silent_seconds"] for task in running if task.get("silent_seconds")}
    if silent:
        yield Alert(
            "contact",
            f"{list_names([*silent])}: silent for {duration(min(silent.values()))}; the node may be cut off. After "
            "--heartbeat_timeout the task counts as lost.",
            tuple(silent),
        )


def all_idle(tasks: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether there are running tasks, and all have been idle for `LEAST_IDLE`.

    Parameters
    ----------
    tasks : iterable of mapping
        Of ``status.json``. A task without a sample is not idle.
    """
    idle = [(task.get("usage") or {}).get("idle_seconds") or 0.0 for task in tasks if task.get("state") == "running"]
    return bool(idle) and min(idle) >= LEAST_IDLE


def _after_chief(document: Mapping[str, Any], running: Sequence[Mapping[str, Any]]) -> List[Alert]:
    """Name tasks that may only serve: TensorFlow's servers never end by themselves."""
    chief = any(task["task"] == "chief:0" and task.get("state") == "succeeded" for task in document.get("tasks") or ())
    names = tuple(task["task"] for task in running if task["task"].partition(":")[0] not in ("ps", "tensorboard"))
    if not chief or not names or not all_idle(running):
        return []
    return [
        Alert(
            "chief",
            f"chief:0 has succeeded; the job waits for {list_names(names)}, without any use of CPU. If it only waits "
            "for servers, give --success chief.",
            names,
        )
    ]


def _silent(running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    """A parameter server and an evaluator may have nothing to do; a task that trains may not."""
    trains = {
        task["task"]: (task.get("usage") or {}).get("idle_seconds") or 0.0
        for task in running
        if task["task"].partition(":")[0] not in ("ps", "evaluator", "tensorboard")
    }
    silent = [name for name, seconds in trains.items() if seconds >= SILENT_SECONDS]
    if silent:
        least = duration(min(trains[name] for name in silent))
        others = len(trains) - len(silent)
        while_others = f", while {others} other task{'s go' if others > 1 else ' goes'} on" if others else ""
        yield Alert(
            "silent",
            f"{list_names(silent)}: no CPU, no output and no metrics for {least}{while_others}. "
            "The program may hang; ytf stack shows where.",
            tuple(silent),
        )


def _full(running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    by_type: Dict[str, List[Tuple[float, str]]] = {}
    for task in running:
        used, given = (task.get("usage") or {}).get("memory_mib"), (task.get("given") or {}).get("memory_mib")
        if used and given and used >= FULL * given:
            by_type.setdefault(task["task"].partition(":")[0], []).append((used / given, task["task"]))
    for kind, full in by_type.items():
        option = "--tensorboard_memory" if kind == "tensorboard" else f"--task_memory {kind}:..."
        names = tuple(name for _, name in full)
        yield Alert(
            "memory",
            f"{list_names(names)}: {100 * max(full)[0]:.0f} % of the memory is in use, and YARN "
            f"kills at 100 %. Raise {option} for the next run.",
            names,
        )


def _unisolated(running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    """YARN isolates GPUs only by LinuxContainerExecutor with cgroups, or by Docker."""
    names = tuple(
        task["task"]
        for task in running
        if 0 < (task.get("given") or {}).get("gpus", 0) < ((task.get("usage") or {}).get("gpus") or 0)
    )
    if names:
        yield Alert(
            "gpus",
            f"{list_names(names)}: nvidia-smi shows more GPUs than YARN allocated; the node does not "
            "isolate them. Select each program's by CUDA_VISIBLE_DEVICES.",
            names,
        )


def _slow(document: Mapping[str, Any], running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    """Compare the steps of commands that have run for a while; a sample may be some seconds older than the others."""
    started = {
        task["task"]: task["started_at"]
        for task in running
        if task.get("started_at") and document["at"] - task["started_at"] >= SLOW_SECONDS
    }
    steps: Dict[str, float] = {}
    for item in document.get("series") or ():
        # A step from before the start is that of an earlier round.
        if item["task"] in started and (item.get("at") or 0.0) >= started[item["task"]]:
            steps[item["task"]] = max(item["step"], steps.get(item["task"], 0.0))
    if len(steps) < 3:
        return
    median = sorted(steps.values())[len(steps) // 2]
    slow = [name for name, step in steps.items() if step < SLOW * median]
    if slow:
        lowest = min(steps[name] for name in slow)
        yield Alert(
            "slow", f"{list_names(slow)}: at step {lowest:g}, where the median task is at {median:g}.", tuple(slow)
        )


def _waiting(document: Mapping[str, Any]) -> Iterator[Alert]:
    waiting = document.get("waiting") or {}
    waited = document["at"] - waiting.get("since", document["at"])
    if waited >= WAIT_SECONDS:
        names, tasks = waiting.get("tasks") or (), [item["task"] for item in document.get("tasks") or ()]
        missing = tuple(task for task in (name.partition(" ")[0] for name in names) if task in tasks)
        who = f"{len(missing)} of {len(tasks)} tasks are missing for" if missing else "The job waits for"
        yield Alert("waiting", f"{who} {duration(waited)}: {list_names(names)}.", missing)


def _deadlines(document: Mapping[str, Any]) -> Iterator[Alert]:
    for name, (since, until) in (document.get("deadlines") or {}).items():
        left = until - document["at"]
        if left <= (1 - NEAR) * (until - since):
            yield Alert(
                "deadline",
                f"The deadline --{name}_timeout ends the job in {duration(left)}, at {utc_clock(until)} UTC.",
            )


def _metrics(document: Mapping[str, Any], running: Sequence[Mapping[str, Any]]) -> Iterator[Alert]:
    last = max((item.get("at") or 0.0 for item in document.get("series") or ()), default=None)
    if last is not None and running and document["at"] - last >= METRICS_PAUSE:
        yield Alert("metrics", f"No metrics since {utc_clock(last)} UTC ({duration(document['at'] - last)}).")


def _restarts(document: Mapping[str, Any]) -> Iterator[Alert]:
    left = document.get("restarts_left")
    if left is not None and any((task.get("starts") or 0) > 1 for task in document.get("tasks") or ()):
        yield Alert(
            "restarts", f"The job has started again after a failure; {left or 'no'} restart{'s' * (left != 1)} left."
        )


def describe_progress(series: Iterable[Any], at: float) -> str:
    """Return ``step 300 of 1000, about 14 min 0 s left``, by the pace since the last start; empty if it is not known.

    Parameters
    ----------
    series : iterable of Series
        A program that wants an estimate writes ``steps`` beside ``step``.
    at : float
        Now, seconds since the epoch.
    """
    found = next((item for item in series if item.name == STEPS), None)
    if found is None or not 0 < found.step < found.value < float("inf"):
        return ""
    first_step, first_at = found.since or (found.step, found.at)
    done, took = found.step - first_step, found.at - first_at
    left = (found.value - found.step) * took / done - (at - found.at) if done > 0 and took > 0 else None
    return f"step {found.step:g} of {found.value:g}" + (
        f", about {duration(max(0.0, left))} left" if left is not None else ""
    )

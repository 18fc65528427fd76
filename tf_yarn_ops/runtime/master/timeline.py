"""What happened to each task and when, and what its processes use: the coordinator's memory for the page.

Events and samples come in; the facts of `common.status` go out. The memory is bounded, however often a task restarts.
"""

import time
from operator import itemgetter
from typing import Any, Dict, List, Mapping, Optional

from ..common.contract import Job, TaskId
from ..common.status import REQUESTED, RUNNING, Given, TaskEvent, Usage

#: Events that are kept of a task: the first ones and the last ones.
FIRST, LAST = 4, 36
#: Characters of a cause.
MAX_CAUSE = 300
_read_usage = itemgetter(*Usage._fields[1:])


class Timeline:
    """The events and the usage of all tasks.

    Parameters
    ----------
    job : Job
    began : float
        When the containers were requested, seconds since the epoch.

    Attributes
    ----------
    events : mapping of str to list of TaskEvent
        By task, oldest first.
    usage : mapping of str to Usage
        The last measurement by task.
    given : mapping of str to Given
    """

    def __init__(self, job: Job, began: float):
        self.events: Dict[str, List[TaskEvent]] = {
            str(task): [TaskEvent(REQUESTED, round(began, 3))] for task in job.tasks()
        }
        self.usage: Dict[str, Usage] = {}
        self.given = {
            str(TaskId(plan.type, index)): Given(plan.memory, plan.vcores, plan.gpus)
            for plan in job.services.values()
            if plan.memory
            for index in plan.indices
        }

    def note(self, task: TaskId, kind: str, *, at: Optional[float] = None, **facts: Any) -> None:
        """Add an event; no event of a task is earlier than the one before it.

        Parameters
        ----------
        task : TaskId
        kind : str
        at : float, optional
            Seconds since the epoch, by the clock of the task's node, which may be behind. Default: now.
        **facts
            The other fields of `TaskEvent`.
        """
        if facts.get("cause"):
            facts["cause"] = facts["cause"][:MAX_CAUSE]
        events = self.events[str(task)]
        at = round(time.time() if at is None else at, 3)
        events.append(TaskEvent(kind, max(at, events[-1].at), **facts))
        if len(events) > FIRST + LAST:
            del events[FIRST]

    def started(self, task: TaskId, host: str, round_number: int, cause: Optional[str] = None) -> None:
        """Note that a command runs; ``cause`` is that of its start, as in `Peer.cause`."""
        self.usage.pop(str(task), None)
        self.note(task, RUNNING, host=host, round=round_number, cause=cause)

    def measured(self, task: TaskId, sample: Mapping[str, Any]) -> None:
        """Take the usage of a message ``sample``."""
        self.usage[str(task)] = Usage(round(time.time(), 3), *_read_usage(sample))

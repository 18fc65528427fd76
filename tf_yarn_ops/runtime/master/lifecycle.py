"""The lifecycle of a job: `decide`, a pure function from events to decisions.

The coordinator passes an event (an agent registered, a command exited, a container was lost, a deadline passed);
`decide` returns the next state and the next action. After the verdict it changes nothing; what replaces a success (see
`Coordinator`) goes past it.
"""

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..common.contract import Job, TaskId
from ..common.reasons import Reason
from ..common.roles import CHIEF
from ..common.status import FAILED, LOST, PENDING, REGISTERED, RUNNING, SUCCEEDED

#: A command that fails within so many seconds of its start is a quick failure.
EARLY_SECONDS = 10.0
#: The name of the job's own budget, which the types without one share.
SHARED = ""
#: So many quick failures of fatal types in a row end the job, even if the budget allows more; one that excludes its
#: node starts the count again.
EARLY_FAILURES = 3
MAX_RESTART_BACKOFF = 300.0


class NodeFailures(NamedTuple):
    """Failures that count for one node's exclusion: their number, and the last one's reason, sentence and task."""

    number: int
    reason: Reason
    cause: str
    task: TaskId

    def __str__(self) -> str:
        return "%d failure%s, the last: %s" % (self.number, "s" * (self.number > 1), self.cause[:300])


class Verdict(NamedTuple):
    """The end of the job: its reason, a sentence, and the task whose failure ended it, if any.

    As an event it ends the job: a deadline passed, the coordinator cannot go on, or its output decides.
    """

    reason: Reason
    message: str
    task: Optional[TaskId] = None


class State(NamedTuple):
    """The present state of a job.

    Attributes
    ----------
    phases : mapping of TaskId to str
        PENDING (no agent yet, or it ends the command of the round before), REGISTERED (its agent waits), RUNNING (its
        start was sent, delays included), SUCCEEDED, FAILED (of a type that is not fatal, or with the verdict), LOST
        (waits for an agent like PENDING, after a loss).
    restarts_left, losses_left : mapping of str to int
        The two budgets, never below 0: the job's under `SHARED`, and those of the task types that have their own.
        Failures of fatal types spend the first, losses of `needed` types the second, a loss by OUT_OF_MEMORY none.
    restarts : int
        The failures, of all tasks, that led to a restart; the back-off doubles with each.
    quick_failures : mapping of TaskId or None to int
        Quick failures in a row: of each task if tasks are restarted alone, otherwise of the job (None). A failure that
        excludes its node sets it to 0.
    round : int
        The number of this publication of the cluster spec, from 1.
    published : bool
        Whether the cluster spec of this round has been published.
    preparing : bool
        Whether all tasks wait for the working folder of the output.
    failures : mapping of str to NodeFailures
        By node; that of the latest failure is the last.
    verdict : Verdict or None
    """

    phases: Mapping[TaskId, str]
    restarts_left: Mapping[str, int] = {SHARED: 0}
    losses_left: Mapping[str, int] = {SHARED: 0}
    restarts: int = 0
    quick_failures: Mapping[Optional[TaskId], int] = {}
    round: int = 1
    published: bool = False
    preparing: bool = False
    failures: Mapping[str, NodeFailures] = {}
    verdict: Optional[Verdict] = None


class Registered(NamedTuple):
    """An agent waits for its command."""

    task: TaskId


class Prepared(NamedTuple):
    """The working folder of the output is there."""


class Exited(NamedTuple):
    """A command ended, not stopped by its agent. ``code`` is 0 to 255, or 128 + n for signal n; ``cause`` a short text.

    ``node``, here and in `Lost`, counts its failures: ``host:port`` of the NodeManager's pages; empty counts none.
    ``reason`` of a failure is TASK_FAILED or OUT_OF_MEMORY.
    """

    task: TaskId
    code: int
    seconds: float
    cause: str = ""
    node: str = ""
    reason: Reason = Reason.TASK_FAILED


class Lost(NamedTuple):
    """A task has lost its container, its agent or its port; ``reason`` is a retryable one or OUT_OF_MEMORY."""

    task: TaskId
    reason: Reason
    cause: str
    node: str = ""


Event = Union[Registered, Prepared, Exited, Lost, Verdict]


class Decision(NamedTuple):
    """The next action of the coordinator.

    Attributes
    ----------
    action : str
        ``none``; ``publish`` the cluster spec and start the tasks; ``start`` the tasks, while the others go on;
        ``restart`` the cluster with a new round; ``finish``.
    tasks : tuple of TaskId
        Of ``publish`` the registered tasks that wait for no others; of ``start`` one task, or those that have waited
        for others.
    delay : float
        Seconds before the next start of the command; ``restart`` itself is immediate.
    cause : str
        The cause of ``restart`` and of the ``start`` of one task, for log and report; empty for those that have waited.
    replaced_task : TaskId or None
        The task that failed on an excluded node; it gives its container up before the action. That is ``restart``
        whatever the mode, or ``none`` for a task that `starts_alone`, whose next agent starts it without a back-off.
    """

    action: str
    tasks: Tuple[TaskId, ...] = ()
    delay: float = 0.0
    cause: str = ""
    replaced_task: Optional[TaskId] = None


NOTHING = Decision("none")


def initial_state(job: Job) -> State:
    """Return the state before the first event."""
    return State(
        phases=dict.fromkeys(job.tasks(), PENDING),
        restarts_left=_budget(job, "max_restarts"),
        losses_left=_budget(job, "max_container_losses"),
        preparing=job.commit is not None,
    )


def _budget(job: Job, name: str) -> Dict[str, int]:
    own = {kind: plan.budgets[name] for kind, plan in job.types.items() if name in plan.budgets}
    return {SHARED: job.restart[name], **own}


def _spend(budget: Mapping[str, int], task: TaskId) -> Optional[Dict[str, int]]:
    """Return a budget after an event of a task; None if nothing was left of it."""
    whose = task.type if task.type in budget else SHARED
    return {**budget, whose: budget[whose] - 1} if budget[whose] > 0 else None


def needed(job: Job, task_type: str) -> bool:
    """Return whether the cluster spec waits for tasks of a type: they are in the cluster spec, awaited or fatal."""
    plan = job.types[task_type]
    return plan.in_cluster or plan.awaited or plan.fatal


def missing(job: Job, state: State) -> List[TaskId]:
    """Return the `needed` tasks that are PENDING or LOST, without which no cluster spec is published."""
    return [task for task, phase in state.phases.items() if phase in (PENDING, LOST) and needed(job, task.type)]


def _may_start(job: Job, state: State, task: TaskId) -> bool:
    """Return whether all tasks have succeeded after which a task starts."""
    before = job.types[task.type].after
    return all(phase == SUCCEEDED for other, phase in state.phases.items() if other.type in before)


def may_be_a_consequence(job: Job, state: State, event: Exited) -> bool:
    """Return whether an exit may follow from the end of another task; one with a fatal code never does, nor a kill."""
    fails = event.code != 0 and event.code not in job.restart["fatal_exit_codes"] and event.reason is Reason.TASK_FAILED
    return fails and job.types[event.task.type].fatal and state.phases[event.task] == RUNNING


def excluded_nodes(job: Job, state: State) -> Dict[str, NodeFailures]:
    """Return the nodes of which no new container is taken, by their addresses.

    An agent that is there goes on until it is lost, or its command fails and is to be retried.
    """
    return {
        node: failures
        for node, failures in state.failures.items()
        if 0 < job.restart["exclude_node_after"] <= failures.number
    }


def decide(job: Job, state: State, event: Event) -> Tuple[State, Decision]:
    """Return the state after an event, and the next action.

    Parameters
    ----------
    job : Job
        Its ``restart["mode"]`` (``never``, ``task``, ``cluster``) is that of failures: the loss of a `needed` task
        restarts a published cluster in each, unless the task `starts_alone`.
    state : State
    event : Registered, Prepared, Exited, Lost or Verdict
        Late, repeated and impossible events change nothing.

    Returns
    -------
    state : State
    decision : Decision
    """
    if state.verdict is not None:
        return state, NOTHING
    if isinstance(event, Verdict):
        return _finish(state, event)
    if isinstance(event, Prepared):
        return _publish(job, state._replace(preparing=False))
    if event.task not in state.phases:
        return state, NOTHING
    if isinstance(event, Registered):
        return _registered(job, state, event)
    if isinstance(event, Exited):
        return _exited(job, state, event)
    return _lost(job, state, event)


def _registered(job: Job, state: State, event: Registered) -> Tuple[State, Decision]:
    if state.phases[event.task] not in (PENDING, LOST):
        return state, NOTHING
    if state.published and _may_start(job, state, event.task):
        return _with(state, event.task, RUNNING), Decision(
            "start", (event.task,), cause="its agent registered after the others"
        )
    return _publish(job, _with(state, event.task, REGISTERED))


def _publish(job: Job, state: State) -> Tuple[State, Decision]:
    """Publish the cluster spec, if nothing is missing for it."""
    if state.published or state.preparing or missing(job, state):
        return state, NOTHING
    state, decision = _release(job, state)
    return state._replace(published=True), decision._replace(action="publish")


def _release(job: Job, state: State) -> Tuple[State, Decision]:
    """Start the registered tasks for which nothing has to end first."""
    released = tuple(
        task for task, phase in state.phases.items() if phase == REGISTERED and _may_start(job, state, task)
    )
    state = state._replace(phases={**state.phases, **dict.fromkeys(released, RUNNING)})
    return state, Decision("start", released) if released else NOTHING


def _exited(job: Job, state: State, event: Exited) -> Tuple[State, Decision]:
    if state.phases[event.task] != RUNNING:
        return state, NOTHING
    if event.code == 0:
        return _go_on(job, _with(state, event.task, SUCCEEDED))
    what = "%s %s" % (event.task, event.cause or "failed with exit code %d" % event.code)
    state = _with(state, event.task, FAILED)
    if not job.types[event.task.type].fatal:
        return _go_on(job, state, Verdict(event.reason, what, event.task))
    state = _count(state, event, what)
    leaves = event.node in excluded_nodes(job, state)
    whose = event.task if job.restart["mode"] == "task" else None
    quick = state.quick_failures.get(whose, 0) + 1 if event.seconds < EARLY_SECONDS and not leaves else 0
    state = state._replace(quick_failures={**state.quick_failures, whose: quick})
    verdict = Verdict(event.reason, what, event.task)
    if event.reason is Reason.OUT_OF_MEMORY or not _is_retryable(job, event.code):
        return _finish(state, verdict)
    if quick >= EARLY_FAILURES:
        late = "%s; a task failed within %g seconds of its start %d times in a row" % (what, EARLY_SECONDS, quick)
        return _finish(state, verdict._replace(message=late))
    left = _spend(state.restarts_left, event.task)
    if left is None:
        spent = "; no restarts are left" if state.restarts else ""
        if event.task.type in state.restarts_left:
            spent = "; %s has no restarts left" % event.task.type
        return _finish(state, verdict._replace(message=what + spent))
    delay = min(MAX_RESTART_BACKOFF, job.restart["backoff"] * 2.0**state.restarts)
    state = state._replace(restarts_left=left, restarts=state.restarts + 1)
    if not leaves:
        if job.restart["mode"] == "task":
            return _with(state, event.task, RUNNING), Decision("start", (event.task,), delay, what)
        return _restart(job, state, what, delay)
    state = _with(state, event.task, LOST)
    state, decision = (state, NOTHING) if starts_alone(job, event.task) else _restart(job, state, what, delay)
    return state, decision._replace(replaced_task=event.task)


def _go_on(job: Job, state: State, failure: Optional[Verdict] = None) -> Tuple[State, Decision]:
    """Finish after an end that fails no job if it was the last awaited one; else start what has waited for it.

    FAILED are only tasks that are not fatal. One success is enough; without any the job ends with the last failure.
    """
    by_chief = job.success == "chief"
    awaited = [
        phase
        for task, phase in state.phases.items()
        if (task.type == CHIEF if by_chief else job.types[task.type].awaited)
    ]
    if not all(phase in (SUCCEEDED, FAILED) for phase in awaited):
        return _release(job, state) if state.published else (state, NOTHING)
    failed = awaited.count(FAILED)
    if failure and SUCCEEDED not in awaited:
        return _finish(state, failure._replace(message=failure.message + "; no awaited task has succeeded"))
    message = "%s ended with exit code 0." % ("The chief" if by_chief else "All awaited tasks")
    if failed:
        message = "All awaited tasks have ended; %d of them failed, which fatal: false allows." % failed
    return _finish(state, Verdict(Reason.SUCCEEDED, message))


def _lost(job: Job, state: State, event: Lost) -> Tuple[State, Decision]:
    if state.phases[event.task] in (SUCCEEDED, FAILED):
        return state, NOTHING
    what = "%s was lost: %s" % (event.task, event.cause)
    # Another container of the same size would be ended, too.
    harmless = state.published and not job.types[event.task.type].fatal
    if event.reason is Reason.OUT_OF_MEMORY and (harmless or not needed(job, event.task.type)):
        return _go_on(job, _with(state, event.task, FAILED), Verdict(event.reason, what, event.task))
    state = _with(state, event.task, LOST)
    if not needed(job, event.task.type):
        return state, NOTHING
    if event.reason in (Reason.CONTAINER_LOST, Reason.HEARTBEAT_LOST):  # the others say nothing about the node
        state = _count(state, event, what)
    left = _spend(state.losses_left, event.task)
    if event.reason is Reason.OUT_OF_MEMORY or left is None:
        own = left is None and event.task.type in state.losses_left
        spent = "; %s may lose no more containers" % event.task.type if own else ""
        return _finish(state, Verdict(event.reason, what + spent, event.task))
    state = state._replace(losses_left=left)
    if not state.published or starts_alone(job, event.task):
        return state, NOTHING
    return _restart(job, state, what, 0.0)


def starts_alone(job: Job, task: TaskId) -> bool:
    """Return whether the others go on while a task gets another container or port, after a loss or on an excluded node.

    The mode alone decides on its other failures.
    """
    return not job.types[task.type].in_cluster or (job.workers_rejoin and task.type == "worker")


def _count(state: State, event: Union[Exited, Lost], what: str) -> State:
    """Count a failure of a node."""
    if not event.node:
        return state
    others = dict(state.failures)  # the latest failure comes last
    before = others.pop(event.node, None)
    number = before.number + 1 if before else 1
    return state._replace(failures={**others, event.node: NodeFailures(number, event.reason, what, event.task)})


def _is_retryable(job: Job, code: int) -> bool:
    listed = not job.restart["retry_exit_codes"] or code in job.restart["retry_exit_codes"]
    return job.restart["mode"] != "never" and listed and code not in job.restart["fatal_exit_codes"]


def _restart(job: Job, state: State, cause: str, delay: float) -> Tuple[State, Decision]:
    """Begin a new round, in which ended tasks run again, except succeeded ones that others come after."""
    once = {name for plan in job.types.values() for name in plan.after}  # what others come after succeeds only once
    phases: Dict[TaskId, str] = {
        task: phase if phase == LOST or (phase == SUCCEEDED and task.type in once) else PENDING
        for task, phase in state.phases.items()
    }
    state = state._replace(phases=phases, published=False, round=state.round + 1)
    return state, Decision("restart", delay=delay, cause=cause)


def _with(state: State, task: TaskId, phase: str) -> State:
    return state._replace(phases={**state.phases, task: phase})


def _finish(state: State, verdict: Verdict) -> Tuple[State, Decision]:
    return state._replace(verdict=verdict), Decision("finish")

"""`Identity`: the training to which an application belongs; `decide_submission`: the table from YARN's list to the
next action.

Schedulers retry, crash and run the same task twice. The identity of a training stands in the YARN tags of its
applications, so that a later client finds the applications of an earlier one. Everything here is pure;
`launch.ensure` carries out the decisions.

References
----------
docs/design.md, section 4.
"""

import enum
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Fault, FaultCode
from ..follow.yarn_report import AM_SILENT, never_launched, read_yarn_report
from ..hadoop.resourcemanager import ENDED
from ..job.parts import Deadlines
from ..job.spec import JobSpec
from ..runtime.common.contract import APPLICATION_ID
from ..runtime.common.reasons import Reason
from ..runtime.common.report import VERDICT_TAG, JobReport
from ..validation import ValueFault, check_faults
from .growth import outgrew_memory

#: How often a job is submitted again because YARN could not launch its application master.
LAUNCH_RETRIES = 2
#: Seconds in which an application master learns from its ResourceManager that YARN has ended it.
NOTICE_SECONDS = 10.0
#: Seconds by which the clocks of two ResourceManagers may differ; above 600 NodeManagers start no container of theirs.
CLOCKS_DIFFER = 660.0
#: How the tags of an identity begin; YARN keeps all tags in lower case.
PREFIXES = ("tfy-", "tfyg-", "tfyd-", VERDICT_TAG)
#: The tag of generation and attempt.
_NUMBERS = re.compile(r"tfyg-(\d+)-(\d+)\Z")
#: What happens to the live applications of older generations.
PREVIOUS = IGNORE, WAIT, KILL = ("ignore", "wait", "kill")
_ID = re.compile(rf"{APPLICATION_ID}\Z")


class IdentityFault(FaultCode):
    """Fault codes for an identity, or with the tags of a job beside it."""

    NO_KEY = "it is empty; give a name for the training"
    RESERVED_TAG = "{given!r} would look like a tag of an identity, which begins with {prefixes}; choose another tag"


@dataclass(frozen=True)
class Run:
    """The engine's attempts of one generation, as the attempt that runs knows them.

    Parameters
    ----------
    retries : int
        The attempts that may follow a failure of this one.
    patience : float
        Seconds within which this attempt submits its application, and the next attempt starts after this one's end.
    folder : Path, optional
        A folder on this host that the engine deletes when no attempt follows. Default: none.
    """

    retries: int
    patience: float
    folder: Path | None = None


@dataclass(frozen=True)
class Identity:
    """The name of a training, its generation, and the attempt of the engine that asks for it.

    Parameters
    ----------
    key : str
        The name of the training, unique for all servers and all time, such as
        ``airflow https://host dag run task -1``. YARN knows only its hash.
    generation : int, optional
        At least 0; grows when a person asks to train again. Default 0.
    attempt : int, optional
        At least 0; grows with each retry of the engine. Default 0.
    deployment : str, optional
        The server that asks, or what several servers may share. Jobs of one deployment share a tag, so that one list
        call finds them all. Default: none.
    watched : bool, optional
        Whether the application must not run without its caller. Then the claim in the staging directory has the key, so
        that a later process of the deployment can find the application of a caller that has ended. Default False.
    previous : {"kill", "wait", "ignore"}, optional
        Whether this generation kills the older ones, starts after them, or runs beside all others. Default kill.
    run : Run, optional
        What the engine does after this attempt, for the newer generations that wait for it. Default: unknown.

    Raises
    ------
    SpecInvalid
        The key is empty, or a number is not a whole number of at least 0.
    """

    key: str
    generation: int = 0
    attempt: int = 0
    deployment: str = ""
    watched: bool = False
    previous: str = KILL
    run: Run | None = None

    def __post_init__(self) -> None:
        faults = [
            Fault(f"identity.{name}", ValueFault.NOT_A_COUNT, {"given": value, "least": 0})
            for name, value in (("generation", self.generation), ("attempt", self.attempt))
            if isinstance(value, bool) or not isinstance(value, int) or value < 0
        ]
        if not self.key:
            faults.append(Fault("identity.key", IdentityFault.NO_KEY))
        check_faults(faults)

    @property
    def hash(self) -> str:
        """Forty hexadecimal digits: the SHA-256 of deployment and key, shortened."""
        return _hash(f"{self.deployment}\0{self.key}")

    @property
    def tag(self) -> str:
        """The tag that every application of this training has."""
        return f"tfy-{self.hash}"

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags of an application that this identity submits, lower-case ASCII."""
        own = (self.tag, f"tfyg-{self.generation}-{self.attempt}")
        return (*own, deployment_tag(self.deployment)) if self.deployment else own

    def successor_of(self, ended: JobReport, listed: Iterable[Mapping[str, Any]]) -> str | None:
        """Return the live application in whose favour another one was killed; None if there is none.

        Parameters
        ----------
        ended : JobReport
            The report of the application that was killed.
        listed : iterable of mapping
            YARN's objects of the applications with the tag of this training.
        """
        decision = decide_submission((a for a in listed if a["state"] not in ENDED), self, ended.user)
        return decision.application_id if decision.action is Action.ATTACH else None

    def check(self, spec: JobSpec) -> None:
        """Raise `SpecInvalid` when the job's own tags look like one of these."""
        check_faults(
            Fault("tags", IdentityFault.RESERVED_TAG, {"given": tag, "prefixes": PREFIXES})
            for tag in spec.tags
            if is_reserved(tag)
        )


def is_reserved(tag: str, *prefixes: str) -> bool:
    """Return whether a tag begins like a tag of an identity, or with one of ``prefixes``."""
    # YARN lists the tags of an application joined by commas, so a comma would begin another tag.
    return any(part.strip().startswith((*PREFIXES, *prefixes)) for part in tag.lower().split(","))


def deployment_tag(deployment: str) -> str:
    """Return the tag that all jobs of a deployment share."""
    return f"tfyd-{_hash(deployment)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


class Action(enum.Enum):
    """The action of a `SubmissionDecision`."""

    SUPERSEDED = "superseded"
    KILL = "kill"
    WAIT = "wait"
    ATTACH = "attach"
    REPORT = "report"
    SUBMIT = "submit"


@dataclass(frozen=True)
class SubmissionDecision:
    """A row of the table.

    Attributes
    ----------
    action : Action
    application_id : str
        The application to attach to, to report, or to wait for; the newer one when superseded, if it is known.
    kill : tuple of str
        Applications to kill: older generations, duplicates of this generation, and all of this generation when
        superseded.
    """

    action: Action
    application_id: str = ""
    kill: tuple[str, ...] = ()


def order(application_id: str) -> tuple[int, int]:
    """Return the sort key of an application id, oldest first."""
    match = _ID.match(application_id)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def generation_of(application: Mapping[str, Any]) -> int:
    """Return the generation in an application's tags, 0 if there is none."""
    return _numbers(application)[0]


def attempt_of(application: Mapping[str, Any]) -> int:
    """Return the attempt in an application's tags, 0 if there is none."""
    return _numbers(application)[1]


def tags_of(application: Mapping[str, Any]) -> list[str]:
    """Return the tags of an application."""
    return [tag.strip() for tag in str(application.get("applicationTags") or "").split(",")]


def _numbers(application: Mapping[str, Any]) -> tuple[int, int]:
    found = (match for tag in tags_of(application) if (match := _NUMBERS.match(tag)))
    return next(((int(match[1]), int(match[2])) for match in found), (0, 0))


def decide_submission(
    applications: Iterable[Mapping[str, Any]], identity: Identity, user: str, allocation_retries: int = 0
) -> SubmissionDecision:
    """Return the decision of the first row of the table (docs/design.md, section 4) that fits.

    Parameters
    ----------
    applications : iterable of mapping
        YARN's objects of the applications with the identity's tag, in any state.
    identity : Identity
    user : str
        Only this user's applications count; anybody can write a tag.
    allocation_retries : int, optional
        How often an attempt may submit again after ALLOCATION_TIMEOUT. Default 0.

    Returns
    -------
    SubmissionDecision
    """
    own = sorted((a for a in applications if a.get("user") == user), key=lambda a: order(a["id"]))
    if identity.previous == IGNORE:
        own = [a for a in own if generation_of(a) == identity.generation]
    newer = [a["id"] for a in own if generation_of(a) > identity.generation]
    live = [a for a in own if a["state"] not in ENDED]
    if newer:
        return SubmissionDecision(Action.SUPERSEDED, newer[-1], tuple(a["id"] for a in live if a["id"] not in newer))
    ended = [a for a in own if a["state"] in ENDED and generation_of(a) == identity.generation]
    if any(read_yarn_report(a).reason is Reason.SUPERSEDED for a in ended):
        return SubmissionDecision(
            Action.SUPERSEDED, kill=tuple(a["id"] for a in live if generation_of(a) == identity.generation)
        )
    older = tuple(a["id"] for a in live if generation_of(a) < identity.generation)
    if older:
        return (
            SubmissionDecision(Action.WAIT, older[0])
            if identity.previous == WAIT
            else SubmissionDecision(Action.KILL, kill=older)
        )
    if live:
        return SubmissionDecision(Action.ATTACH, live[0]["id"], tuple(a["id"] for a in live[1:]))
    succeeded = [a["id"] for a in ended if read_yarn_report(a).reason is Reason.SUCCEEDED]
    if succeeded:
        return SubmissionDecision(Action.REPORT, succeeded[0])
    same = [a for a in ended if attempt_of(a) == identity.attempt]
    if same and not may_try_again([read_yarn_report(a) for a in same], allocation_retries):
        return SubmissionDecision(Action.REPORT, same[-1]["id"])
    return SubmissionDecision(Action.SUBMIT)


def old_tasks_end(
    applications: Iterable[Mapping[str, Any]], user: str, deadlines: Deadlines, now: float
) -> tuple[str, float] | None:
    """Return the application whose tasks may still run on nodes that YARN does not reach, and until when.

    YARN can't end a container of a lost node; an agent without a coordinator ends its command after the heartbeat's
    deadline.

    Parameters
    ----------
    applications : iterable of mapping
        YARN's objects of the applications with the identity's tag.
    user : str
    deadlines : Deadlines
        Of the job; without a limit for heartbeats no time is known.
    now : float
        Seconds since the epoch, by YARN's clock. One that is a minute behind the end must not hold up a training.

    Returns
    -------
    tuple or None
        Application id and seconds since the epoch; None if no task can run any more.
    """
    lost = [
        (int(a["finishedTime"]), str(a["id"]))
        for a in applications
        if a.get("user") == user
        and a["state"] in ENDED
        and a.get("finishedTime")
        and (read_yarn_report(a).reason is Reason.NODE_LOST or AM_SILENT.search(str(a.get("diagnostics"))))
    ]
    if not lost or not deadlines.heartbeat:
        return None
    finished, application_id = max(lost)
    end = finished / 1000 + NOTICE_SECONDS + deadlines.heartbeat + deadlines.stop_grace
    return (application_id, end) if finished / 1000 - CLOCKS_DIFFER < now < end else None


def latest_of(applications: Iterable[Mapping[str, Any]], identity: Identity) -> Mapping[str, Any] | None:
    """Return the newest application of this generation, from any user; None if there is none."""
    return max(
        (a for a in applications if generation_of(a) == identity.generation),
        key=lambda a: order(a["id"]),
        default=None,
    )


def is_repeatable(ended: JobReport) -> bool:
    """Return whether the attempt itself may submit again: no task has run, or more memory may help."""
    return ended.reason is Reason.ALLOCATION_TIMEOUT or never_launched(ended) or outgrew_memory(ended)


def may_try_again(ended: Sequence[JobReport], allocation_retries: int) -> bool:
    """Return whether an attempt may submit once more, because no task has run, or with more memory.

    Parameters
    ----------
    ended : sequence of JobReport
        The reports of the attempt's applications, the latest last.
    allocation_retries : int
        Further submissions after ALLOCATION_TIMEOUT. After a failed launch of the application master there are
        `LAUNCH_RETRIES`.
    """
    latest = ended[-1]
    if latest.reason is Reason.ALLOCATION_TIMEOUT:
        return sum(report.reason is Reason.ALLOCATION_TIMEOUT for report in ended) <= allocation_retries
    return outgrew_memory(latest) or (
        never_launched(latest) and sum(never_launched(report) for report in ended) <= LAUNCH_RETRIES
    )

"""`CHECKS`, the table of checks, and `examine`: run them in its order, each with a deadline.

A check whose condition failed is skipped.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .. import __version__
from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from . import probe_job, reach, scheduling, storage
from .known import KnownFacts, Question
from .machine import check_machine
from .symptoms import CheckOutcome, Finding, Symptom, ill, skip

#: The version of the JSON document.
EXAMINATION_SCHEMA = 1


class Check(NamedTuple):
    """One check.

    Attributes
    ----------
    name : str
    question : str
        What it finds out, for the documents.
    run : callable
        Returns the finding. It leaves at most the empty staging and cache directories; the check of the application
        also what every job leaves in the cache.
    needs : tuple of str
        Checks without whose success it can't be made.
    failure : Symptom
        For an error of ours that it raises.
    seconds : float
        After this time it counts as failed. The check of the application has its own limit besides.
    """

    name: str
    question: str
    run: Callable[[KnownFacts], Finding]
    needs: tuple[str, ...] = ()
    failure: Symptom = Symptom.REQUEST_FAILED
    seconds: float = 20.0


CHECKS = (
    Check("versions", "Are this package and Skein whole on this machine?", reach.check_versions),
    Check(
        "configuration",
        "Which ResourceManagers are asked, and what names them?",
        reach.check_configuration,
        failure=Symptom.NO_ADDRESS,
    ),
    Check(
        "resourcemanager",
        "Does each ResourceManager answer, which one is active, which Hadoop is it?",
        reach.check_resourcemanagers,
        ("configuration",),
        Symptom.NO_ADDRESS,
    ),
    Check(
        "ticket",
        "On a secured cluster: whose Kerberos ticket is there, and when does it end?",
        reach.check_ticket,
        ("resourcemanager",),
        Symptom.TICKET_MISSING,
        40.0,
    ),
    Check(
        "identity",
        "Who are we for the cluster, and can its facts be learned?",
        reach.check_identity,
        ("resourcemanager", "ticket"),
        Symptom.REFUSED,
    ),
    Check(
        "machine",
        "Has this machine the cluster, the user, the settings and the versions of other ones (`--compare`)?",
        check_machine,
        ("identity",),
    ),
    Check("security", "Does the cluster demand a proof of the user's name?", reach.check_security, ("identity",)),
    Check(
        "filesystem",
        "Does each NameNode answer, and which one is active?",
        storage.check_filesystem,
        ("identity",),
        Symptom.NN_UNKNOWN,
    ),
    Check("clock", "Do the daemons' clocks agree with ours?", reach.check_clock, ("resourcemanager",)),
    Check(
        "tokens",
        "On a secured cluster: can the tokens of a job be had?",
        storage.check_tokens,
        ("filesystem",),
        Symptom.TOKENS_REFUSED,
    ),
    Check(
        "staging",
        "Can a file be written, read and deleted in the staging directory?",
        storage.check_staging,
        ("filesystem",),
        Symptom.STAGING_REFUSED,
        60.0,
    ),
    Check(
        "rights", "Can other users change staged files?", storage.check_rights, ("staging",), Symptom.STAGING_REFUSED
    ),
    Check(
        "submission",
        "Are applications submitted over HTTP, and how large may a container be?",
        scheduling.check_submission,
        ("identity", "tokens"),
    ),
    Check(
        "queue",
        "Does the queue exist, may we submit to it, what are its limits?",
        scheduling.check_queue,
        ("identity",),
    ),
    Check("queue_acl", "May any user kill applications in the queue?", scheduling.check_queue_acl, ("queue",)),
    Check(
        "nodes",
        "Are there running nodes, and does this machine reach the NodeManagers?",
        scheduling.examine_nodes,
        ("identity",),
    ),
    Check(
        "environment",
        "Can the archive of `--environment` run on the nodes?",
        probe_job.examine_environment,
        seconds=300.0,
    ),
    Check(
        "application",
        "With `--submit`, or an image as `--environment`: does a tiny application run, and which Python, TensorFlow "
        "and GPUs has it?",
        probe_job.check_application,
        ("tokens", "staging", "submission", "queue", "nodes", "environment"),
        Symptom.APPLICATION_REFUSED,
        180.0,
    ),
    Check("logs", "Can logs be read while a job runs and after its end?", scheduling.check_logs, ("nodes",)),
)


@dataclass(frozen=True)
class Result:
    """A check's finding.

    Attributes
    ----------
    check : str
        Name of the check.
    finding : Finding
    seconds : float
        How long it took.
    """

    check: str
    finding: Finding
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        found = self.finding
        return {
            "check": self.check,
            "outcome": found.outcome.value,
            "symptom": found.symptom.name if found.symptom else None,
            "message": found.message,
            "advice": found.advice or None,
            "skipped_for": found.because_of,
            "reason": found.reason.value if found.reason else None,
            "seconds": round(self.seconds, 3),
            "facts": dict(found.facts),
        }


@dataclass(frozen=True)
class Diagnosis:
    """The results of all checks, in the order of the table.

    Attributes
    ----------
    results : tuple of Result
    hanging : bool
        Whether a check still waits for a server; its thread can't be ended.
    """

    results: tuple[Result, ...]
    hanging: bool = False

    @property
    def first_fault(self) -> Result | None:
        """The first result that is a fault; None if there is none."""
        return next((result for result in self.results if result.finding.outcome is CheckOutcome.FAULT), None)

    @property
    def exit_code(self) -> int:
        """0 if there is no fault, else the exit code of the first fault's reason."""
        first = self.first_fault
        return (first.finding.reason or Reason.CLUSTER_UNREACHABLE).exit_code if first else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values."""
        counts = Counter(result.finding.outcome for result in self.results)
        return {
            "schema": EXAMINATION_SCHEMA,
            "tf_yarn_ops": __version__,
            "exit_code": self.exit_code,
            "counts": {outcome.value: counts[outcome] for outcome in CheckOutcome},
            "checks": [result.to_dict() for result in self.results],
        }


def examine(
    question: Question, on_result: Callable[[Result], object] = lambda result: None, checks: Iterable[Check] = CHECKS
) -> Diagnosis:
    """Make the checks one after the other.

    Parameters
    ----------
    question : Question
    on_result : callable, optional
        Called with each result as soon as it is there.
    checks : iterable of Check, optional
        Default: the table.

    Returns
    -------
    Diagnosis
        Every check, also those that were skipped.
    """
    known = KnownFacts(question)
    results: list[Result] = []
    unusable: dict[str, str] = {}  # a check that failed, or was skipped for one: the check that failed
    hanging = False
    for check in checks:
        began = time.monotonic()
        cause = next((unusable[name] for name in check.needs if name in unusable), None)
        if cause:
            finding = skip(f"needs the check {cause}, which failed", cause)
        elif question.cancellation.cancelled:
            finding = skip("the examination was ended")
        else:
            made = _make(check, known)
            hanging = hanging or made is None
            finding = made or ill(Symptom.TOO_SLOW, seconds=_limit(check, question))
        if finding.outcome is CheckOutcome.FAULT or cause:
            unusable[check.name] = cause or check.name
        known = replace(known, **finding.learned)
        results.append(Result(check.name, finding, time.monotonic() - began))
        on_result(results[-1])
    if known.opened is not None and not hanging:
        known.opened.close()
    return Diagnosis(tuple(results), hanging)


def _limit(check: Check, question: Question) -> float:
    return check.seconds + (question.timeout if check.name == "application" else 0.0)


def _make(check: Check, known: KnownFacts) -> Finding | None:
    """Return the finding of a check; None if it has not ended in time."""
    made: Future[Finding] = Future()
    cluster = known.opened.cluster if known.opened else None
    values: dict[str, Any] = {"staging": cluster.staging if cluster else "", "user": cluster.user if cluster else ""}

    def run() -> None:
        try:
            made.set_result(check.run(known))
        except TfYarnError as error:
            made.set_result(ill(check.failure, error=error, **values))
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # JSON of another shape
            made.set_result(ill(Symptom.UNEXPECTED_ANSWER, error=ValueError(f"{type(error).__name__}: {error}")))
        except BaseException as error:
            made.set_exception(error)

    # Not a ThreadPoolExecutor, which waits for its threads at the end of the process.
    threading.Thread(target=run, name=check.name, daemon=True).start()
    wait([made], _limit(check, known.question))
    return made.result() if made.done() else None

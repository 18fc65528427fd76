"""`examine`: run the checks of the table, each with a deadline; a check whose condition failed is skipped."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any

from .. import __version__
from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from .known import KnownFacts, Question
from .symptoms import CheckOutcome, Finding, Symptom, ill, skip
from .table import CHECKS, Check

#: The version of the JSON document.
EXAMINATION_SCHEMA = 1


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

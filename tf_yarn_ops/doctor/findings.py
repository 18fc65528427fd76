"""`Finding`: what one check has found; the functions that make one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from .symptoms import CheckOutcome, Symptom


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    outcome : Outcome
    message : str
        What was found.
    advice : str
        What to do; empty if nothing.
    symptom : Symptom or None
        None if the check is ok or was skipped.
    reason : Reason or None
        Decides the exit code, for a fault.
    facts : mapping of str to object
        What was found, for programs.
    learned : mapping of str to object
        Fields of `Known` for the checks that follow.
    because_of : str or None
        The check on which a skipped one depends.
    """

    outcome: CheckOutcome
    message: str
    advice: str = ""
    symptom: Symptom | None = None
    reason: Reason | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    learned: Mapping[str, Any] = field(default_factory=dict)
    because_of: str | None = None


def well(message: str, learned: Mapping[str, Any] | None = None, **facts: Any) -> Finding:
    """Return the finding of a check that is ok."""
    return Finding(CheckOutcome.OK, message, facts=facts, learned=learned or {})


def ill(symptom: Symptom, learned: Mapping[str, Any] | None = None, error: Exception | None = None,
        facts: Mapping[str, Any] | None = None, **values: Any) -> Finding:
    """Return the finding of a symptom.

    Parameters
    ----------
    symptom : Symptom
    learned : mapping, optional
        As in `Finding`.
    error : Exception, optional
        The cause. It gives the value ``error`` of the templates, and an error of ours the reason of a fault, and the
        advice if it knows the command that helps.
    facts : mapping, optional
        As in `Finding`. Default: the values.
    **values
        For the templates of the symptom.
    """
    row = symptom.value
    if error is not None:
        values["error"] = str(error)
    ours = error if isinstance(error, TfYarnError) else None
    reason = ours.reason if ours and row.reason else row.reason
    advice = f"{ours.hint} Next: {ours.command}" if ours and ours.command else row.advice.format(**values)
    return Finding(row.outcome, row.text.format(**values), advice, symptom, reason,
                   dict(values) if facts is None else facts, learned or {})


def skip(why: str, because_of: str | None = None) -> Finding:
    """Return the finding of a check that was not made."""
    return Finding(CheckOutcome.SKIPPED, why, because_of=because_of)

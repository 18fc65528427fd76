"""`Query`: which ended jobs to show; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import SpecInvalid
from ..runtime.common.reasons import Reason
from ..runtime.common.record import day_folder

#: Words for a state: those of YARN, and every reason.
STATES = (
    "SUCCEEDED",
    "FAILED",
    "KILLED",
    *(reason.value for reason in Reason if reason is not Reason.SUCCEEDED and reason is not Reason.KILLED),
)


@dataclass(frozen=True)
class Query:
    """Which ended jobs to show.

    Parameters
    ----------
    name : str, optional
        Pattern of the job's name, with ``*`` and ``?``. Default: all.
    since : float, optional
        Jobs that ended at this moment or later, seconds since the epoch. Default: all.
    states : tuple of str, optional
        Of `STATES`: YARN's final status or our reason. Default: all.
    user : str, optional
        Pattern of the owner's name. Default: all whose histories are searched.
    words : str, optional
        Words that occur in the name, the owner or the reason, in any case of letters. Default: none.
    """

    name: str = "*"
    since: float = 0.0
    states: tuple[str, ...] = ()
    user: str = "*"
    words: str = ""

    def matches(self, summary: Mapping[str, Any]) -> bool:
        """Return whether the query wants the job of this summary."""
        found = {summary.get("reason"), summary.get("final_status")}
        about = " ".join(str(summary.get(key) or "") for key in ("name", "user", "reason")).lower()
        return (
            fnmatchcase(str(summary.get("name") or ""), self.name)
            and all(word in about for word in self.words.lower().split())
            and fnmatchcase(str(summary.get("user") or ""), self.user)
            and float(summary.get("finished_at") or 0.0) >= self.since
            and (not self.states or not found.isdisjoint(self.states))
        )

    def reaches(self, day: str) -> bool:
        """Return whether jobs of a day, ``2026/11/22``, may match."""
        return not self.since or day >= day_folder(self.since)


def parse_states(words: Iterable[str]) -> tuple[str, ...]:
    """Return the states of some texts, in which commas may separate several; raise SpecInvalid for an unknown one."""
    states = tuple(part.strip().upper() for word in words for part in word.split(",") if part.strip())
    unknown = [state for state in states if state not in STATES]
    if unknown:
        raise SpecInvalid(f"{unknown[0]!r} is no state; give one of {', '.join(STATES)}")
    return states

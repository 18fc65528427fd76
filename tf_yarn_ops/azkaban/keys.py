"""The keys of a ``.job``: those of the options of `job.options`, by one rule, and those of the job type alone.

A name has places that a job fills in: ``<type>`` a task type, ``<index>`` and ``<n>`` a number, ``<NAME>`` a variable.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .. import kinds
from ..declaration import AZKABAN, TYPE, Option
from ..errors import Fault, FaultCode
from ..job.options import options_of
from ..launch.identity import IGNORE, PREVIOUS

_PLACES = {
    "<type>": "(?P<type>[A-Za-z][A-Za-z0-9_-]*)",
    "<index>": "(?P<index>[0-9]+)",
    "<n>": "(?P<n>[0-9]+)",
    "<NAME>": "(?P<NAME>.+)",
}
KEY_PREFIX = "tf."


class KeyFault(FaultCode):
    """Fault codes for the name of a key."""

    UNKNOWN = "unknown key{hint}"
    NOT_THE_JOBS_USER = "a job can't choose its user; where the site allows it, user.to.proxy does"
    NOT_THE_JOBS_CLUSTER = "a job can't choose the cluster; site.yaml or YTF_RESOURCEMANAGER of the executor does"


class Key(NamedTuple):
    """A key, ``tf.<type>.memory``, and its option."""

    name: str
    option: Option

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of names of this key."""
        parts = re.split(r"(<\w+>)", self.name)
        return re.compile("".join(_PLACES.get(part) or re.escape(part) for part in parts) + r"\Z", re.DOTALL)


class FoundKey(NamedTuple):
    """The row of a name in a ``.job``, and the words in the places of the name."""

    key: Key
    places: dict[str, str]


#: Options of the job type alone.
OWN_OPTIONS = (
    Option(
        None,
        kinds.VERBATIM,
        "A Python file to run instead of tf.command: a file of the project, which travels with the job, or an "
        "absolute path on the nodes.",
        "entry_point",
        "program",
    ),
    Option("python3", kinds.TEXT, "The interpreter that runs tf.entry_point.", "python", "program"),
    Option(
        None,
        kinds.VERBATIM,
        "One argument, passed on byte for byte; no shell interprets it. The arguments come in the order of the "
        "numbers.",
        "args.<n>",
        "program",
    ),
    Option(None, kinds.VERBATIM, "Arguments after the command, as bash reads them.", "args", "program"),
    Option(
        None,
        kinds.TEXT,
        "A folder of the project, or an archive, whose content every task finds in its working directory.",
        "source",
        "program",
        in_words="src for TonY's commands, where the folder exists",
    ),
    Option(
        IGNORE,
        kinds.choice(*PREVIOUS),
        "What happens to earlier executions of this job (same project, flow, job and past date) that still "
        "run. ignore: they continue, with a warning. wait: this one starts when they are over, retries included. "
        "kill: they are killed and superseded, retries included.",
        "previous",
        "submission",
    ),
)


def _names(option: Option) -> Iterator[str]:
    """Yield the names of an option's keys without their prefix, the most general last."""
    *above, last = option.path or (option.name,)
    place = {"variables": ".<NAME>", "amounts": ".<NAME>", "sources": ".<n>"}.get(option.kind.word, "")
    if TYPE in above:
        yield f"<type>.{last}{place}"
        if option.per_task:
            yield f"<type>.<index>.{last}"
            yield option.name
    else:
        yield f"{option.name if above or last == 'tasks' else last}{place}"


#: Names are looked up in this order: `tf.env.K` is a variable before it is a task type.
ALL_KEYS = tuple(sorted((Key(f"{KEY_PREFIX}{name}", option)
                         for option in (*OWN_OPTIONS, *options_of(AZKABAN).values()) for name in _names(option)),
                        key=lambda key: TYPE in key.name))  # fmt: skip
_PATTERNS = [(key, key.pattern) for key in ALL_KEYS]
#: Keys that a job can't set.
REFUSED = {"tf.user": KeyFault.NOT_THE_JOBS_USER, "tf.resourcemanager": KeyFault.NOT_THE_JOBS_CLUSTER}
#: Words that can't be task types, because other keys begin with them.
RESERVED = frozenset(key.name.split(".")[1] for key in ALL_KEYS if len(key.name.split(".")) > 2) - {"<type>"}
#: The key that a message names for an option which the job has not given: that of a type, where there is one.
KEY_OF_OPTION = {
    key.option.name: key.name
    for key in sorted(ALL_KEYS, key=lambda key: key.name.count(TYPE))
    if "<index>" not in key.name
}


def find_key(name: str) -> FoundKey | None:
    """Return the row of a name, or None for an unknown one."""
    return next(
        (FoundKey(key, match.groupdict()) for key, pattern in _PATTERNS if (match := pattern.match(name))), None
    )


def unknown_key(name: str, types: Iterable[str]) -> Fault:
    """Return the fault of a name that is not in the table, with the nearest known names."""
    if name in REFUSED:
        return Fault(name, REFUSED[name])
    known = [key.name for key in ALL_KEYS]
    words = [part for part in name.split(".") if part]
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    places = {
        "<type>": [*types, *words[1:2]],
        "<index>": numbers or ["0"],
        "<n>": numbers or ["1"],
        "<NAME>": words[-1:],
    }
    for place, values in places.items():
        known = [
            filled
            for one in known
            for filled in ([one.replace(place, value) for value in values] if place in one else [one])
        ]
    return Fault(name, KeyFault.UNKNOWN, {"given": name, "allowed": tuple(known)})

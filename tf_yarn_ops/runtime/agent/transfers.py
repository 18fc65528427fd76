"""What a mirror copies next, and in which order: pure functions over listings of its two sides.

A file goes after all files that were modified before it. Programs write an index after what it names, so a reader of
the other side never meets an index without its data, with whatever framework the program writes.
"""

import os
from typing import List, Mapping, NamedTuple, Sequence

from ..tensorboard.event_copies import EVENTS

#: A file that was modified less than so many seconds ago is still being written.
SETTLE_SECONDS = 3.0
#: Names of files with an index, for files that were modified in the same tick of the clock.
_LAST = ("checkpoint", "saved_model.pb")

APPEND, WRITE, DELETE = "append", "write", "delete"


class Stamp(NamedTuple):
    """The length of a file in bytes, and its time of modification in nanoseconds since the epoch."""

    length: int
    modified: int


class Transfer(NamedTuple):
    """One step: `APPEND`, `WRITE` or `DELETE`, and the file's path below the mirrored folder."""

    action: str
    name: str


def is_events(name: str) -> bool:
    """Return whether a file is an event file of TensorBoard, which only grows."""
    return EVENTS in os.path.basename(name)


def in_order(stamps: Mapping[str, Stamp]) -> List[str]:
    """Return the names of files in the order of their modification."""
    return sorted(
        stamps, key=lambda name: (stamps[name].modified, os.path.basename(name) in _LAST, name.endswith(".index"), name)
    )


def plan_writes(local: Mapping[str, Stamp], sent: Mapping[str, Stamp], now: float) -> List[Transfer]:
    """Return the steps that bring the store up to a local folder.

    Parameters
    ----------
    local : mapping of str to Stamp
        The files of the local folder.
    sent : mapping of str to Stamp
        Those that the store has, with their stamps in the local folder at that time.
    now : float
        Seconds since the epoch; infinity once the program has ended, when no file changes any more.

    Returns
    -------
    list of Transfer
        Event files grow by appends while they are written. Other files wait until they have settled. A deletion comes
        last, and waits while a file in its folder, or above, does: that one may be the index that replaces it.
    """
    steps: List[Transfer] = []
    waiting: List[str] = []
    for name in in_order({name: stamp for name, stamp in local.items() if sent.get(name) != stamp}):
        if is_events(name):
            grown = name in sent and local[name].length > sent[name].length
            steps.append(Transfer(APPEND if grown else WRITE, name))
        elif now - SETTLE_SECONDS < local[name].modified / 1e9 <= now:
            waiting.append(os.path.dirname(name))
        else:
            steps.append(Transfer(WRITE, name))
    return steps + [Transfer(DELETE, name) for name in sorted(set(sent) - set(local)) if not _lies_in(name, waiting)]


def _lies_in(name: str, folders: Sequence[str]) -> bool:
    return any(not folder or name.startswith(folder + "/") for folder in folders)

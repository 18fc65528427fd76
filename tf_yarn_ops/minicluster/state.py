"""The state in a cluster's folder: the settings in ``state.json``, and a lock for starting and stopping."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import MiniClusterError
from .daemon_settings import Settings
from .marked_processes import wait_until

_LOCK_SECONDS = 180.0
_S = TypeVar("_S", bound=Settings)


def load(directory: Path, kind: type[_S]) -> _S | None:
    """Return the settings of the last start in this folder, or None.

    Raises
    ------
    MiniClusterError
        The file is not a `state.json` of this kind of cluster.
    """
    path = directory / "state.json"
    try:
        values = json.loads(path.read_text())
        if (schema := values.pop("schema")) != kind.schema:
            raise ValueError(f"its schema is {schema!r}, not {kind.schema!r}")
        values |= {
            entry.name: Path(values[entry.name])
            for entry in dataclasses.fields(kind)
            if entry.type in (Path, Path | None) and values[entry.name]
        }
        return kind(**values)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MiniClusterError(f"{path} is not readable ({error}): remove {directory} and start again") from error


def save(settings: Settings) -> None:
    """Write the settings by a rename, so that the file is always complete."""
    values = {"schema": settings.schema, **dataclasses.asdict(settings)}
    fresh = settings.directory / "state.json.tmp"
    fresh.write_text(json.dumps(values, indent=2, default=str) + "\n")
    os.replace(fresh, settings.directory / "state.json")


@contextlib.contextmanager
def lock(directory: Path) -> Iterator[None]:
    """Hold the folder's lock while daemons are started or stopped.

    Raises
    ------
    MiniClusterError
        Another process holds it for minutes.
    """
    import fcntl  # not on Windows, where this module has to be imported

    with (directory / "lock").open("a") as file:

        def take() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not wait_until(take, _LOCK_SECONDS):
            raise MiniClusterError(f"another `up` or `down` has held {directory} for {_LOCK_SECONDS:.0f} s: try again")
        yield

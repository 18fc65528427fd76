"""The state in a cluster's folder: the settings in ``state.json``, and a lock for starting and stopping."""

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import MiniClusterError
from .configuration import Settings
from .processes import wait_until

_SCHEMA = 1
_LOCK_SECONDS = 180.0


def load(directory: Path) -> Settings | None:
    """Return the settings of the last start in this folder, or None.

    Raises
    ------
    MiniClusterError
        The file is not a `state.json` of this version.
    """
    path = directory / "state.json"
    try:
        values = json.loads(path.read_text())
        if values.pop("schema") != _SCHEMA:
            raise ValueError("another schema")
        for name in ("directory", "hadoop", "java_home"):
            values[name] = Path(values[name])
        for name in ("classes", "additions", "local_files"):
            values[name] = Path(values[name]) if values.get(name) else None
        return Settings(**values)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MiniClusterError(f"{path} is not readable ({error}): remove {directory} and start again") from error


def save(settings: Settings) -> None:
    """Write the settings by a rename, so that the file is always complete."""
    values = {"schema": _SCHEMA, **dataclasses.asdict(settings)}
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

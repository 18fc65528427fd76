"""What a cluster's folder remembers of it: the settings in ``state.json``, and a lock for whoever changes it."""

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
    """Give the settings with which a cluster was last started in this folder, or None.

    Raises
    ------
    MiniClusterError
        The file is not one of ours.
    """
    path = directory / "state.json"
    try:
        values = json.loads(path.read_text())
        if values.pop("schema") != _SCHEMA:
            raise ValueError("another schema")
        for name in ("directory", "hadoop", "java_home"):
            values[name] = Path(values[name])
        return Settings(**values)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MiniClusterError(f"{path} is not readable ({error}): remove {directory} and start anew") from error


def save(settings: Settings) -> None:
    """Write the settings; the file is there as a whole or not at all."""
    values = {"schema": _SCHEMA, **dataclasses.asdict(settings)}
    fresh = settings.directory / "state.json.tmp"
    fresh.write_text(json.dumps(values, indent=2, default=str) + "\n")
    os.replace(fresh, settings.directory / "state.json")


@contextlib.contextmanager
def lock(directory: Path) -> Iterator[None]:
    """Hold the folder while daemons are started or ended.

    Raises
    ------
    MiniClusterError
        Somebody else holds it for minutes.
    """
    with (directory / "lock").open("a") as file:

        def take() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not wait_until(take, _LOCK_SECONDS):
            raise MiniClusterError(f"another up or down has been at work in {directory} for {_LOCK_SECONDS:.0f} s")
        yield

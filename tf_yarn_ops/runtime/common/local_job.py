"""The folder of a job that runs on this machine without YARN; its coordinator and its clients agree on it here.

``application.json``
    The application as YARN's REST interface shows it. The coordinator writes it; the first one is the submitter's.
``kill.json``
    The diagnostics of a client that kills the job, which also sends SIGTERM.
``lock``
    Locked by the coordinator as long as it lives; holds its process id.
``files/``
    The user's files, by their names in the working directory.
``containers/<id>/``, ``logs/<id>/``
    The working directory and the log directory of each container.
"""

import contextlib
import json
import os
from typing import Any, Dict, Mapping, Optional

#: How the address of this machine begins; a folder may follow.
SCHEME = "local://"
KILL_FILE, LOCK_FILE = "kill.json", "lock"
FILES, CONTAINERS, LOGS = "files", "containers", "logs"
_APPLICATION_FILE = "application.json"


def is_local(application_id: object) -> bool:
    """Return whether an application id is that of a job of this machine."""
    return str(application_id).startswith("local_")


def read_application(folder: str) -> Optional[Dict[str, Any]]:
    """Return the application of a job's folder; None if none was submitted there."""
    try:
        with open(os.path.join(folder, _APPLICATION_FILE), encoding="utf-8") as file:
            return dict(json.load(file))
    except FileNotFoundError:
        return None


def write_application(folder: str, changes: Mapping[str, Any]) -> None:
    """Change values of the application of a job's folder; a reader sees all changes or none."""
    write_whole(os.path.join(folder, _APPLICATION_FILE), json.dumps({**(read_application(folder) or {}), **changes}))


def write_whole(path: str, text: str) -> None:
    """Write a file so that a reader sees the whole text or nothing of it."""
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def running_coordinator(folder: str) -> Optional[int]:
    """Return the process id of a job's coordinator; None if it has ended."""
    import fcntl  # Windows, from where jobs go to YARN, has none

    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, LOCK_FILE), "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read() or 0)
    return None

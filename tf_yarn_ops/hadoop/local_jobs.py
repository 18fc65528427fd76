"""`LocalJobs`: the `Backend` of this machine, so that clients follow its jobs as those of a cluster.

The address ``local://`` means the jobs below ``~/.local/state/tf_yarn_ops`` (XDG_STATE_HOME), ``local:///folder`` those
below another folder.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ApplicationNotFound, SpecInvalid
from ..runtime.common.local_job import KILL_FILE, LOGS, SCHEME, read_application, running_coordinator, write_whole
from .backend import Backend
from .filesystem import FileSystem, MountedFileSystem
from .resourcemanager import LIVE

_ID = re.compile(r"local_\d+_\d+\Z")


def parse_folder(address: str, environ: Mapping[str, str]) -> str:
    """Return the folder that an address means, absolute."""
    home = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return os.path.abspath(os.path.expanduser(address.removeprefix(SCHEME) or f"{home}/tf_yarn_ops"))


class LocalJobs(Backend):
    """The jobs below one folder of this machine.

    Parameters
    ----------
    address : str
        ``local:///folder``.

    Attributes
    ----------
    children : dict of str to Popen
        The coordinators that this process has started, by application id. The standard input of one with a lease is a
        pipe, which ends with this process.
    """

    ways = ("auto",)
    address = SCHEME

    def __init__(self, address: str):
        self.address = address
        self._folder = Path(address.removeprefix(SCHEME), "jobs")
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def folder(self, application_id: str) -> Path:
        """Return the folder of a job; raise ApplicationNotFound if the id is not one of a local job."""
        if not _ID.match(application_id):
            raise ApplicationNotFound(f"{application_id} is no job of this machine; their ids begin with local_")
        return self._folder / application_id

    def log_path(self, application_id: str, container_id: str, name: str) -> Path:
        """Return the path of a container's log."""
        return self.folder(application_id) / LOGS / container_id / name

    def node_files(self) -> FileSystem:
        """Return the folders of this machine, which runs the tasks."""
        return MountedFileSystem("/")

    def get(self, application_id: str, patience: float = 0.0) -> dict[str, Any]:
        """Return a job as YARN shows an application; raise ApplicationNotFound if there is none."""
        folder = self.folder(application_id)
        try:
            alive = running_coordinator(str(folder)) is not None
            application = read_application(str(folder))
        except OSError as error:
            raise SpecInvalid(
                f"the folder of local jobs, {self._folder}, can't be read: {error.strerror}; name another: "
                "--resourcemanager local:///folder, or $XDG_STATE_HOME"
            ) from error
        if application is None:
            raise ApplicationNotFound(f"there is no job {application_id} below {self._folder}").with_command(
                f"ytf list --resourcemanager {self.address}"
            )
        if application["state"] in LIVE and not alive:
            if (folder / KILL_FILE).exists():
                by = f"Application {application_id} was killed by user {application['user']} with diagnostic message: "
                state, text = "KILLED", by + (folder / KILL_FILE).read_text()
            else:
                log = self.log_path(application_id, "container_coordinator", "application.driver.log")
                state, text = "FAILED", f"The coordinator ended without a report; see {log}"
            application |= {
                "state": state,
                "finalStatus": state,
                "diagnostics": text,
                "finishedTime": round(1000 * folder.stat().st_mtime),
            }
        if application["state"] not in LIVE:
            application["trackingUrl"] = ""  # the page ends with the coordinator
            if child := self.children.pop(application_id, None):
                child.communicate()  # closes its lease, and waits for it
        return {**application, "elapsedTime": round(1000 * time.time()) - application["startedTime"]}

    def find(
        self, tags: Iterable[str] = (), states: Iterable[str] = (), user: str | None = None, finished_since: float = 0.0
    ) -> list[dict[str, Any]]:
        """Return the jobs with any of these tags, in any of these states."""
        found, tags, states = [], {tag.lower() for tag in tags}, set(states)
        for folder in self._folder.glob("local_*"):
            with contextlib.suppress(ApplicationNotFound):
                application = self.get(folder.name)
                if (not tags or tags.intersection(application["applicationTags"].split(","))) and (
                    not states or application["state"] in states
                ):
                    found.append(application)
        return found

    def find_live(self, tag: str | None, user: str) -> list[dict[str, Any]]:
        """Return the jobs that have not ended."""
        return self.find([tag] if tag else [], LIVE)

    def kill(self, application_id: str, diagnostics: str, patience: float = 0.0) -> str:
        """Let the coordinator of a job end it, with these diagnostics; return the state before that."""
        folder = self.folder(application_id)
        state = str(self.get(application_id)["state"])
        if not (folder / KILL_FILE).exists():
            write_whole(str(folder / KILL_FILE), diagnostics)
        if process := running_coordinator(str(folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        return state

    def set_lifetime(self, application_id: str, ends_at: float, leased: bool = False) -> None:
        """Do nothing: the coordinator keeps the deadlines, and a lease ends with the client."""

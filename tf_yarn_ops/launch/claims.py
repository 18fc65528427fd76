"""`Claims`: files in the staging directory that make a submission happen exactly once, also when its client dies.

``<staging>/claims/<hash>/<n>`` names the application id of one submission and its generation. It appears by a rename,
so it is always complete, and it is never overwritten: all generations of a training compete for the next number. A
second file, with ``.submitted`` after the same name, says that YARN has accepted the application. A generation that
runs beside the others has numbers of its own, ``<generation>-<n>``.

``run-<generation>-<attempt>-<retries>-<patience>`` says that an engine's attempt runs, or that its next one follows
within ``patience`` seconds after the file's time or the end of its application. It holds the host and the path of
`Run.folder`, so that a generation that waits on the same host sees that the older one is over.
"""

import json
import logging
import re
import socket
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SubmissionRejected
from ..follow.session import Session
from ..follow.yarn_report import read_yarn_report
from ..hadoop.resourcemanager import ENDED
from ..runtime.common.file_storage import FileStatus
from ..runtime.common.reasons import Reason
from ..staging.staging_directory import CLAIMS_FOLDER, StagingDirectory
from .identity import IGNORE, Identity, attempt_of, generation_of, is_repeatable

logger = logging.getLogger(__name__)

SUBMITTED = ".submitted"
_TAG = re.compile(r"\btfy-([0-9a-f]{40})\b")
_RUN = re.compile(r"run-(\d+)-(\d+)-(\d+)-(\d+)\Z")


@dataclass(frozen=True)
class Claim:
    """One submission of a training.

    Attributes
    ----------
    number : int
        From 0. The next number is used only after this claim's application has ended without success.
    application_id : str
    generation : int
        That of the client that made the claim.
    submitted : bool
        Whether YARN has accepted the application.
    """

    number: int
    application_id: str
    generation: int
    submitted: bool = False


class Claims:
    """The claims of one identity, and the runs of its generations.

    Parameters
    ----------
    session : Session
        Runs have the times of the ResourceManager's clock, because two machines need not agree on theirs.
    user : str or None
        Whose staging directory has the claims. None: the user of the cluster.
    identity : Identity
    """

    def __init__(self, session: Session, user: str | None, identity: Identity):
        self._staging = session.staging(user)
        self._now = session.resourcemanager.now
        self._files = self._staging.filesystem
        self._owner = self._staging.cluster.user
        self._folder = f"{self._staging.cluster.staging}/{CLAIMS_FOLDER}/{identity.hash}"
        self._identity = identity
        self._stem = f"{identity.generation}-" if identity.previous == IGNORE else ""
        self._key = {"key": identity.key} if identity.watched else {}
        run = identity.run
        self._run = run and f"run-{identity.generation}-{identity.attempt}-{run.retries}-{int(run.patience)}"

    def latest(self) -> Claim | None:
        """Return the claim with the highest number; None if there is none.

        Raises
        ------
        SubmissionRejected
            The file belongs to another user, or does not hold a claim.
        """
        return self._latest(self._stem)

    def newer(self) -> Claim | None:
        """Return the latest claim if it belongs to a newer generation, which supersedes this one for ever."""
        claim = self._latest("")
        return claim if claim is not None and claim.generation > self._identity.generation else None

    def _latest(self, stem: str) -> Claim | None:
        pattern = re.compile(rf"{stem}(\d+)\Z")
        found = {status.name: status for status in self._files.list(self._folder)}
        number = max((int(match[1]) for name in found if (match := pattern.match(name))), default=None)
        if number is None:
            return None
        path = f"{self._folder}/{stem}{number}"
        owner = found[f"{stem}{number}"].owner
        if owner != self._owner:
            raise SubmissionRejected(f"{path} belongs to {owner}, not to {self._owner}")
        try:
            document = json.loads(self._files.read(path) or b"")
            return Claim(
                number,
                str(document["id"]),
                int(document["generation"]),
                f"{stem}{number}{SUBMITTED}" in found,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SubmissionRejected(
                f"{path} holds no claim; delete the file when no application of this training runs"
            ) from error

    def make(self, number: int, application_id: str) -> bool:
        """Claim a number for an application id.

        Parameters
        ----------
        number : int
            From 0; one more than that of the latest claim.
        application_id : str
            A reserved id.

        Returns
        -------
        bool
            False if another client has claimed the number.
        """
        self._staging.make_private(self._folder)
        passing = f"{self._folder}/.{uuid.uuid4().hex}"
        document = {"id": application_id, "generation": self._identity.generation, **self._key}
        content = json.dumps(document).encode()
        self._files.replace(passing, content, 0o600)
        if self._files.rename(passing, self._path(number)):
            return True
        self._files.delete(passing)
        # A NameNode that failed over may have renamed the file without answering.
        return self._files.read(self._path(number)) == content

    def mark_submitted(self, number: int) -> None:
        """Record that YARN has accepted the claim's application."""
        self._files.replace(f"{self._path(number)}{SUBMITTED}", b"", 0o600)

    def start_run(self) -> None:
        """Record that this attempt of the engine runs; without an `Identity.run` do nothing."""
        if self._run:
            self._staging.make_private(self._folder)
            folder = self._identity.run and self._identity.run.folder
            content = json.dumps({"host": _host(), "folder": str(folder)} if folder else {}).encode()
            self._files.replace(f"{self._folder}/{self._run}", content, 0o600)
            self.renew_run()
            self.end_run(keep=self._run)

    def renew_run(self) -> None:
        """Record that this attempt still runs."""
        if self._run:
            self._files.set_modified(f"{self._folder}/{self._run}", int(self._now() * 1000))

    def end_run(self, keep: str | None = None) -> None:
        """Record that no further attempt of this generation follows."""
        for name in self._runs():
            if name != keep and name.startswith(f"run-{self._identity.generation}-"):
                self._files.delete(f"{self._folder}/{name}")

    def older_runs(self, applications: Iterable[Mapping[str, Any]]) -> dict[int, float]:
        """Return the older generations that may still train, with the time until which each may.

        Parameters
        ----------
        applications : iterable of mapping
            YARN's objects of the applications with the identity's tag.
        """
        found, until = list(applications), dict[int, float]()
        for name, status in self._runs().items():
            generation, attempt, retries, patience = map(int, _RUN.fullmatch(name).groups())  # type: ignore[union-attr]
            ended = [
                one
                for one in found
                if generation_of(one) == generation and attempt_of(one) >= attempt and one["state"] in ENDED
            ]
            reports = [read_yarn_report(one) for one in ended]
            over = any(report.reason in (Reason.SUCCEEDED, Reason.SUPERSEDED) for report in reports)
            goes_on = retries or not ended or any(map(is_repeatable, reports))
            times = [status.modified, *(int(one.get("finishedTime") or 0) for one in ended)]
            if generation < self._identity.generation and not over and goes_on:
                at = max(times) / 1000 + patience
                if at > self._now() and not self._folder_is_deleted(name):
                    until[generation] = at
        return until

    def _folder_is_deleted(self, run: str) -> bool:
        try:
            document = json.loads(self._files.read(f"{self._folder}/{run}") or b"{}")
        except ValueError:  # It is being written.
            return False
        if document.get("host") != _host():
            return False
        folder = Path(document["folder"])
        try:
            folder.lstat()
        except FileNotFoundError:
            return folder.parent.is_dir()
        except OSError as error:
            logger.debug("%s cannot be examined: %s", folder, error)
        return False

    def _runs(self) -> dict[str, FileStatus]:
        return {status.name: status for status in self._files.list(self._folder) if _RUN.fullmatch(status.name)}

    def _path(self, number: int) -> str:
        return f"{self._folder}/{self._stem}{number}"


def _host() -> str:
    """Return a name that no other machine or container has, and that a new boot changes."""
    return f"{socket.gethostname()} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def watching_caller(staging: StagingDirectory, application: Mapping[str, Any]) -> str | None:
    """Return the key of the identity that waits for an application; None if no claim names one.

    Parameters
    ----------
    staging : StagingDirectory
        Of the application's user.
    application : mapping
        YARN's ``app`` object.
    """
    tag = _TAG.search(str(application.get("applicationTags") or ""))
    if tag is None:
        return None
    folder = f"{staging.cluster.staging}/{CLAIMS_FOLDER}/{tag[1]}"
    for status in staging.filesystem.list(folder):
        if status.owner == staging.cluster.user and not status.name.startswith((".", "run-")):
            with suppress(ValueError, AttributeError):
                document = json.loads(staging.filesystem.read(f"{folder}/{status.name}") or b"{}")
                if document.get("id") == application["id"]:
                    key = document.get("key")
                    return None if key is None else str(key)
    return None

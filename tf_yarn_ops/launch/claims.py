"""`Claims`: files in the staging directory that make a submission happen exactly once, also when its client dies.

``<staging>/claims/<hash>-<generation>-<n>`` names the application id of one submission. It appears by a rename, so it
is always complete, and it is never overwritten. A second file, with ``.submitted`` after the same name, says that YARN
has accepted the application.
"""

import itertools
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import SubmissionRejected
from ..follow.identity import Identity, generation_of
from ..staging.staging_directory import PASSABLE, StagingDirectory

SUBMITTED = ".submitted"
_TAG = re.compile(r"\btfy-([0-9a-f]{40})\b")


@dataclass(frozen=True)
class Claim:
    """One submission of a training.

    Attributes
    ----------
    number : int
        From 0. The next number is used only after this claim's application has ended without success.
    application_id : str
    attempt : int
        The engine's attempt that made the claim.
    submitted : bool
        Whether YARN has accepted the application.
    """

    number: int
    application_id: str
    attempt: int
    submitted: bool = False


class Claims:
    """The claims of one identity's generation.

    Parameters
    ----------
    staging : StagingDirectory
    identity : Identity
    """

    def __init__(self, staging: StagingDirectory, identity: Identity):
        self._files = staging.filesystem
        self._owner = staging.cluster.user
        self._staging = staging.cluster.staging
        self._folder = f"{self._staging}/claims"
        self._stem = f"{identity.hash}-{identity.generation}-"
        self._attempt = identity.attempt
        self._key = {"key": identity.key} if identity.watched else {}

    def latest(self) -> Claim | None:
        """Return the claim with the highest number; None if there is none.

        Raises
        ------
        SubmissionRejected
            The file belongs to another user, or does not hold a claim.
        """
        number = -1
        while status := self._files.status(self._path(number + 1)):
            if status.owner != self._owner:
                raise SubmissionRejected(f"{self._path(number + 1)} belongs to {status.owner}, not to {self._owner}")
            number += 1
        if number < 0:
            return None
        path = self._path(number)
        content = self._files.read(path)
        try:
            document = json.loads(content or b"")
            return Claim(number, str(document["id"]), int(document["attempt"]),
                         self._files.status(f"{path}{SUBMITTED}") is not None)
        except (ValueError, KeyError, TypeError) as error:
            raise SubmissionRejected(
                f"{path} holds no claim; delete the file when no application of this training runs") from error

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
        # The staging directory first: HDFS gives missing parents the mode of the requested directory, and NodeManagers
        # share cached files only below directories that all users may pass.
        self._files.makedirs(self._staging, PASSABLE)
        self._files.makedirs(self._folder, 0o700)
        passing = f"{self._folder}/.{uuid.uuid4().hex}"
        content = json.dumps({"id": application_id, "attempt": self._attempt, **self._key}).encode()
        self._files.create(passing, content, 0o600)
        if self._files.rename(passing, self._path(number)):
            return True
        self._files.delete(passing)
        # A NameNode that failed over may have renamed the file without answering.
        return self._files.read(self._path(number)) == content

    def mark_submitted(self, number: int) -> None:
        """Record that YARN has accepted the claim's application."""
        self._files.create(f"{self._path(number)}{SUBMITTED}", b"", 0o600)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{self._stem}{number}"


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
    stem = f"{staging.cluster.staging}/claims/{tag[1]}-{generation_of(application)}-"
    for number in itertools.count():
        path = f"{stem}{number}"
        status = staging.filesystem.status(path)
        if status is None or status.owner != staging.cluster.user:
            return None
        try:
            document = json.loads(staging.filesystem.read(path) or b"")
            if document["id"] == application["id"]:
                key = document.get("key")
                return None if key is None else str(key)
        except (ValueError, KeyError, TypeError):
            return None
    return None

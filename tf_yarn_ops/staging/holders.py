"""`Holders`: which client holds the lease of an application, in ``<staging>/leases/<application id>``.

The file outlives the application's directory, because it is read after the end: YARN keeps no text of a client that has
gone. `sweep` deletes old ones.
"""

import contextlib
import json

from .staging_directory import PASSABLE, StagingDirectory

LEASES_FOLDER = "leases"


class Holders:
    """The holders of one user's leases.

    Parameters
    ----------
    staging : StagingDirectory
    """

    def __init__(self, staging: StagingDirectory):
        self._files = staging.filesystem
        self._staging = staging.cluster.staging

    def note(self, application_id: str, holder: str, seconds: float) -> None:
        """Write the holder of a lease, and its seconds, over those of an earlier one."""
        content = json.dumps({"holder": holder, "seconds": seconds}).encode()
        # The staging directory first, see `launch.claims`.
        self._files.makedirs(self._staging, PASSABLE)
        self._files.makedirs(f"{self._staging}/{LEASES_FOLDER}", 0o700)
        self._files.replace(self._path(application_id), content, 0o600)

    def last(self, application_id: str) -> tuple[str, float] | None:
        """Return the last holder and the seconds of its lease; None if they are not known."""
        content = self._files.read(self._path(application_id))
        with contextlib.suppress(ValueError, KeyError, TypeError):
            document = json.loads(content or b"")
            return str(document["holder"]), float(document["seconds"])
        return None

    def forget(self, application_id: str) -> None:
        """Delete the file of an application, if there is one."""
        self._files.delete(self._path(application_id))

    def _path(self, application_id: str) -> str:
        return f"{self._staging}/{LEASES_FOLDER}/{application_id}"

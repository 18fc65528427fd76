"""`ApplicationDirectory`: the files of one application alone, its key among them.

``<staging>/<application id>`` is 700 and made before the first file. Every submitter
writes into a folder of its own below it, so that two clients which submit the same
reserved id never touch each other's files; YARN takes the files of the first.
"""

import time
import uuid
from pathlib import Path
from typing import IO

from ..errors import SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import FileStatus, FileSystem
from .local_resource import LocalResource, type_of

SECRET_DIRECTORY, SECRET_FILE = 0o700, 0o600


class ApplicationDirectory:
    """The directory of one application, as one submitter fills it.

    Parameters
    ----------
    cluster : Cluster
    filesystem : FileSystem
    application_id : str
    """

    def __init__(self, cluster: Cluster, filesystem: FileSystem, application_id: str):
        self._cluster = cluster
        self._filesystem = filesystem
        self.path = cluster.directory(application_id)
        self.own = f"{self.path}/{uuid.uuid4().hex[:12]}"
        self._modified = int(time.time()) * 1000
        self._begun = False

    def make(self) -> None:
        """Make it.

        Raises
        ------
        SubmissionRejected
            Somebody else's directory lies there.
        """
        self._begun = True
        self._filesystem.makedirs(self.own, SECRET_DIRECTORY)
        status = self._filesystem.status(self.path)
        if status is None or status.owner != self._cluster.user or status.permission & 0o777 != SECRET_DIRECTORY:
            raise SubmissionRejected(f"the application's directory {self.path} is not ours alone "
                                     f"({status.describe() if status else 'missing'})")

    def planned(self, name: str, data: bytes) -> LocalResource:
        """Give what a file will be once it is `put`: its time is ours to choose.

        So the specification, which names the times of the others, is written beside them:
        closing a small file takes HDFS 10 ms, and 400 ms when it was a moment too early.
        """
        return LocalResource(f"{self._cluster.filesystem}{self.own}/{name}", len(data), self._modified,
                             type=type_of(name))

    def put(self, name: str, data: bytes) -> None:
        """Write a new file, 600."""
        path = f"{self.own}/{name}"
        if not self._filesystem.create(path, data, SECRET_FILE):
            raise SubmissionRejected(f"{path} is there already")
        self._filesystem.set_modified(path, self._modified)

    def upload(self, source: IO[bytes], digest: str, name: str) -> LocalResource:
        """Take a file that should have gone into the cache."""
        folder = f"{self.own}/{digest[:16]}"
        self._filesystem.makedirs(folder, SECRET_DIRECTORY)
        self._filesystem.create(f"{folder}/{name}", source, SECRET_FILE)
        return self._resource(f"{folder}/{name}", self._filesystem.status(f"{folder}/{name}"))

    def _resource(self, path: str, status: FileStatus | None) -> LocalResource:
        if status is None:
            raise SubmissionRejected(f"{path} vanished right after it was written")
        return LocalResource(self._cluster.filesystem + path, status.length, status.modified,
                             type=type_of(Path(path).name))

    def discard(self) -> None:
        """Delete what this submitter wrote, and the directory when nothing else is in it."""
        if not self._begun:
            return
        self._filesystem.delete(self.own)
        if not self._filesystem.list(self.path):
            self._filesystem.delete(self.path)

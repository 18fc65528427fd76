"""`ApplicationDirectory`: the files of a single application, its key among them.

``<staging>/<application id>`` has mode 700 from the start, before it holds a file. Every submitter writes into a folder
of its own below it. So two clients that submit the same reserved id never touch each other's files; YARN uses the files
of the first.
"""

import time
import uuid
from pathlib import Path

from ..errors import SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import FileSystem
from ..runtime.common.file_storage import Content
from .local_resource import LocalResource, type_of

SECRET_DIRECTORY, SECRET_FILE = 0o700, 0o600
#: The job file in the folder of a submitter.
JOB_NAME = "job.json"


class ApplicationDirectory:
    """The directory of one application, with the folder of this submitter.

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
        """Make the directory.

        Raises
        ------
        SubmissionRejected
            The directory belongs to another user, or other users can open it.
        """
        self._begun = True
        self._filesystem.makedirs(self.own, SECRET_DIRECTORY)
        status = self._filesystem.status(self.path)
        if status is None or status.owner != self._cluster.user or status.permission & 0o777 != SECRET_DIRECTORY:
            raise SubmissionRejected(f"the application's directory {self.path} is not ours alone "
                                     f"({status.describe() if status else 'missing'})")

    def planned(self, name: str, data: bytes) -> LocalResource:
        """Return a file as the resource that it will be after `put`.

        `put` sets the modification time that is chosen here. So the specification, which holds the times of the other
        files, can be written at the same time as these files: closing a small file takes HDFS 10 ms, and 400 ms when
        the DataNode reports it a moment too late.
        """
        return LocalResource(f"{self._cluster.filesystem}{self.own}/{name}", len(data), self._modified,
                             type=type_of(name))

    def put(self, name: str, data: bytes) -> None:
        """Write a new file with mode 600; raise SubmissionRejected if it exists already."""
        path = f"{self.own}/{name}"
        if not self._filesystem.create(path, data, SECRET_FILE):
            raise SubmissionRejected(f"{path} exists already")
        self._filesystem.set_modified(path, self._modified)

    def upload(self, source: Content, digest: str, name: str) -> LocalResource:
        """Upload a file that can't go into the cache; return it as a resource."""
        folder = f"{self.own}/{digest[:16]}"
        path = f"{folder}/{name}"
        self._filesystem.makedirs(folder, SECRET_DIRECTORY)
        self._filesystem.create(path, source, SECRET_FILE)
        status = self._filesystem.status(path)
        if status is None:
            raise SubmissionRejected(f"{path} vanished right after it was written")
        return LocalResource(self._cluster.filesystem + path, status.length, status.modified,
                             type=type_of(Path(path).name))

    def discard(self) -> None:
        """Delete the files of this submitter, and then the directory if it is empty."""
        if not self._begun:
            return
        self._filesystem.delete(self.own)
        if not self._filesystem.list(self.path):
            self._filesystem.delete(self.path)

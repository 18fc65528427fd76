"""`EventCopies`: a local copy of the event files below a folder of HDFS, brought up to date piece by piece.

TensorBoard reads the copy, so that its machine needs no library of HDFS. In the cluster the copy is made by the task of
TensorBoard (`hdfs.Hdfs` reads), elsewhere by ``ytf tensorboard``.
"""

import errno
import os
import shutil
from typing import Dict, Set

from ..common.file_storage import PIECE, FileStatus, Storage, walk_files

#: Part of the name of each event file.
EVENTS = "tfevents"
#: Files in folders of this name belong to TensorBoard's plugins: traces of the profiler, labels of embeddings.
PLUGINS = "plugins"
#: Seconds between two looks for news, as long as TensorBoard takes between two looks at its files.
COPY_INTERVAL = 5.0
#: Between two looks there is at least this multiple of the time of one, so that a large tree costs the NameNode little.
COPY_REST = 20


class EventCopies:
    """Copies the event files below a folder.

    Parameters
    ----------
    source : Storage
    path : str
        The folder, absolute.
    folder : str
        The local folder; it is made.
    plugins : bool, optional
        Whether also the files of TensorBoard's plugins. Some name other files of this machine, which TensorBoard then
        shows: not for the jobs of others. Default True.

    Attributes
    ----------
    path : str
        The folder; after a change the copies go on with the same files there.
    """

    def __init__(self, source: Storage, path: str, folder: str, plugins: bool = True):
        self._plugins = plugins
        self._source, self.path, self._folder = source, path.rstrip("/") or "/", folder
        os.makedirs(folder, exist_ok=True)
        self._copied: Dict[str, int] = {}

    def refresh(self) -> int:
        """Copy what is new, and delete the copies of files that are gone; return the number of new bytes.

        Raises
        ------
        OSError
            The file system refuses, or a file needs more than half of the disk's free space.
        """
        found: Set[str] = set()
        fetched = 0
        for name, entry in walk_files(self._source, self.path, hidden=False):
            if EVENTS in entry.name or (self._plugins and PLUGINS in os.path.dirname(name).split("/")):
                found.add(name)
                fetched += self._copy(name, entry)
        for name in set(self._copied) - found:
            self._remove(name)
        return fetched

    def _copy(self, name: str, entry: FileStatus) -> int:
        local = os.path.join(self._folder, name)
        if name not in self._copied:
            os.makedirs(os.path.dirname(local), exist_ok=True)
            open(local, "wb").close()
        copied = self._copied.setdefault(name, 0)
        if copied == entry.length and not _may_grow_unseen(entry, copied):
            return 0
        if entry.length - copied > shutil.disk_usage(self._folder).free // 2:
            raise OSError(errno.ENOSPC, "the copy of %s needs more than half of the free space" % name, self._folder)
        path = os.path.join(self.path, name)
        while piece := self._source.read_appended(path, self._copied[name], entry.length, PIECE):
            with open(local, "ab") as file:
                file.write(piece)
            self._copied[name] += len(piece)
        fetched = self._copied[name] - copied
        if piece is None and self._copied[name]:
            self._remove(name)  # another, shorter file has its name now; the next look copies it
        return fetched

    def _remove(self, name: str) -> None:
        del self._copied[name]
        os.unlink(os.path.join(self._folder, name))


def _may_grow_unseen(entry: FileStatus, copied: int) -> bool:
    """Return whether the file may have more bytes than the NameNode knows, after ``copied`` bytes of it."""
    full_blocks = entry.length == 0 or (entry.block_size > 0 and entry.length % entry.block_size == 0)
    return full_blocks or copied > entry.length

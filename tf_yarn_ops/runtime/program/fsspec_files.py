"""`HdfsFileSystem`: ``hdfs://`` of fsspec, which Pandas, Dask, PyArrow and others open with it."""

import io
from typing import Any, Dict, List

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from ..common.file_storage import FileStatus
from ..common.hdfs_file import HdfsReader, HdfsWriter
from .places import HDFS_SCHEME, find_hdfs, split_url

#: Bytes that are collected before they are sent, or asked for.
_BUFFER = 1024 * 1024


class HdfsFileSystem(AbstractFileSystem):  # type: ignore[misc]  # the user's fsspec has no types
    """A file system of HDFS; its calls raise OSError.

    Parameters
    ----------
    host : str, optional
        A NameNode, or the name of a pair. Default: the cluster's default file system.
    port : int, optional
    user : str, optional
        Who asks, on a cluster without Kerberos.
    """

    protocol = "hdfs"
    root_marker = "/"

    def __init__(self, host: str = "", port: int = 0, user: str = "", **options: Any):
        super().__init__(host=host, port=port, user=user, **options)
        if host == "default":  # as PyArrow writes it
            host, port = "", 0
        self._hdfs = find_hdfs("%s:%d" % (host, port) if port else host, user or "")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, (list, tuple)):
            return [cls._strip_protocol(item) for item in path]
        return split_url(str(path))[1]

    @staticmethod
    def _get_kwargs_from_urls(url: str) -> Dict[str, Any]:
        host, _, port = split_url(url)[0].partition(":")
        return {"host": host, **({"port": int(port)} if port else {})} if host else {}

    def unstrip_protocol(self, name: str) -> str:
        host, port = self.storage_options.get("host", ""), self.storage_options.get("port")
        return "%s%s%s%s" % (HDFS_SCHEME, host, ":%s" % port if port else "", self._strip_protocol(name))

    def info(self, path: str, **_: Any) -> Dict[str, Any]:
        name = self._strip_protocol(path)
        return _entry(name, self._hdfs.status(name))

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        name = self._strip_protocol(path)
        own = self.info(name)
        found = (
            [own]
            if own["type"] == "file"
            else [_entry("%s/%s" % (name.rstrip("/"), status.name), status) for status in self._hdfs.list(name)]
        )
        return found if detail else [entry["name"] for entry in found]

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **_: Any) -> Any:
        size = block_size if isinstance(block_size, int) else _BUFFER
        if mode == "rb":
            return _Reader(HdfsReader(self._hdfs, path), size)
        if mode == "xb" and self._hdfs.exists(path):
            raise FileExistsError("%s exists" % path)
        return _Writer(HdfsWriter(self._hdfs, path, append=mode == "ab"), size)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self.makedirs(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        name = self._strip_protocol(path)
        if not exist_ok and self._hdfs.exists(name):
            raise FileExistsError("%s exists" % path)
        self._hdfs.makedirs(name, 0o755)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        self._hdfs.move_over(self._strip_protocol(path1), self._strip_protocol(path2))

    def rm(self, path: Any, recursive: bool = False, maxdepth: Any = None) -> None:
        if maxdepth is not None:
            return super().rm(path, recursive, maxdepth)  # type: ignore[no-any-return]
        for name in self.expand_path(path):
            self.rm_file(name, recursive)

    def rm_file(self, path: str, recursive: bool = False) -> None:
        if not self._hdfs.delete(self._strip_protocol(path), recursive):
            raise FileNotFoundError("%s does not exist" % path)

    rmdir = rm_file

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            return self.makedirs(path2, exist_ok=True)
        with self.open(path1) as source, self.open(path2, "wb") as target:
            while piece := source.read(_BUFFER):
                target.write(piece)

    def modified(self, path: str) -> Any:
        return self.info(path)["mtime"]


class _Reader(io.BufferedReader):
    """A buffered reader; PyArrow asks for its size."""

    @property
    def size(self) -> int:
        return int(self.raw.size)  # type: ignore[attr-defined]


class _Writer(io.BufferedWriter):
    """A buffered writer; after `flush` everybody can read what was written."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()


def _entry(name: str, status: FileStatus) -> Dict[str, Any]:
    return {
        "name": name,
        "size": status.length,
        "type": "directory" if status.is_directory else "file",
        "mtime": status.modified / 1000,
        "owner": status.owner,
        "permission": "%o" % status.permission,
    }


def register(module: Any) -> None:
    """Make `HdfsFileSystem` the one of ``hdfs://`` in fsspec."""
    module.register_implementation("hdfs", HdfsFileSystem, clobber=True)

"""Register ``hdfs://`` with TensorFlow's C++, through its interface for modular file systems.

TensorFlow calls functions of Python by way of ctypes: no compiled plug-in is needed, and the client is that of
`common.hdfs`. So ``tf.io.gfile``, datasets, checkpoints, saved models and summary writers open ``hdfs://``.

References
----------
TensorFlow, ``tensorflow/c/experimental/filesystem/filesystem_interface.h``, whose tables have version 0, and
``modular_filesystem_registration.cc``: `_REGISTER` is what ``tf.experimental.register_filesystem_plugin`` calls.
"""

import atexit
import ctypes
import errno
import importlib.util
import itertools
import logging
import os
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..common.hdfs import Hdfs
from ..common.hdfs_file import HdfsReader, HdfsWriter
from .places import find_hdfs, split_url

logger = logging.getLogger(__name__)

_LIBRARY = "libtensorflow_cc.so.2"
_REGISTER = "_ZN10tensorflow23filesystem_registration28RegisterFilesystemPluginImplEPK23TF_FilesystemPluginInfo"
#: TensorFlow's codes of errors by Python's; UNKNOWN for the others.
_CODES = (
    (FileNotFoundError, 5),
    (FileExistsError, 6),
    (PermissionError, 7),
    (IsADirectoryError, 9),
    (NotADirectoryError, 9),
    (OSError, 2),
)
_EXHAUSTED, _PRECONDITION, _OUT_OF_RANGE = 8, 9, 11
#: The content of an absl::Status without an error.
_OK = 1
_ERRNOS = {errno.EDQUOT: _EXHAUSTED, errno.ENOTEMPTY: _PRECONDITION}
#: The tables of functions in their order, which end with the last function that is not left to TensorFlow.
_FILESYSTEM = (
    "init",
    "cleanup",
    "new_random_access_file",
    "new_writable_file",
    "new_appendable_file",
    "",
    "create_dir",
    "recursively_create_dir",
    "delete_file",
    "delete_dir",
    "",
    "rename_file",
    "",
    "path_exists",
    "",
    "stat",
    "",
    "",
    "translate_name",
    "get_children",
)
_RANDOM_ACCESS_FILE = ("release", "read")
_WRITABLE_FILE = ("release", "append", "position", "flush", "flush", "close")


class _Opened(ctypes.Structure):
    """TF_RandomAccessFile or TF_WritableFile: its number in `_Bridge.files`."""

    _fields_ = [("number", c_void_p)]


class _Statistics(ctypes.Structure):
    _fields_ = [("length", c_int64), ("mtime_nsec", c_int64), ("is_directory", ctypes.c_bool)]


class _Plugin(ctypes.Structure):
    """TF_FilesystemPluginOps; each table has ABI, API and size before it."""

    _fields_ = [("scheme", c_void_p)] + [
        (name, kind)
        for table in ("filesystem", "random_access_file", "writable_file", "read_only_memory_region")
        for name, kind in ((table + "_versions", c_int * 2), (table + "_size", c_size_t), (table, c_void_p))
    ]


class _PluginInfo(ctypes.Structure):
    _fields_ = [("schemes", c_size_t), ("plugins", c_void_p), ("allocate", c_void_p), ("free", c_void_p)]


class _Result(ctypes.Structure):
    """absl::Status, which C++ returns in memory; larger than it is, so that C does so as well."""

    _fields_ = [("status", c_uint64), ("unused", c_uint64 * 3)]


_PATH, _FILE, _STATUS = c_char_p, ctypes.POINTER(_Opened), c_void_p


class _Bridge:
    """The functions that TensorFlow calls; those with a status raise OSError."""

    def __init__(self, tensorflow: ctypes.CDLL):
        self._set_status, self._libc = tensorflow.TF_SetStatus, ctypes.CDLL(None)
        self._set_status.argtypes, self._set_status.restype = (c_void_p, c_int, c_char_p), None
        for function, argument in ((self._libc.malloc, c_size_t), (self._libc.strdup, c_char_p)):
            function.argtypes, function.restype = (argument,), c_void_p
        self.files: Dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self.ending = False
        self._kept: List[Any] = []

    def register(self, register: Any) -> int:
        """Register the file system; return C++'s absl::Status, 1 for success."""
        plugin = _Plugin(scheme=self._libc.strdup(b"hdfs"))
        for table, names in (
            ("filesystem", _FILESYSTEM),
            ("random_access_file", _RANDOM_ACCESS_FILE),
            ("writable_file", _WRITABLE_FILE),
        ):
            content = (c_void_p * len(names))(*(self._function(name) if name else None for name in names))
            setattr(plugin, table + "_size", ctypes.sizeof(content))
            setattr(plugin, table, self._copy(content))
        info = _PluginInfo(
            1,
            self._copy(plugin),
            ctypes.cast(self._libc.malloc, c_void_p).value,
            ctypes.cast(self._libc.free, c_void_p).value,
        )
        register.argtypes, register.restype = (ctypes.POINTER(_PluginInfo),), _Result
        return int(register(info).status)

    def _copy(self, content: Any) -> Any:
        """Return memory with a copy; TensorFlow frees it."""
        place = self._libc.malloc(ctypes.sizeof(content))
        ctypes.memmove(place, ctypes.byref(content), ctypes.sizeof(content))
        return place

    def _function(self, name: str) -> Any:
        result, arguments = _TYPES[name]
        function = getattr(self, name)
        made = ctypes.CFUNCTYPE(result, *arguments)(self._guarded(function) if arguments[-1] is _STATUS else function)
        self._kept.append(made)
        return ctypes.cast(made, c_void_p)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that sets the status, its last argument; C++ knows no exceptions of Python."""

        def call(*arguments: Any) -> Any:
            code, text, result = 0, "", -1
            try:
                result = function(*arguments[:-1])
            except _Short as short:
                code, text, result = _OUT_OF_RANGE, "end of the file", short.args[0]
            except Exception as error:
                code = _ERRNOS.get(getattr(error, "errno", None) or 0) or next(
                    (code for kind, code in _CODES if isinstance(error, kind)), 2
                )
                text = str(error)
            self._set_status(arguments[-1], code, text.encode())
            return result

        return call

    def _open(self, opened: Any, file: Any) -> None:
        opened[0].number = next(self._numbers)
        self.files[opened[0].number] = file

    def init(self, _: int) -> None:
        """Do nothing: the client is made at the first path, and goes with the program."""

    cleanup = init

    def new_random_access_file(self, _: int, path: bytes, opened: Any) -> None:
        self._open(opened, HdfsReader(*_place(path)))

    def new_writable_file(self, _: int, path: bytes, opened: Any) -> None:
        self._open(opened, HdfsWriter(*_place(path)))

    def new_appendable_file(self, _: int, path: bytes, opened: Any) -> None:
        self._open(opened, HdfsWriter(*_place(path), append=True))

    def create_dir(self, _: int, path: bytes) -> None:
        hdfs, name = _place(path)
        if hdfs.exists(name):
            raise FileExistsError("%s exists" % path.decode())
        hdfs.makedirs(name, 0o755)

    def recursively_create_dir(self, _: int, path: bytes) -> None:
        hdfs, name = _place(path)
        hdfs.makedirs(name, 0o755)

    def delete_file(self, _: int, path: bytes) -> None:
        hdfs, name = _place(path)
        if hdfs.status(name).is_directory:
            raise IsADirectoryError("%s is a directory" % path.decode())
        hdfs.delete(name)

    def delete_dir(self, _: int, path: bytes) -> None:
        hdfs, name = _place(path)
        if not hdfs.status(name).is_directory:
            raise NotADirectoryError("%s is no directory" % path.decode())
        hdfs.delete(name, recursive=False)

    def rename_file(self, _: int, source: bytes, target: bytes) -> None:
        hdfs, name = _place(source)
        hdfs.move_over(name, split_url(target.decode())[1])

    def path_exists(self, _: int, path: bytes) -> None:
        hdfs, name = _place(path)
        hdfs.status(name)

    def stat(self, _: int, path: bytes, found: Any) -> None:
        hdfs, name = _place(path)
        status = hdfs.status(name)
        found[0] = _Statistics(status.length, status.modified * 1_000_000, status.is_directory)

    def translate_name(self, _: int, path: bytes) -> Any:
        return self._libc.strdup(path)

    def get_children(self, _: int, path: bytes, entries: Any) -> int:
        hdfs, name = _place(path)
        if not hdfs.status(name).is_directory:
            raise NotADirectoryError("%s is no directory" % path.decode())
        names = [self._libc.strdup(entry.name.encode()) for entry in hdfs.list(name)]
        entries[0] = self._copy((c_void_p * len(names))(*names))
        return len(names)

    def release(self, opened: Any) -> None:
        file = self.files.pop(opened[0].number, None)
        try:
            file.close()
        except (OSError, AttributeError) as error:
            logger.warning("a file of HDFS is not closed well: %s", error)

    def read(self, opened: Any, offset: int, size: int, buffer: int) -> int:
        if self.ending:
            raise OSError("the program ends")
        count: int = self.files[opened[0].number].read_at(offset, (ctypes.c_char * size).from_address(buffer))
        if count < size:
            raise _Short(count)
        return count

    def append(self, opened: Any, data: int, size: int) -> None:
        self.files[opened[0].number].write((ctypes.c_char * size).from_address(data))

    def position(self, opened: Any) -> int:
        return int(self.files[opened[0].number].tell())

    def flush(self, opened: Any) -> None:
        self.files[opened[0].number].flush()

    def close(self, opened: Any) -> None:
        self.files[opened[0].number].close()


class _Short(Exception):
    """A read met the end of the file, after so many bytes."""


#: Result and arguments of each function; a status comes last.
_TYPES: Dict[str, Tuple[Any, Sequence[Any]]] = {
    "init": (None, (c_void_p, _STATUS)),
    "cleanup": (None, (ctypes.POINTER(_Opened),)),
    **dict.fromkeys(
        ("new_random_access_file", "new_writable_file", "new_appendable_file"),
        (None, (c_void_p, _PATH, _FILE, _STATUS)),
    ),
    **dict.fromkeys(
        ("create_dir", "recursively_create_dir", "delete_file", "delete_dir", "path_exists"),
        (None, (c_void_p, _PATH, _STATUS)),
    ),
    "rename_file": (None, (c_void_p, _PATH, _PATH, _STATUS)),
    "stat": (None, (c_void_p, _PATH, ctypes.POINTER(_Statistics), _STATUS)),
    "translate_name": (c_void_p, (c_void_p, _PATH)),
    "get_children": (c_int, (c_void_p, _PATH, ctypes.POINTER(c_void_p), _STATUS)),
    "release": (None, (_FILE,)),
    "read": (c_int64, (_FILE, c_uint64, c_size_t, c_void_p, _STATUS)),
    "append": (None, (_FILE, c_void_p, c_size_t, _STATUS)),
    "position": (c_int64, (_FILE, _STATUS)),
    "flush": (None, (_FILE, _STATUS)),
    "close": (None, (_FILE, _STATUS)),
}


#: Keeps what C++ points to.
_bridges: List[_Bridge] = []


def _place(path: bytes) -> Tuple[Hdfs, str]:
    authority, name = split_url(path.decode())
    return find_hdfs(authority), name


def register(module: Any) -> None:
    """Register ``hdfs://`` with TensorFlow, unless the environment has tensorflow-io, whose plug-in has it."""
    if importlib.util.find_spec("tensorflow_io"):
        return
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(module.__file__), _LIBRARY))
        function = getattr(library, _REGISTER)
    except (OSError, AttributeError) as error:
        logger.warning("This TensorFlow does not open hdfs://: %s", error)
        return
    bridge = _Bridge(library)
    if bridge.register(function) != _OK:
        logger.warning("TensorFlow refuses our hdfs://; another plug-in may have it")
    _bridges.append(bridge)
    atexit.register(setattr, bridge, "ending", True)

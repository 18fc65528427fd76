"""``hdfs://`` URLs of PyArrow, and so of ``pandas.read_parquet``, go through fsspec instead of libhdfs."""

import importlib
from typing import Any, Tuple

from .places import HDFS_SCHEME


def register(module: Any) -> None:
    """Let ``FileSystem.from_uri`` of the module ``pyarrow.fs`` open ``hdfs://``.

    A class of C has no attributes to set, so a subclass takes its name. All its instances are those of the class.
    """
    original: Any = module.FileSystem

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, other: Any) -> bool:
            return issubclass(other, original)

    class FileSystem(original, metaclass=Kind):  # type: ignore[misc]
        __doc__ = original.__doc__

        @staticmethod
        def from_uri(uri: Any) -> Tuple[Any, str]:
            if not str(uri).startswith(HDFS_SCHEME):
                return original.from_uri(uri)  # type: ignore[no-any-return]
            files, path = importlib.import_module("fsspec.core").url_to_fs(str(uri))
            return module.PyFileSystem(module.FSSpecHandler(files)), path

    module.FileSystem = FileSystem

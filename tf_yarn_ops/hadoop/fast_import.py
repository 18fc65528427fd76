"""Import modules without their slow parts, which are called nowhere here, or rarely.

The command line of httpx, with rich and click, takes 0.1 s. In a cold process ``import skein`` imports setuptools for
one comparison of versions: 0.1 to 0.2 s. From Python 3.12 on an interpreter may lack setuptools, and Skein could not be
imported at all. gRPC takes a tenth of a submission, and only calls to Skein's own processes use it.
"""

import importlib
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()


def import_httpx() -> Any:
    """Return the module ``httpx``, without its command line."""
    # None tells the import system that a module can't be imported; httpx expects that.
    with stubbed({"httpx._main": None}, unless="httpx"):
        import httpx
    return httpx


def import_skein() -> Any:
    """Return the module ``skein``, without setuptools; where no other thread runs, its first call imports gRPC."""
    version: Any = types.ModuleType("distutils.version")
    version.LooseVersion = _RecentVersion
    stubs = {"distutils": types.ModuleType("distutils"), "distutils.version": version}
    # Another thread could import gRPC meanwhile, and would find the stub.
    if "grpc" not in sys.modules and threading.active_count() == 1:
        stubs["grpc"] = grpc = types.ModuleType("grpc")
        vars(grpc).update(__version__="1.60", __getattr__=_from_grpc)
    with stubbed(stubs, unless="skein"):
        import skein
    return skein


@contextmanager
def stubbed(modules: dict[str, Any], unless: str) -> Iterator[None]:
    """Let other objects stand for modules, only while an import runs.

    Nothing is done if the module ``unless`` is imported already, or one of the modules is.
    """
    with _lock:
        stubs = {} if sys.modules.keys() & {unless, *modules} else modules
        sys.modules.update(stubs)
        try:
            yield
        finally:
            for name in stubs:
                sys.modules.pop(name, None)


def _from_grpc(name: str) -> Any:
    if name.startswith("__"):  # of the import system
        raise AttributeError(name)
    return getattr(importlib.import_module("grpc"), name)


class _RecentVersion(str):
    """Stands for ``LooseVersion``: Skein asks once, whether gRPC is below 1.18, and this project needs 1.60."""

    def __lt__(self, other: str) -> bool:
        return False

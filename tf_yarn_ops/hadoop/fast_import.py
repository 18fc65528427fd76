"""Import modules without their slow parts, which nobody here calls.

The command line of httpx, with rich and click, takes 0.1 s. In a cold process ``import skein`` imports setuptools for
one comparison of versions: 0.1 to 0.2 s. From Python 3.12 on an interpreter may lack setuptools, and Skein could not be
imported at all.
"""

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
    """Return the module ``skein``, without setuptools."""
    version: Any = types.ModuleType("distutils.version")
    version.LooseVersion = _Version
    package: Any = types.ModuleType("distutils")
    package.version = version
    with stubbed({"distutils": package, "distutils.version": version}, unless="skein"):
        import skein
    return skein


@contextmanager
def stubbed(modules: dict[str, Any], unless: str) -> Iterator[None]:
    """Let other objects stand for modules, only while an import runs.

    Nothing is done if the module ``unless`` is imported already, or one of the modules is.
    """
    with _lock:
        absent = {name: module for name, module in modules.items() if name not in sys.modules}
        if unless in sys.modules or len(absent) < len(modules):
            yield
            return
        sys.modules.update(absent)
        try:
            yield
        finally:
            for name in absent:
                sys.modules.pop(name, None)


class _Version:
    """The part of ``LooseVersion`` that Skein uses: whether the first version is below the second."""

    def __init__(self, text: str):
        self.numbers = [int(part) for part in text.split(".")[:2]]

    def __lt__(self, other: str) -> bool:
        return self.numbers < _Version(other).numbers

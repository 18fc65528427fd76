"""Import Skein and httpx without their slow parts, which this package never calls.

In a cold process ``import skein`` imports setuptools for one comparison of versions, and ``import httpx`` its command
line with rich and click: together 0.3 of 0.8 seconds. Both are hidden only while the import runs.
"""

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()


def import_skein() -> Any:
    """Return the module ``skein``; on Python 3.12 and later, setuptools is not needed."""
    version: Any = types.ModuleType("distutils.version")
    version.LooseVersion = _Version
    package: Any = types.ModuleType("distutils")
    package.version = version
    with _standing_in({"distutils": package, "distutils.version": version}, unless="skein"):
        import skein
    return skein


def import_httpx() -> Any:
    """Return the module ``httpx``, without its command line."""
    # None tells the import system that a module can't be imported; httpx expects that.
    with _standing_in({"httpx._main": None}, unless="httpx"):
        import httpx
    return httpx


@contextmanager
def _standing_in(modules: dict[str, Any], unless: str) -> Iterator[None]:
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

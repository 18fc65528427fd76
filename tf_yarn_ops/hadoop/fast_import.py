"""Skein and httpx without the parts of them that cost time and that nobody here calls.

In a cold process ``import skein`` pulls in setuptools for the sake of one version
comparison, and ``import httpx`` its own command line with rich and click: together
0.3 of 0.8 seconds. Both are kept away while the import runs, and only then.
"""

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()


def import_skein() -> Any:
    """Give the module ``skein``; works on Python >= 3.12 without setuptools as well."""
    version: Any = types.ModuleType("distutils.version")
    version.LooseVersion = _Version
    package: Any = types.ModuleType("distutils")
    package.version = version
    with _standing_in({"distutils": package, "distutils.version": version}, unless="skein"):
        import skein
    return skein


def import_httpx() -> Any:
    """Give the module ``httpx``, its command line left out."""
    # None is the import system's own mark for "not to be had"; httpx is prepared for that.
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
    """As much of ``LooseVersion`` as Skein asks for: is the first smaller than the second."""

    def __init__(self, text: str):
        self.numbers = [int(part) for part in text.split(".")[:2]]

    def __lt__(self, other: str) -> bool:
        return self.numbers < _Version(other).numbers

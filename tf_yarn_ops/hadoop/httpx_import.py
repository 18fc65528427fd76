"""Import httpx without its slow part, which this package never calls: its command line with rich and click, 0.1 s."""

from typing import Any

from .fast_import import standing_in


def import_httpx() -> Any:
    """Return the module ``httpx``, without its command line."""
    # None tells the import system that a module can't be imported; httpx expects that.
    with standing_in({"httpx._main": None}, unless="httpx"):
        import httpx
    return httpx

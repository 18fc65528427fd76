"""Free ports on 127.0.0.1, below the range that the kernel uses for outgoing connections.

A stopped daemon can therefore start on its old port again: no connection gets it in between.
"""

import itertools
import random
import socket
from collections.abc import Collection, Mapping

from ..errors import MiniClusterError

_RANGE = range(10000, 20000)


def choose_ports(names: Collection[str], before: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a free port for each name: that of an earlier start, ``before``, if it is still free.

    Raises
    ------
    MiniClusterError
        Too few ports of the range are free.
    """
    before = before or {}
    kept = {name: before[name] for name in names if name in before and is_free(before[name])}
    wanted = [name for name in names if name not in kept]
    taken = {*before.values()}
    # In random order, which a set of numbers has not: clusters that start at the same time must not choose the same.
    candidates = random.SystemRandom().sample(_RANGE, len(_RANGE))
    free = tuple(itertools.islice((port for port in candidates if port not in taken and is_free(port)), len(wanted)))
    if len(free) < len(wanted):
        raise MiniClusterError(f"no free ports between {_RANGE.start} and {_RANGE.stop} on 127.0.0.1")
    return {**kept, **dict(zip(wanted, free, strict=True))}


def taken_ports(ports: Mapping[str, int]) -> dict[str, int]:
    """Return those of the named ports on which another program listens."""
    return {name: port for name, port in ports.items() if not is_free(port)}


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # Like Hadoop's servers, ignore connections that linger from a daemon that has just stopped.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

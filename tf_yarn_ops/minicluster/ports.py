"""Free ports on 127.0.0.1, below the range from which the kernel serves outgoing connections.

A daemon that is stopped for a test gets its port back: nothing else is handed a
port from this range by chance.
"""

import itertools
import random
import socket
from collections.abc import Iterable, Mapping

from ..errors import MiniClusterError

_RANGE = range(10000, 20000)
_TRIES = 2000


def choose_ports(names: Iterable[str]) -> dict[str, int]:
    """Give every name a free port of its own.

    Raises
    ------
    MiniClusterError
        Thousands of ports were tried and are taken.
    """
    wanted = tuple(names)
    candidates = random.SystemRandom().sample(_RANGE, _TRIES)
    free = tuple(itertools.islice(filter(is_free, candidates), len(wanted)))
    if len(free) < len(wanted):
        raise MiniClusterError(f"no free ports between {_RANGE.start} and {_RANGE.stop} on 127.0.0.1")
    return dict(zip(wanted, free, strict=True))


def taken_ports(ports: Mapping[str, int]) -> dict[str, int]:
    """Give those of the named ports that another program listens on."""
    return {name: port for name, port in ports.items() if not is_free(port)}


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As Hadoop's servers do: connections that linger from a daemon just stopped do not count.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

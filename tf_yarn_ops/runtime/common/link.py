"""A connection to the coordinator's port over mutual TLS, for callers that poll; nothing blocks for long.

Kept small, for agents: no asyncio, no logging.
"""

import os
import select
import socket
import ssl
import time
from typing import Any, Dict, List, Sequence, Tuple

from . import protocol

#: The most addresses of one host that are tried; each takes a socket for each port.
MAX_ADDRESSES = 8
_UNANSWERED = "no answer; the host is down, or a firewall drops what comes from here"
#: How long the other end may take to receive one message, seconds.
SEND_SECONDS = 10.0
#: The most bytes that `Link.receive` takes at once; without a line among them the connection ends.
MAX_RECEIVED = 4 * 1024 * 1024


class LinkLost(Exception):
    """The connection is lost or could not be made."""


def connect(host: str, ports: Sequence[int], context: ssl.SSLContext) -> "Link":
    """Connect to the port that answers with the job's certificate.

    Parameters
    ----------
    host : str
        Host of the application master.
    ports : sequence of int
        All are tried at once, at all addresses of the host.
    context : ssl.SSLContext

    Raises
    ------
    LinkLost
        No port answered within `CONTACT_SECONDS`. The message names the host, the ports, and why each address failed.
    """
    deadline = time.monotonic() + protocol.CONTACT_SECONDS
    tries: Dict[int, Tuple[socket.socket, str]] = {}
    whys: Dict[str, str] = {}
    poll = select.poll()
    try:
        for family, address in _addresses_of(host):
            whys[address[0]] = _UNANSWERED
            for port in ports:
                try:
                    sock = socket.socket(family, socket.SOCK_STREAM)
                except OSError as error:  # a node without IPv6
                    whys[address[0]] = str(error.strerror)
                    break
                sock.setblocking(False)
                sock.connect_ex((address[0], port, *address[2:]))
                tries[sock.fileno()] = sock, address[0]
                poll.register(sock, select.POLLOUT)
        while tries and time.monotonic() < deadline:
            for number, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                poll.unregister(number)
                sock, where = tries.pop(number)
                failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    whys[where] = os.strerror(failed)
                    sock.close()
                    continue
                try:
                    sock.settimeout(max(0.1, deadline - time.monotonic()))
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return Link(context.wrap_socket(sock))
                except OSError as error:
                    whys[where] = "another program answers: %s" % error
                    sock.close()
    finally:
        for sock, _ in tries.values():
            sock.close()
    faults = "; ".join("%s: %s" % why for why in whys.items())
    raise LinkLost("no coordinator on %s, ports %d to %d: %s" % (host, ports[0], ports[-1], faults))


def _addresses_of(host: str) -> List[Tuple[int, Tuple[Any, ...]]]:
    """Return the families and addresses of a host, each once."""
    try:
        found = socket.getaddrinfo(host, 0, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: more than 63 letters without a dot
        raise LinkLost("no address for %s: %s" % (host, error)) from None
    return list({(int(family), address): None for family, _, _, _, address in found})[:MAX_ADDRESSES]


class Link:
    """A connection to the coordinator that sends and receives whole messages."""

    def __init__(self, sock: ssl.SSLSocket):
        self._socket = sock
        self._buffer = b""
        sock.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        return self._socket.fileno()

    def send(self, line: bytes) -> None:
        """Send one message; raise LinkLost if the coordinator does not take it within `SEND_SECONDS`."""
        try:
            self._socket.settimeout(SEND_SECONDS)
            self._socket.sendall(line)
            self._socket.setblocking(False)
        except OSError as error:
            raise LinkLost(str(error)) from None

    def receive(self) -> List[Dict[str, Any]]:
        """Return the messages that have arrived; raise LinkLost at the end of the stream, after the last of them."""
        ended = None
        try:
            while len(self._buffer) < MAX_RECEIVED:
                chunk = self._socket.recv(65536)
                if not chunk:
                    ended = "the coordinator closed the connection"
                    break
                self._buffer += chunk
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError as error:
            ended = str(error)
        if len(self._buffer) >= MAX_RECEIVED:
            ended = "more than %d bytes at once" % MAX_RECEIVED
        *lines, self._buffer = self._buffer.split(b"\n")
        if ended is not None and not lines:
            raise LinkLost(ended)
        return [protocol.decode(line) for line in lines]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

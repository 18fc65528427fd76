"""The agent's end of the connection: find the coordinator, speak lines over mutual TLS.

Sockets are driven by the caller's `poll`; nothing here blocks for longer than
`CONNECT_SECONDS`. Made for small size: no asyncio, no logging.
"""

import select
import socket
import ssl
import time
from typing import Any, Dict, List, Sequence

from ..common.contract import CERTIFICATE_FILE, KEY_FILE
from ..common.protocol import CONNECT_SECONDS, decode


class LinkLost(Exception):
    """The connection is gone or could not be made."""


def reserve_port() -> socket.socket:
    """Bind a free port with SO_REUSEPORT and without listening; it is ours until the socket is closed."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("", 0))
    return held


def client_context() -> ssl.SSLContext:
    """Give the context in which both ends prove that they hold the job's key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(CERTIFICATE_FILE)
    context.load_cert_chain(CERTIFICATE_FILE, KEY_FILE)
    return context


def connect(host: str, ports: Sequence[int], context: ssl.SSLContext) -> "Link":
    """Connect to whichever port answers with the job's certificate.

    Parameters
    ----------
    host : str
        The application master's.
    ports : sequence of int
        All are tried at once.
    context : ssl.SSLContext

    Raises
    ------
    LinkLost
        When none did within `CONNECT_SECONDS`; says what was tried.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    tries: Dict[int, socket.socket] = {}
    try:
        family, _, _, _, address = socket.getaddrinfo(host, ports[0], 0, socket.SOCK_STREAM)[0]
    except OSError as error:
        raise LinkLost("no address for %s: %s" % (host, error)) from None
    poll = select.poll()
    for port in ports:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex((address[0], port))
        tries[sock.fileno()] = sock
        poll.register(sock, select.POLLOUT)
    why = "nobody listens"
    try:
        while tries and time.monotonic() < deadline:
            for number, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                poll.unregister(number)
                sock = tries.pop(number)
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    sock.close()
                    continue
                try:
                    sock.settimeout(max(0.1, deadline - time.monotonic()))
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return Link(context.wrap_socket(sock))
                except OSError as error:
                    why = "a stranger answers: %s" % error
                    sock.close()
    finally:
        for sock in tries.values():
            sock.close()
    raise LinkLost("no coordinator on %s, ports %d to %d: %s" % (host, ports[0], ports[-1], why))


class Link:
    """A connection to the coordinator: whole messages in, whole messages out."""

    def __init__(self, sock: ssl.SSLSocket):
        self._socket = sock
        self._buffer = b""
        sock.setblocking(False)

    def fileno(self) -> int:
        """Give the descriptor to poll for reading."""
        return self._socket.fileno()

    def send(self, line: bytes) -> None:
        """Send one message; LinkLost when the coordinator does not take it within 10 seconds."""
        try:
            self._socket.settimeout(10.0)
            self._socket.sendall(line)
            self._socket.setblocking(False)
        except OSError as error:
            raise LinkLost(str(error)) from None

    def receive(self) -> List[Dict[str, Any]]:
        """Give the messages that have arrived; LinkLost at the end of the stream, once all before it was given."""
        ended = None
        try:
            while True:
                chunk = self._socket.recv(65536)
                if not chunk:
                    ended = "the coordinator closed the connection"
                    break
                self._buffer += chunk
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError as error:
            ended = str(error)
        *lines, self._buffer = self._buffer.split(b"\n")
        if ended is not None and not lines:
            raise LinkLost(ended)
        return [decode(line) for line in lines]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

"""The agent's contact to the coordinator: find it, exchange lines over mutual TLS, connect again after a loss.

A lost connection loses no message: the agent repeats its registration, and the ending that the coordinator has not
acknowledged. The caller polls the socket; nothing here blocks for longer than `CONNECT_SECONDS`. Kept small: no
asyncio, no logging.
"""

import os
import select
import socket
import ssl
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..common import protocol
from ..common.mutual_tls import client_context

#: The least time for which a new agent looks for the coordinator, seconds.
FIRST_CONTACT = 60.0
MAX_CONTACT_BACKOFF = 2.0
#: The most addresses of one host that are tried; each takes a socket for each port.
MAX_ADDRESSES = 8
_UNANSWERED = "no answer; the host is down, or a firewall drops what comes from here"
#: How long the coordinator may take to receive one message, seconds.
SEND_SECONDS = 10.0


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
    tries: Dict[int, socket.socket] = {}
    sockets: Dict[socket.socket, str] = {}
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
                tries[sock.fileno()] = sock
                poll.register(sock, select.POLLOUT)
                sockets[sock] = address[0]
        while tries and time.monotonic() < deadline:
            for number, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                poll.unregister(number)
                sock = tries.pop(number)
                failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    whys[sockets[sock]] = os.strerror(failed)
                    sock.close()
                    continue
                try:
                    sock.settimeout(max(0.1, deadline - time.monotonic()))
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return Link(context.wrap_socket(sock))
                except OSError as error:
                    whys[sockets[sock]] = "another program answers: %s" % error
                    sock.close()
    finally:
        for sock in tries.values():
            sock.close()
    faults = "; ".join("%s: %s" % why for why in whys.items())
    raise LinkLost("no coordinator on %s, ports %d to %d: %s" % (host, ports[0], ports[-1], faults))


def _addresses_of(host: str) -> List[Tuple[int, Tuple[Any, ...]]]:
    """Return the families and addresses of a host, each once."""
    try:
        found = socket.getaddrinfo(host, 0, 0, socket.SOCK_STREAM)
    except OSError as error:
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
        return [protocol.decode(line) for line in lines]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Contact:
    """A connection that is made again whenever it is lost.

    Parameters
    ----------
    host : str
        Host of the application master.
    ports : sequence of int
    patience : float
        Seconds without a message of the coordinator after which the agent gives up; 0 for never.
    registration : callable
        Returns the line with which the agent registers.
    log : callable
        Writes a line to the container's log.
    heartbeat : callable, optional
        Returns the line of a heartbeat, which the coordinator answers. Default: a ping.
    """

    def __init__(
        self,
        host: str,
        ports: Sequence[int],
        patience: float,
        registration: Callable[[], bytes],
        log: Callable[..., None],
        heartbeat: Callable[[], bytes] = lambda: protocol.encode("ping"),
    ):
        self._heartbeat = heartbeat
        self._host, self._ports, self._patience = host, ports, patience
        self._registration, self._log = registration, log
        self._context = client_context()
        self._received_at = time.monotonic()
        self._greeted = False
        self._due = 0.0
        self._backoff = 0.1
        self._link: Optional[Link] = None
        self._unacknowledged: Optional[bytes] = None

    def listen(self, poll: select.poll) -> None:
        """Register the connection, if there is one, with `poll`."""
        if self._link:
            poll.register(self._link, select.POLLIN)

    def keep(self) -> None:
        """Connect, or send a heartbeat over the connection, if the time for it has come."""
        now = time.monotonic()
        if now < self._due:
            return
        if self._link is None:
            try:
                self._link = connect(self._host, self._ports, self._context)
            except LinkLost as error:
                self._on_disconnect(error)
                return
            self._due = now + 1.0
            self._register()
        else:
            self._due = now + min(5.0, (self._patience or 60.0) / 4)
            self.send(self._heartbeat())

    def renew(self) -> None:
        """Register for another round; drop the unacknowledged ending of the round before."""
        self._unacknowledged = None
        self._register()

    def _register(self) -> None:
        self.send(self._registration())
        if self._unacknowledged:
            self.send(self._unacknowledged)

    def deliver(self, line: bytes) -> None:
        """Send a message, and send it again after each loss of the connection until it is acknowledged."""
        self._unacknowledged = line
        self.send(line)

    def acknowledged(self) -> None:
        """Forget the message that had to be delivered: it has arrived."""
        self._unacknowledged = None

    def send(self, line: bytes) -> None:
        """Send a message; after a loss of the connection `keep` connects again."""
        if self._link:
            try:
                self._link.send(line)
            except LinkLost as error:
                self._on_disconnect(error)

    def receive(self) -> List[Dict[str, Any]]:
        """Return the messages that have arrived."""
        if self._link is None:
            return []
        try:
            messages = self._link.receive()
        except LinkLost as error:
            self._on_disconnect(error)
            return []
        if messages:
            self._received_at = time.monotonic()
            self._backoff = 0.1
            self._greeted = True
        return messages

    def pause(self) -> float:
        """Return the time until `keep` has something to do, seconds."""
        return max(0.0, self._due - time.monotonic())

    def silence(self) -> float:
        """Return the seconds for which the coordinator has been silent, if that is longer than the patience; else 0."""
        patience = self._patience if self._greeted else max(self._patience, FIRST_CONTACT)
        quiet = time.monotonic() - self._received_at
        return quiet if self._patience and quiet > patience else 0.0

    def _on_disconnect(self, error: LinkLost) -> None:
        if self._link:
            self._log("connection lost: %s", error)
            self._link.close()
            self._link = None
        elif self._backoff > 1:
            self._log("%s", error)
        jitter = 0.5 + os.urandom(1)[0] / 512.0
        self._due = time.monotonic() + self._backoff * jitter
        self._backoff = min(MAX_CONTACT_BACKOFF, self._backoff * 2)

"""The coordinator's listening end: mutual TLS, one JSON object a line.

A connection without the job's certificate, or without a first line within seconds, is dropped; at most ``2 N + 64``
connections may be in that state at a time.
"""

import asyncio
import asyncio.sslproto
import contextlib
import errno
import logging
import socket
import ssl
import time
from typing import Any, Awaitable, Callable, Dict, Optional, Sequence, Set, cast

from ..common.protocol import FIRST_LINE_SECONDS, HANDSHAKE_SECONDS, MAX_PROTOCOL_LINE, decode

logger = logging.getLogger(__name__)

#: Seconds to wait after a connection that could not be accepted.
ACCEPT_PAUSE = 0.2
#: Seconds between two warnings of connections that are dropped.
WARNING_SECONDS = 5.0
#: What asyncio reads at once from a TLS connection, bytes. By default each connection holds a buffer of 256 KiB (since
#: Python 3.11): 250 MiB for 1,000 agents that send a line every few seconds.
READ_BUFFER = 16 * 1024
asyncio.sslproto.SSLProtocol.max_size = READ_BUFFER  # type: ignore[attr-defined]  # no setting for it


class PortsTaken(Exception):
    """None of the job's ports is free on the application master's host."""


class Connection:
    """One authenticated connection; `send` never blocks. Reader and writer are for a session of `exec_relay`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        peer = writer.get_extra_info("peername")
        # An IPv4 address that a listener of both families has accepted begins with ::ffff:.
        self.address = f"{peer[0].rpartition('::ffff:')[2]}:{peer[1]}" if peer else "?"

    def send(self, line: bytes) -> None:
        """Queue a line; do nothing if the connection is closing."""
        if not self.writer.is_closing():
            self.writer.write(line)

    def close(self) -> None:
        """Close the connection after all queued lines are sent."""
        self.writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on, not faster than the receiver takes them, until an end is closed."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(MAX_PROTOCOL_LINE):
            writer.write(piece)
            await writer.drain()


def listen_on_first_free(ports: Sequence[int], host: str = "") -> socket.socket:
    """Listen on the first free port of an IPv4 address, or at all addresses of both families.

    Raises
    ------
    PortsTaken
        None is free.
    """
    both = not host and socket.has_dualstack_ipv6()
    for port in ports:
        try:
            listener = socket.create_server(
                (host, port), family=socket.AF_INET6 if both else socket.AF_INET, backlog=1024, dualstack_ipv6=both
            )
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        listener.setblocking(False)
        return listener
    raise PortsTaken(f"the ports {ports[0]} to {ports[-1]} are all taken")


class Server:
    """Accepts agents and passes on their messages.

    Parameters
    ----------
    on_connect : coroutine function
        Gets the connection and its first message; returns an object for the agent, or None if it is refused.
    on_message : function
        Gets the agent, its connection and each further message.
    on_disconnect : function
        Gets the agent and its connection after the connection has ended.
    on_failure : function
        Gets each error except OSError, ValueError, EOFError and a timeout, which only end the connection.
    max_waiting : int
        The most connections at a time whose first message has not arrived.
    """

    def __init__(
        self,
        on_connect: Callable[[Connection, Dict[str, Any]], Awaitable[Optional[Any]]],
        on_message: Callable[[Any, Connection, Dict[str, Any]], None],
        on_disconnect: Callable[[Any, Connection], None],
        on_failure: Callable[[Exception], None],
        max_waiting: int,
    ):
        self._on_connect, self._on_message, self._on_disconnect, self._on_failure = (
            on_connect,
            on_message,
            on_disconnect,
            on_failure,
        )
        self._max_waiting = max_waiting
        self._waiting: Dict["asyncio.Task[None]", None] = {}  # the oldest first
        self._tasks: Set["asyncio.Task[None]"] = set()
        self._warn_at = 0.0

    async def serve(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:  # too many open files, a reset before its turn
                self._warn("A connection could not be accepted: %s", error)
                await asyncio.sleep(ACCEPT_PAUSE)
                continue
            if len(self._waiting) >= self._max_waiting:
                self._warn("Dropped a connection: %d connections wait for their handshake", len(self._waiting))
                oldest = next(iter(self._waiting))  # an agent needs milliseconds
                del self._waiting[oldest]
                oldest.cancel()
            task = loop.create_task(self._serve(sock, context))
            self._waiting[task] = None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0)  # an accept that need not wait lets no other task run, and so none end

    def _warn(self, message: str, value: object) -> None:
        """Log a warning, each 5 s at most: a flood of connections must not fill the log."""
        now = time.monotonic()
        if now >= self._warn_at:
            logger.warning(message, value)
            self._warn_at = now + WARNING_SECONDS

    async def _serve(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[None]", asyncio.current_task())
        writer: Optional[asyncio.StreamWriter] = None
        agent = None
        try:
            reader = asyncio.StreamReader(limit=MAX_PROTOCOL_LINE)
            protocol = asyncio.StreamReaderProtocol(reader)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                transport, _ = await loop.connect_accepted_socket(
                    lambda: protocol, sock, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
                connection = Connection(reader, writer)
                first = decode(await asyncio.wait_for(reader.readline(), FIRST_LINE_SECONDS))
            finally:
                self._waiting.pop(task, None)
            agent = await self._on_connect(connection, first)
            if agent is not None:
                async for line in reader:
                    self._on_message(agent, connection, decode(line))
        except (OSError, ValueError, asyncio.TimeoutError, EOFError) as error:
            logger.info("A connection ended: %s: %s", type(error).__name__, error)
        except Exception as error:  # a fault of the coordinator has to end the job
            logger.exception("A message could not be handled")
            self._on_failure(error)
        finally:
            (writer or sock).close()
            if agent is not None:
                self._on_disconnect(agent, connection)

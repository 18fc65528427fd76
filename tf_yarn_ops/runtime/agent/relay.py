"""The agent's relay: leads a program's gRPC to where a replaced worker is now.

A worker that is replaced alone has another address than the TF_CONFIG of the tasks that go on says. gRPC asks the proxy
in ``grpc_proxy`` for each connection, also for one that it makes again (HTTP CONNECT; TensorFlow 2.21 does).
"""

import asyncio
import threading
from typing import Dict, Mapping, Optional

#: Seconds for a connection to a task.
RELAY_SECONDS = 20.0
#: Longest request, bytes.
MAX_REQUEST = 8 * 1024


class Relay:
    """A proxy on the loopback interface; one thread serves all connections."""

    def __init__(self) -> None:
        self.moved: Mapping[str, str] = {}
        self.open: Dict["_Side", str] = {}
        self._loop = asyncio.new_event_loop()
        server = self._loop.run_until_complete(self._loop.create_server(lambda: _Client(self), "127.0.0.1", 0))
        #: The value of ``grpc_proxy``.
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def move(self, moved: Mapping[str, str]) -> None:
        """Lead these addresses, ``host:port``, to others, and end their connections: a lost node ends none itself."""
        self._loop.call_soon_threadsafe(self._move, dict(moved))

    def _move(self, moved: Mapping[str, str]) -> None:
        before, self.moved = self.moved, moved
        for side, address in list(self.open.items()):
            if before.get(address, address) != moved.get(address, address):
                side.transport.abort()


class _Side(asyncio.Protocol):
    """One side of a tunnel; what arrives goes to the other side."""

    transport: asyncio.Transport
    other: Optional["_Side"] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        if self.other:
            self.other.transport.close()


class _Client(_Side):
    """The side of the program: its first bytes are the request."""

    def __init__(self, relay: Relay):
        self._relay, self._request = relay, b""

    def data_received(self, data: bytes) -> None:
        if self.other:
            super().data_received(data)
            return
        self._request += data
        if b"\r\n\r\n" in self._request or len(self._request) > MAX_REQUEST:
            self._tunnel = asyncio.ensure_future(self._connect())  # the loop itself keeps no reference

    async def _connect(self) -> None:
        words = self._request.split()
        address = words[1].decode("ascii", "replace") if words[0] == b"CONNECT" else ""
        host, _, port = self._relay.moved.get(address, address).rpartition(":")
        try:
            await asyncio.wait_for(
                asyncio.get_running_loop().create_connection(
                    lambda: _Task(self, self._relay, address), host, int(port), happy_eyeballs_delay=0.25
                ),
                RELAY_SECONDS,
            )
        except (OSError, ValueError, asyncio.TimeoutError):
            self.transport.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            self.transport.close()


class _Task(_Side):
    """The side of a task; it may speak first."""

    def __init__(self, client: _Client, relay: Relay, address: str):
        self.other, self._relay, self._address = client, relay, address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.other is not None
        self._relay.open[self], self.other.other = self._address, self
        self.other.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        if self.other.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        super().connection_lost(exc)
        del self._relay.open[self]

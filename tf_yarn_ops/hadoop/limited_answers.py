"""Limits of an answer: the seconds that it may take from the request to its last byte, and its bytes.

A server may be another user's program. `httpx` limits each read only, so a page that sends a byte a second, or never
ends, would hold a client for ever. Import this module after `import_httpx`.
"""

import ssl
import time
from collections.abc import Iterable, Iterator
from typing import Any, cast

import httpcore
import httpx


class DeadlineTransport(httpx.HTTPTransport):
    """Sends requests, and waits for each answer no longer than its deadline.

    Parameters
    ----------
    context : ssl.SSLContext
    seconds : float
        From the last byte of the request to the last byte of the answer.
    """

    def __init__(self, context: ssl.SSLContext, seconds: float):
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_DeadlineBackend(seconds),
        )


class _DeadlineBackend(httpcore.SyncBackend):
    def __init__(self, seconds: float):
        self._seconds = seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _DeadlineConnection(
            super().connect_tcp(host, port, timeout, local_address, socket_options), self._seconds
        )


class _DeadlineConnection(httpcore.NetworkStream):
    """A connection of HTTP/1.1, on which each request begins with a write."""

    def __init__(self, stream: httpcore.NetworkStream, seconds: float):
        self._stream, self._seconds = stream, seconds
        self._until = time.monotonic() + seconds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout(f"the answer is not complete after {self._seconds:g} s")
        return self._stream.read(max_bytes, left if timeout is None else min(timeout, left))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)
        self._until = time.monotonic() + self._seconds

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineConnection(self._stream.start_tls(ssl_context, server_hostname, timeout), self._seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def limit_bytes(response: httpx.Response, size: int) -> None:
    """Let a response whose content is not read yet fail above so many bytes.

    Raises
    ------
    httpx.RemoteProtocolError
        It is compressed, which nobody has asked for; later, when its content is read: it is too long.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx.RemoteProtocolError("the answer is compressed, though the request forbids it")
    response.stream = _LimitedStream(cast(httpx.SyncByteStream, response.stream), size)


class _LimitedStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, size: int):
        self._stream, self._size = stream, size

    def __iter__(self) -> Iterator[bytes]:
        left = self._size
        for part in self._stream:
            left -= len(part)
            if left < 0:
                raise httpx.RemoteProtocolError(f"the answer is longer than {self._size >> 20} MiB")
            yield part

    def close(self) -> None:
        self._stream.close()

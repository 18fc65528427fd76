"""How ``ytf ui`` serves its pages: limits of connections, and the file that opens the browser."""

import asyncio
import html
import os
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds for a reader to send a request.
READER_SECONDS = 10.0
#: Connections at the same time.
MAX_READERS = 200


class LimitedConnection(H11Protocol):
    """A connection that ends without a request in time. A further one ends that which waits longest for its request."""

    _deadline: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MAX_READERS:
            waiting = [one for one in self.connections if isinstance(one, LimitedConnection) and one._waits()]
            if waiting:
                min(waiting, key=lambda one: one._since).transport.abort()
            else:
                transport.abort()
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._waits():
            self._wait()

    def _waits(self) -> bool:
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._since = time.monotonic()
        self._deadline = self.loop.call_later(READER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self._waits():
            self.transport.abort()


def build_server(application: ASGIApp) -> uvicorn.Server:
    """Return the server of the pages; uvicorn's own configuration of logging would close all handlers."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http=LimitedConnection,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
        )
    )


@contextmanager
def open_browser(url: str) -> Iterator[None]:
    """Open the browser at a file of the user that leads to an address, because all users can see command lines.

    The file lies in the home directory, where a browser in a sandbox can read it too, until the end of the block.
    """
    home = Path.home()
    folder = home if os.access(home, os.W_OK) else Path(tempfile.gettempdir())
    descriptor, name = tempfile.mkstemp(".html", "ytf-ui-", folder)  # mode 600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}">\n')
        threading.Timer(0.3, webbrowser.open, [Path(name).as_uri()]).start()
        yield
    finally:
        Path(name).unlink(missing_ok=True)

"""The coordinator's web server: the job's page, on the loopback interface behind YARN's proxy.

Below ``<tracking URL>/pages/ytf/``: the page itself, ``status.json`` for programs, ``status.json?only=report`` for
those that need the report only, ``parts.json`` with which the page renews itself, ``log.txt?task=worker:1`` with the
end of a task's log. However many people look, a document is made at most once a second.
"""

import asyncio
import json
import time
from typing import Any, Awaitable, Callable, Dict, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

from ..common.page import render_page, render_parts

#: Seconds for which an answer is given again.
FRESH = 1.0
#: Seconds for a client to send its request.
REQUEST_SECONDS = 5.0
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
#: What leads to the report.
_REPORT = "status.json?only=report"

#: Status line, content type, content.
Answer = Tuple[str, str, bytes]


class Website:
    """Answers the requests.

    Parameters
    ----------
    status : callable
        Returns the document of ``status.json``.
    tail : coroutine function
        Returns the end of the log of a task, or None.
    report : callable
        Returns the report alone, which costs less.
    clock : callable, optional
        Monotonic, seconds.
    """

    def __init__(self, status: Callable[[], Dict[str, Any]], tail: Callable[[str], Awaitable[Optional[str]]],
                 report: Callable[[], Dict[str, Any]], clock: Callable[[], float] = time.monotonic):
        self._status, self._tail, self._report, self._clock = status, tail, report, clock
        self._document: Tuple[float, Dict[str, Any]] = (-FRESH, {})
        self._made: Dict[str, Tuple[float, Answer]] = {}
        self._makers: Dict[str, Callable[[], Answer]] = {
            "": lambda: ("200 OK", _HTML, render_page(self._present(), live=True).encode()),
            "status.json": lambda: ("200 OK", _JSON, json.dumps(self._present()).encode()),
            _REPORT: lambda: ("200 OK", _JSON, compact(self._report())),
            "parts.json": lambda: ("200 OK", _JSON, json.dumps(render_parts(self._present(), live=True)).encode()),
        }

    async def answer(self, target: str) -> Answer:
        """Return the answer to the target of a request, ``/log.txt?task=worker:1``."""
        url = urlsplit(target)
        name = url.path.rpartition("/")[2]
        if name == "log.txt":
            task = parse_qs(url.query).get("task", [""])[0]
            text = await self._tail(task)
            if text is None:
                return "404 Not Found", _TEXT, b"The task has no agent that answers.\n"
            return "200 OK", _TEXT, text.encode("utf-8", "replace")
        if name == "status.json" and "only=report" in url.query.split("&"):
            name = _REPORT
        if name not in self._makers:
            return "404 Not Found", _TEXT, b"There is no such page.\n"
        return self._make(name)

    def _make(self, name: str) -> Answer:
        now = self._clock()
        made = self._made.get(name)
        if made is None or now - made[0] >= FRESH:
            made = self._made[name] = now, self._makers[name]()
        return made[1]

    def _present(self) -> Dict[str, Any]:
        now = self._clock()
        if now - self._document[0] >= FRESH:
            self._document = now, self._status()
        return self._document[1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            target = (request.split(b" ", 2) + [b"", b""])[1].decode("latin-1")
            status, kind, content = await self.answer(target)
            headers = (f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
                       "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n")
            writer.write(headers.encode() + content)
            await writer.drain()
        except (OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def compact(document: Dict[str, Any]) -> bytes:
    """Return a report as JSON, without the values that a task does not have."""
    tasks = [{name: value for name, value in task.items() if value not in (None, "")} for task in document["tasks"]]
    return json.dumps({**document, "tasks": tasks}, separators=(",", ":")).encode()


async def serve(website: Website) -> Tuple[asyncio.AbstractServer, int]:
    """Start the server on the loopback interface, on any port.

    Returns
    -------
    server : asyncio.AbstractServer
    port : int
    """
    server = await asyncio.start_server(website.serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]

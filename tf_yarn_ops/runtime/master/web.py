"""The coordinator's web server: the job's page for its viewers, on the loopback interface; on YARN behind its proxy.

Below ``<tracking URL>/pages/ytf/``: the page itself, ``status.json`` for programs, ``status.json?only=report`` for
those that need the report only, ``parts.json`` with which the page renews itself, ``log.txt?task=worker:1`` with the
end of a task's log, ``stack.txt?task=worker:1`` with its stacks, ``log.bin?container=ID&offset=0`` with some hundred
KiB of a task's log, in a type that no gateway rewrites. Each answer names its application in a header.
However many people look, a document is made at most once a second.

``parts.json?hold=2&news=0&marks=...&find=worker:7`` has only the parts that the page does not have yet. It is answered
after 2 s, or at once when the job is decided: an open page has a request pending and gets the verdict before the
application ends.
"""

import asyncio
import functools
import gzip
import json
import re
import time
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, Set, Tuple, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from ..common.contract import DOCUMENT_TYPE
from ..common.escaping import escape_controls
from ..common.status import APPLICATION_HEADER
from ..page.page import changed_parts, page_policy, render_page, render_parts
from .viewers import Viewers

#: Seconds for which an answer is given again.
FRESH = 1.0
#: Seconds for a client to send its request.
REQUEST_SECONDS = 5.0
#: Seconds for a client to take an answer.
SENDING_SECONDS = 30.0
#: Connections of the page, and as many of the way to TensorBoard; the agents' port needs the other files.
MAX_CONNECTIONS = 128
#: Bytes from which an answer is compressed.
PACKED_BYTES = 1024
#: The most seconds for which a request is held, and the most requests held at a time.
HOLD_SECONDS = 5
MAX_LONG_POLLS = 16
_HTML, TEXT, _BYTES = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/octet-stream"
#: The texts of a task's agent, and the messages that request them.
_TEXTS = {"log.txt": "tail", "stack.txt": "stack"}
#: The policy of answers that are no page.
NOTHING_POLICY = "default-src 'none'"
#: What leads to the report.
_REPORT = "status.json?only=report"

#: Status line, content type, content.
PageAnswer = Tuple[str, str, bytes]
#: A place in a log, bytes from its begin, or below 0 from its end; an agent reads no integer of more than 64 bits.
_OFFSET = re.compile("-?[0-9]{1,18}")
_NO_AGENT = "404 Not Found", TEXT, b"The task has no agent that answers.\n"
_Made = TypeVar("_Made")


class LoopbackServer:
    """Answers the job's viewers on the loopback interface, where each process of the host can connect.

    Parameters
    ----------
    viewers : Viewers
        Decides who gets an answer.
    answer : coroutine function
        Gets request line and headers, reader and writer of one connection, and writes the answer.
    *headers : str
        Of the answer to anybody else.
    """

    def __init__(
        self,
        viewers: Viewers,
        answer: Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        *headers: str,
    ):
        self._viewers, self._answer, self._headers = viewers, answer, headers
        self._open = 0
        self._waiting: Dict[asyncio.StreamWriter, None] = {}

    async def start(self) -> Tuple[asyncio.AbstractServer, int]:
        """Listen on any port; return the server and the port."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return server, server.sockets[0].getsockname()[1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, with one request.

        Above the limit the connection ends that waits longest for its request; this one if all others have theirs.
        """
        if self._open >= MAX_CONNECTIONS:
            oldest = next(iter(self._waiting), writer)
            self._waiting.pop(oldest, None)
            oldest.transport.abort()
            if oldest is writer:
                return
        self._open += 1
        self._waiting[writer] = None
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            self._waiting.pop(writer, None)
            why_not = await self._viewers.why_not(head)
            if why_not is not None:
                _write(writer, head, compose("403 Forbidden", TEXT, why_not.encode(), *self._headers))
            else:
                await self._answer(head, reader, writer)
            await asyncio.wait_for(_flush(writer), SENDING_SECONDS)
        except (OSError, EOFError, ValueError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            writer.transport.abort()
        except asyncio.CancelledError:
            pass  # the coordinator ends; before 3.12 asyncio would log an error
        finally:
            self._waiting.pop(writer, None)
            self._open -= 1
            writer.close()


class Website:
    """Answers the requests.

    Parameters
    ----------
    status : callable
        Returns the document of ``status.json``.
    tail : coroutine function
        Returns the end of the log of a task, or with ``stack`` the stacks of its processes; or None.
    read_log : coroutine function
        Returns bytes of the log of a container from an offset, as `AgentServer.read_log` does; or None.
    report : callable
        Returns the report alone, which costs less.
    viewers : Viewers
        Decides who may see it.
    application_id : str
        Goes with each answer: YARN's proxy may lead a reader to the page of another application than it asks for.
    clock : callable, optional
        Monotonic, seconds.
    """

    def __init__(
        self,
        status: Callable[[], Dict[str, Any]],
        tail: Callable[[str, str], Awaitable[Optional[str]]],
        read_log: Callable[[str, int], Awaitable[Optional[bytes]]],
        report: Callable[[], Dict[str, Any]],
        viewers: Viewers,
        application_id: str,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._status, self._tail, self._report, self._clock = status, tail, report, clock
        self._read_log = read_log
        self._own = f"{APPLICATION_HEADER}: {application_id}"
        self._made: Dict[str, Tuple[float, Any]] = {}
        self.server = LoopbackServer(viewers, self._serve, self._own)
        self._long_polls: Set["asyncio.Future[None]"] = set()
        self._version, self._final = 0, False
        self._makers: Dict[str, Callable[[], PageAnswer]] = {
            "": lambda: ("200 OK", _HTML, render_page(self._present(), live=True).encode()),
            "status.json": lambda: ("200 OK", DOCUMENT_TYPE, json.dumps(self._present()).encode()),
            _REPORT: lambda: ("200 OK", DOCUMENT_TYPE, compact(self._report())),
        }

    async def answer(self, target: str) -> PageAnswer:
        """Return the answer to the target of a request, ``/log.txt?task=worker:1``."""
        url = urlsplit(target)
        name, query = url.path.rpartition("/")[2], {key: values[0] for key, values in parse_qs(url.query).items()}
        if name in _TEXTS:
            text = await self._tail(query.get("task", ""), _TEXTS[name])
            return _NO_AGENT if text is None else ("200 OK", TEXT, escape_controls(text).encode())
        if name == "log.bin":
            offset = query.get("offset", "0")
            valid = _OFFSET.fullmatch(offset)
            content = await self._read_log(query.get("container", ""), int(offset)) if valid else None
            return _NO_AGENT if content is None else ("200 OK", _BYTES, content)
        if name == "status.json" and "only=report" in url.query.split("&"):
            name = _REPORT
        if name == "parts.json":
            await self._hold(query)
            return (
                "200 OK",
                DOCUMENT_TYPE,
                json.dumps(
                    {
                        "news": str(self._version),
                        **changed_parts(self._render(query.get("find", "")), query.get("marks", "")),
                    }
                ).encode(),
            )
        if name not in self._makers:
            return "404 Not Found", TEXT, b"There is no such page.\n"
        return self._fresh(name, self._makers[name])

    def renew(self, *, final: bool = False) -> None:
        """Answer the held requests with new documents; hold no further request after the ``final`` one."""
        self._made.clear()
        self._version, self._final = self._version + 1, final
        for held in self._long_polls:
            if not held.done():
                held.set_result(None)

    async def _hold(self, query: Mapping[str, str]) -> None:
        """Hold a request that knows the latest renewal, for the seconds that it names."""
        seconds, known = query.get("hold", ""), query.get("news", "")
        if (
            not seconds.isdecimal()
            or known != str(self._version)
            or self._final
            or len(self._long_polls) >= MAX_LONG_POLLS
        ):
            return
        held: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        self._long_polls.add(held)
        try:
            await asyncio.wait([held], timeout=min(int(seconds), HOLD_SECONDS))
        finally:
            self._long_polls.discard(held)

    def _fresh(self, name: str, make: Callable[[], _Made]) -> _Made:
        now = self._clock()
        made = self._made.get(name)
        if made is None or now - made[0] >= FRESH:
            made = self._made[name] = now, make()
        return cast(_Made, made[1])

    def _render(self, find: str) -> Dict[str, str]:
        render = functools.partial(render_parts, live=True, find=find)
        return render(self._present()) if find else self._fresh("parts", lambda: render(self._present()))

    def _present(self) -> Dict[str, Any]:
        return self._fresh("document", self._status)

    async def _serve(self, request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target = (request.split(b" ", 2) + [b"", b""])[:2]
        if method not in (b"GET", b"HEAD"):
            answer = compose(
                "405 Method Not Allowed", TEXT, b"The pages can only be read.\n", "Allow: GET, HEAD", self._own
            )
        else:
            answer = compose_packed(request, *await self.answer(target.decode("latin-1")), self._own)
        _write(writer, request, answer)


def _write(writer: asyncio.StreamWriter, request: bytes, answer: bytes) -> None:
    """Write an answer; one to HEAD has no content."""
    writer.write(answer[: answer.index(b"\r\n\r\n") + 4] if request.startswith(b"HEAD ") else answer)


async def _flush(writer: asyncio.StreamWriter) -> None:
    """Wait until the client has taken everything: a closed connection would wait for it without a deadline."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()


def compose(status: str, kind: str, content: bytes, *headers: str) -> bytes:
    """Return a whole answer of HTTP, after which the connection ends."""
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        f"Content-Security-Policy: {page_policy() if kind == _HTML else NOTHING_POLICY}; frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
        *headers,
        "",
        "",
    )
    return "\r\n".join(lines).encode() + content


def compose_packed(request: bytes, status: str, kind: str, content: bytes, *headers: str) -> bytes:
    """Return a whole answer, compressed if the request allows that and it is worth it."""
    allows = next((line for line in request.lower().split(b"\r\n") if line.startswith(b"accept-encoding:")), b"")
    if b"gzip" not in allows or len(content) < PACKED_BYTES:
        return compose(status, kind, content, *headers)
    return compose(status, kind, gzip.compress(content, 4), "Content-Encoding: gzip", "Vary: Accept-Encoding", *headers)


def compact(document: Dict[str, Any]) -> bytes:
    """Return a report as JSON, without the values that a task does not have."""
    tasks = [{name: value for name, value in task.items() if value not in (None, "")} for task in document["tasks"]]
    return json.dumps({**document, "tasks": tasks}, separators=(",", ":")).encode()

"""The job's page: its tasks as HTML and JSON, on the loopback interface behind YARN's proxy.

``<tracking URL>/pages/ytf/`` for people, ``.../status.json`` for clients.
"""

import asyncio
import html
import json
import time
from typing import Any, Callable, Dict, Tuple

_STYLE = """body{font:15px system-ui,sans-serif;margin:2em;color:#1d2733}table{border-collapse:collapse;margin-top:1em}
th,td{text-align:left;padding:.35em 1.2em .35em 0;border-bottom:1px solid #dde3ea}h1{font-size:1.4em}
.failed,.lost{color:#b3261e}.succeeded{color:#1b7f3b}.running{color:#0b57d0}small{color:#5b6874}"""


async def serve(status: Callable[[], Dict[str, Any]]) -> Tuple[asyncio.AbstractServer, int]:
    """Start the server; `status` returns the document for each request.

    Returns
    -------
    server : asyncio.AbstractServer
    port : int
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            path = (request.split(b" ", 2) + [b"", b""])[1].decode("latin-1").partition("?")[0]
            document = status()
            if path.endswith("status.json"):
                kind, body = "application/json", json.dumps(document)
            else:
                kind, body = "text/html; charset=utf-8", render(document)
            content = body.encode()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
                         "Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + content)
            await writer.drain()
        except (OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def render(document: Dict[str, Any]) -> str:
    """Return the page of a report: one row per task."""

    def text(value: Any) -> str:
        return html.escape(str(value if value is not None else ""))

    def clock(seconds: Any) -> str:
        return time.strftime("%H:%M:%S", time.gmtime(seconds)) if seconds else ""

    def link(url: Any) -> str:
        return f'<a href="{text(url)}">log</a>' if url else ""

    rows = "".join(
        f"<tr><td>{text(task['task'])}</td><td class={text(task['state'])}>{text(task['state'])}</td>"
        f"<td>{text(task['host'])}</td><td>{text(task['starts'])}</td><td>{clock(task['started_at'])}</td>"
        f"<td>{clock(task['finished_at'])}</td><td>{text(task['exit_code'])}</td>"
        f"<td>{link(task['log_url'])}</td></tr>"
        for task in document["tasks"]
    )
    board = document.get("tensorboard_url")
    shown = f"<p><a href='../tensorboard/'>TensorBoard</a> <small>{text(board)}</small></p>" if board else ""
    return (
        f"<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=5><title>{text(document['name'])}</title>"
        f"<style>{_STYLE}</style><h1>{text(document['name'])} <small>{text(document['application_id'])}</small></h1>"
        f"<p>Round {len(document['rounds'])}. {text(document['message'])} <small>Times are UTC.</small></p>"
        f"{shown}"
        "<table><tr><th>task<th>state<th>host<th>starts<th>started<th>ended<th>exit code<th></tr>"
        f"{rows}</table>"
    )

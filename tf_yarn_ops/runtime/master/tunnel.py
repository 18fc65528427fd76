"""The coordinator's end of the way to TensorBoard: a loopback port behind YARN's proxy, connected to the task's front.

Between the machines the bytes travel over mutual TLS with the job's certificate, so nobody reaches TensorBoard except
the job's viewers through YARN's proxy.
"""

import asyncio
import logging
import ssl
from typing import Callable, Optional

from .viewers import Viewers
from .web import TEXT, Admission, compose

logger = logging.getLogger(__name__)

#: Seconds for one connection to the front, and between two while TensorBoard is not up.
FRONT_CONNECT_SECONDS = 5.0
FRONT_POLL_SECONDS = 0.5
_PIECE = 64 * 1024


class Tunnel:
    """Passes connections of the loopback interface on to the front of TensorBoard.

    Parameters
    ----------
    context : ssl.SSLContext or None
        How to speak to the front; None for plain HTTP.
    why_silent : callable
        Returns a sentence for a reader while TensorBoard does not answer.
    viewers : Viewers
        Decides who may see it.

    Attributes
    ----------
    address : str or None
        ``host:port`` of the front; None until it has answered.
    """

    def __init__(self, context: Optional[ssl.SSLContext], why_silent: Callable[[], str], viewers: Viewers):
        self.address: Optional[str] = None
        self._context = context
        self._why_silent, self._viewers = why_silent, viewers
        self._server: Optional[asyncio.base_events.Server] = None
        self._admission = Admission()

    async def reach(self, address: str, wanted: Callable[[], bool]) -> bool:
        """Wait until the front at an address accepts connections; return False once it is not ``wanted``."""
        while wanted():
            try:
                _, writer = await self._connect(address)
                writer.close()
                self.address = address
                return True
            except (OSError, asyncio.TimeoutError):
                await asyncio.sleep(FRONT_POLL_SECONDS)
        return False

    async def listen(self) -> int:
        """Listen on the loopback interface; return the port, the same at each call."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _connect(self, address: str) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
        host, _, port = address.rpartition(":")
        return await asyncio.wait_for(
            asyncio.open_connection(host, int(port), ssl=self._context, limit=_PIECE), FRONT_CONNECT_SECONDS
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._admission.read_head(reader, writer, FRONT_CONNECT_SECONDS) as head:
                refusal = await self._viewers.why_not(head)
                if refusal is not None:
                    writer.write(compose("403 Forbidden", TEXT, refusal.encode()))
                else:
                    await self._pass_on(head, reader, writer)
                await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            writer.transport.abort()
        except asyncio.CancelledError:
            pass  # as in `web.Website.serve`
        finally:
            writer.close()

    async def _pass_on(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a request on, or say why TensorBoard does not answer."""
        try:
            far_reader, far_writer = await self._connect(self.address or "")
        except (OSError, ValueError, asyncio.TimeoutError):
            writer.write(compose("502 Bad Gateway", TEXT, f"{self._why_silent()}\n".encode(), "Refresh: 5"))
            return
        far_writer.write(head)
        there = asyncio.ensure_future(_pump(reader, far_writer))
        try:
            await _pump(far_reader, writer)  # the front closes each connection after its answer
        finally:
            there.cancel()
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on, not faster than the receiver takes them, until an end is closed."""
    try:
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass

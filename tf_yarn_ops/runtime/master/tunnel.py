"""The coordinator's end of the way to TensorBoard: a loopback port behind YARN's proxy, connected to the task's front.

Between the machines the bytes travel over mutual TLS with the job's certificate, so nobody reaches TensorBoard except
the job's viewers through YARN's proxy. With `TensorBoardPlan.direct` they travel without TLS, and the front is
open to all.
"""

import asyncio
import contextlib
import logging
from typing import Optional

from ..common.contract import TaskId
from ..common.mutual_tls import client_context
from ..common.roles import TENSORBOARD
from ..common.status import FAILED
from .containers import Containers, last_line_of, show_page
from .job_state import JobState
from .listener import pump
from .viewers import Viewers
from .web import TEXT, LoopbackServer, compose

logger = logging.getLogger(__name__)

#: Seconds for one connection to the front, and between two while TensorBoard is not up.
FRONT_CONNECT_SECONDS = 5.0
FRONT_POLL_SECONDS = 0.5
_PIECE = 64 * 1024
#: The task of TensorBoard.
_BOARD = TaskId(TENSORBOARD, 0)


class Tunnel:
    """Passes connections of the loopback interface on to the front of TensorBoard.

    Parameters
    ----------
    state : JobState
        Of a job with TensorBoard.
    viewers : Viewers
        Decides who may see it.
    """

    def __init__(self, state: JobState, viewers: Viewers):
        self._state = state
        self._is_direct = state.job.tensorboard is not None and state.job.tensorboard.direct
        self._context = None if self._is_direct else client_context()
        self._address = ""
        self._page: Optional[str] = None
        self._server = LoopbackServer(viewers, self._pass_on)

    @property
    def url(self) -> Optional[str]:
        """The address of TensorBoard for its readers; None until it answers, and after it has failed."""
        if not self._address or self._state.lifecycle.phases[_BOARD] == FAILED:
            return None
        return f"http://{self._address}" if self._is_direct else self._page

    async def run(self, containers: Containers) -> None:
        """Add TensorBoard's page, and follow TensorBoard to its address: after a lost container it has another one."""
        _server, port = await self._server.start()
        self._page = await show_page(containers, "tensorboard", port, "TensorBoard")
        while True:
            board = self._state.registry.serving.get(_BOARD)
            if board is not None and board.running and board.address != self._address:
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    _, writer = await self._connect(board.address)
                    writer.close()
                    self._address = board.address
                    logger.info("TensorBoard answers at %s", self.url)
            await asyncio.sleep(FRONT_POLL_SECONDS)

    def _why_silent(self) -> str:
        """Return a sentence for a reader while TensorBoard does not answer."""
        reports = self._state.registry.reports(self._state.lifecycle.phases)
        board = next(report for report in reports if report.task == str(_BOARD))
        last = last_line_of(board.log_tail)[:300]
        return f"TensorBoard does not answer; its task is {board.state}" + (f": {last}" if last else "")

    async def _connect(self, address: str) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
        host, _, port = address.rpartition(":")
        return await asyncio.wait_for(
            asyncio.open_connection(host, int(port), ssl=self._context, limit=_PIECE), FRONT_CONNECT_SECONDS
        )

    async def _pass_on(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a request on, or say why TensorBoard does not answer."""
        try:
            far_reader, far_writer = await self._connect(self._address)
        except (OSError, ValueError, asyncio.TimeoutError):
            writer.write(compose("502 Bad Gateway", TEXT, f"{self._why_silent()}\n".encode(), "Refresh: 5"))
            return
        far_writer.write(head)
        there = asyncio.ensure_future(pump(reader, far_writer))
        try:
            await pump(far_reader, writer)  # the front closes each connection after its answer
        finally:
            there.cancel()
            far_writer.close()

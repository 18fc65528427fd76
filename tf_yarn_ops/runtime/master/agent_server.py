"""The coordinator's server for agents and ``ytf exec``: makes events of messages and connections, performs effects."""

import asyncio
import itertools
import logging
import time
from typing import Any, Awaitable, Callable, Dict, Optional, Tuple

from ..common import protocol
from ..common.exec_session import ATTACH, EXEC
from ..common.log_part import LOG_PART, parse_log_part
from .containers import FINISHED
from .exec_relay import ExecRelay
from .job_state import Close, Effects, JobState, LogTail, Send
from .listener import Connection, Server
from .registry import Peer, Refused

logger = logging.getLogger(__name__)

#: Seconds for which a replacement waits for the news that the container before it is lost.
REPLACEMENT_SECONDS = 5.0
#: Seconds within which an agent sends the end of its log, and the most requests for logs at a time.
TAIL_SECONDS = 5.0
MAX_TAILS = 32
#: Parts of a log that make one answer of the page.
LOG_PARTS = 8


class AgentServer:
    """Serves the agents of one job.

    Parameters
    ----------
    state : JobState
    poll : coroutine function
        Updates the state's list of containers.
    changed : asyncio.Event
        Set after each event from the verdict on.
    on_error : callable
        As `on_failure` of `Server`.

    Attributes
    ----------
    server : Server
        Accepts the connections.
    """

    def __init__(
        self,
        state: JobState,
        poll: Callable[[], Awaitable[None]],
        changed: asyncio.Event,
        on_error: Callable[[BaseException], None],
    ):
        self._state, self._poll, self._changed = state, poll, changed
        limit = 2 * len(state.lifecycle.phases) + 64
        self.server = Server(self.on_connect, self.on_message, self.on_disconnect, on_error, limit)
        self._tails: Dict[Tuple[str, int], "asyncio.Future[str]"] = {}
        self._numbers = itertools.count(1)
        relay = ExecRelay(state)
        self._sessions = {EXEC: relay.serve, ATTACH: relay.attach}

    async def on_connect(self, connection: Connection, message: Dict[str, Any]) -> Optional[Peer]:
        """Accept a registration and return its peer, or refuse it with the reason and return None.

        A new agent on an excluded node gets no reason: its container is given back. A session of ``ytf exec`` is served
        to its end, and has no peer either.
        """
        container, state = str(message.get("container")), self._state
        if message["type"] in self._sessions:
            await self._sessions[message["type"]](connection, message)
            return None
        try:
            if message["type"] != "register":
                raise Refused("the first message is not a registration")
            # A container that was known before it ran has no node yet, without which no failure of it would count.
            if container not in state.known or (
                state.job.restart["exclude_node_after"] and not state.node_of(container)
            ):
                await self._poll()
            until = time.monotonic() + REPLACEMENT_SECONDS
            while True:  # the loss that a replacement waits for may end it, or exclude its node
                if container not in state.known or state.known[container].state in FINISHED:
                    raise Refused(f"Skein knows no live container {container!r}")
                if container in state.given_up:
                    raise Refused(f"{container} has been given up")
                if state.is_unwanted(container):
                    return None  # refused, it would count as lost; its container is about to be given back
                if state.registry.expects(container) or time.monotonic() > until:
                    break
                await asyncio.sleep(0.1)
            self.perform(state.on_connect(connection, message, time.monotonic()))
        except Refused as refused:
            logger.warning("Refused %s from %s: %s", message.get("container"), connection.address, refused)
            connection.send(protocol.encode("refused", why=str(refused)))
            return None
        return state.registry.peers[container]

    def on_message(self, peer: Peer, connection: Connection, message: Dict[str, Any]) -> None:
        """Handle one message of a registered agent."""
        self.perform(self._state.on_message(peer, connection, message, time.monotonic()))

    def on_disconnect(self, peer: Peer, connection: Connection) -> None:
        """Note that a connection has ended; the monitor finds out whether the task is lost."""
        self.perform(self._state.on_disconnect(peer, connection))

    def perform(self, effects: Effects) -> None:
        """Carry out what follows from an event."""
        for effect in effects:
            if isinstance(effect, Send):
                effect.connection.send(protocol.encode(effect.kind, **effect.fields))
            elif isinstance(effect, Close):
                effect.connection.close()
            elif isinstance(effect, LogTail):
                answer = self._tails.get((effect.container, effect.number))
                if answer is not None and not answer.done():
                    answer.set_result(effect.text)
        if self._state.lifecycle.verdict is not None:
            self._changed.set()

    async def tail(self, name: str, what: str = "tail") -> Optional[str]:
        """Return the end of a task's log from its agent; None if there is no such task, or no agent answers.

        Parameters
        ----------
        name : str
            ``worker:1``.
        what : str, optional
            The message to the agent: ``tail``, or ``stack`` for the stacks of the task's processes.
        """
        serving = self._state.registry.serving.items()
        return await self._request(next((peer for task, peer in serving if str(task) == name), None), what)

    async def read_log(self, container: str, offset: int) -> Optional[bytes]:
        """Return some parts of the log of a task as one; None if the container has no agent that answers.

        Parameters
        ----------
        container : str
            YARN's id.
        offset : int
            Bytes from the begin; below 0 from the end.

        Returns
        -------
        bytes or None
            A line ``BEGIN LENGTH``, then the bytes from there on. No secret is masked: it is the log that the
            NodeManager shows to the same viewers.
        """
        peers = self._state.registry.serving.values()
        peer = next((peer for peer in peers if peer.yarn_container == container), None)
        begin = length = -1
        content = b""
        for _ in range(LOG_PARTS):
            text = await self._request(peer, "read", offset=offset if begin < 0 else begin + len(content))
            if not text:
                break
            place, length, part = parse_log_part(text)
            begin = place if begin < 0 else begin
            content += part
            if len(part) < LOG_PART:
                break
        return None if begin < 0 else b"%d %d\n" % (begin, length) + content

    async def _request(self, peer: Optional[Peer], what: str, **fields: int) -> Optional[str]:
        """Return the text with which an agent answers a message; None if it does not."""
        if peer is None or peer.connection is None or len(self._tails) >= MAX_TAILS:
            return None
        number = next(self._numbers)
        answer = self._tails[peer.container, number] = asyncio.get_running_loop().create_future()
        peer.connection.send(protocol.encode(what, id=number, **fields))
        try:
            return await asyncio.wait_for(answer, TAIL_SECONDS)
        except asyncio.TimeoutError:
            return None
        finally:
            del self._tails[peer.container, number]

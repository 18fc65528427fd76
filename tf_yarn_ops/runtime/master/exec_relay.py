"""The coordinator's part of ``ytf exec``: connect a client with the process that a task's agent starts for it.

Both have shown the job's certificate. The coordinator logs who requests what, and ends a session when one of its ends
closes.
"""

import asyncio
import logging
import os
from typing import Any, Dict, Mapping, cast

from ..common.contract import VERSION
from ..common.escaping import escape_controls
from ..common.exec_session import EXEC, EXEC_FIELDS
from ..common.masking import mask_output
from ..common.protocol import ProtocolError, check_message, encode
from .job_state import JobState
from .listener import Connection, pump

logger = logging.getLogger(__name__)

#: The most sessions of a job at a time.
MAX_SESSIONS = 8
#: Seconds for the agent to start the process, and for it to connect.
ATTACH_SECONDS = 15.0
#: Characters of a client's texts in the log.
_LOGGED = 1000


class ExecRelay:
    """Serves the sessions of one job.

    Parameters
    ----------
    state : JobState
    """

    def __init__(self, state: JobState):
        self._state = state
        self._sessions: Dict[str, "asyncio.Future[Connection]"] = {}

    async def serve(self, client: Connection, message: Mapping[str, Any]) -> None:
        """Serve a client until its session ends, or refuse it with a reason."""
        number, who = os.urandom(16).hex(), client.address
        try:
            check_message(message, EXEC_FIELDS)
            who = "%s at %s (%s) in %s" % tuple(
                map(_plain, (message["user"], message["host"], client.address, message["task"]))
            )
            agent = self._find_agent(message)
        except (LookupError, ProtocolError) as error:
            _refuse(client, who, str(error.args[0]))
            return
        logger.info("Exec begins for %s: %s", who, _plain(mask_output(message["command"], self._state.job.secrets)))
        arrival = self._sessions[number] = asyncio.get_running_loop().create_future()
        try:
            agent.send(encode("exec", id=number))
            process = await asyncio.wait_for(arrival, ATTACH_SECONDS)
            process.send(encode(EXEC, **{name: message[name] for name in EXEC_FIELDS}))
            ways = [
                asyncio.ensure_future(pump(one.reader, other.writer))
                for one, other in ((client, process), (process, client))
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            process.close()
        except asyncio.TimeoutError:
            _refuse(client, who, "%s has started nothing within %g s" % (message["task"], ATTACH_SECONDS))
        finally:
            del self._sessions[number]
            logger.info("Exec ends for %s", who)

    async def attach(self, process: Connection, message: Mapping[str, Any]) -> None:
        """Give the process of a session to its client, and wait until its connection is closed."""
        arrival = self._sessions.get(str(message.get("id")))
        if arrival is None or arrival.done():
            logger.warning("A connection names no awaited session: %s", process.address)
            return
        arrival.set_result(process)
        await process.writer.wait_closed()

    def _find_agent(self, request: Mapping[str, Any]) -> Connection:
        """Return the agent of a request; raise LookupError with the reason against it."""
        if not self._state.job.allow_exec:
            raise LookupError("this job was submitted without 'allow_exec: true' in the site file")
        if request["version"] != VERSION:
            raise LookupError("the job runs another version of tf_yarn_ops than this client")
        if len(self._sessions) >= MAX_SESSIONS:
            raise LookupError("%d sessions are open, which is the limit of a job" % MAX_SESSIONS)
        for task, peer in self._state.registry.serving.items():
            if str(task) == request["task"] and peer.running and peer.connection is not None:
                return cast(Connection, peer.connection)
        raise LookupError("%s does not run" % request["task"][:100])


def _refuse(client: Connection, who: str, why: str) -> None:
    logger.warning("Exec refused for %s: %s", who, _plain(why))
    client.send(encode("reason", why=why))


def _plain(text: str) -> str:
    """Return a text of a client as a part of one line of the log."""
    return escape_controls(text, "")[:_LOGGED]

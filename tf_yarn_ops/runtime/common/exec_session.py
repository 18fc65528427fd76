"""A session of ``ytf exec``: the messages between its two ends, a client and the process beside the task.

Both connect to the coordinator's port over mutual TLS with the job's certificate, and send one line: the client its
request, the process the id of the session. The coordinator sends the request on, then passes lines in both directions.
Of input and of output one piece at a time is on its way, so that no end stores more.
"""

import base64
import time
from typing import Any, Dict, List, Mapping

from .link import Link, LinkLost
from .protocol import ProtocolError, check_message, encode

#: The first lines of the client and of the process beside the task.
EXEC, ATTACH = "exec", "attach"
#: The fields of a request. Without a command it means a shell; `user` and `host` are for the log.
EXEC_FIELDS: Mapping[str, str] = {
    "version": "int", "task": "text", "command": "text", "tty": "flag", "rows": "int", "columns": "int", "term": "text",
    "user": "text", "host": "text",
}  # fmt: skip
#: From the client: input, of which an empty one is the end, and the terminal's size. From the process: output of both
#: kinds, the exit code, or why the session ends without one. From both: that a piece has been taken, and pings.
_MESSAGES: Mapping[str, Mapping[str, str]] = {
    EXEC: EXEC_FIELDS,
    "input": {"data": "text"},
    "size": {"rows": "int", "columns": "int"},
    "output": {"data": "text"},
    "errors": {"data": "text"},
    "exit": {"code": "int"},
    "reason": {"why": "text"},
    "taken": {},
    "ping": {},
}
#: Longest piece of input or output, bytes.
MAX_PIECE = 16 * 1024
#: An end without a message for so long ends the session, seconds; each sends a ping four times as often.
MAX_SILENCE_SECONDS = 60.0


class ExecChannel:
    """One end of a session.

    Parameters
    ----------
    link : Link
    silence_seconds : float, optional
        Default `MAX_SILENCE_SECONDS`.

    Attributes
    ----------
    free : bool
        Whether the other end has taken the last piece, so that the next may be sent.
    """

    def __init__(self, link: Link, silence_seconds: float = MAX_SILENCE_SECONDS):
        self.link = link
        self.free = True
        self._silence_seconds = silence_seconds
        self._sent_at = self._received_at = time.monotonic()

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message; raise LinkLost if the connection does not take it."""
        self._sent_at = time.monotonic()
        self.link.send(encode(kind, **fields))

    def send_piece(self, kind: str, content: bytes) -> None:
        """Send input or output; the next may follow when the channel is `free`."""
        self.free = False
        self.send(kind, data=base64.b64encode(content).decode())

    def receive(self) -> List[Dict[str, Any]]:
        """Return the messages that have arrived; call it at least every second.

        Raises
        ------
        LinkLost
            The connection has ended, or the other end is silent.
        ValueError
            A message that the other end never sends.
        """
        messages, now = self.link.receive(), time.monotonic()
        if messages:
            self._received_at = now
        elif now - self._received_at > self._silence_seconds:
            raise LinkLost("no message for %g seconds" % self._silence_seconds)
        if now - self._sent_at > self._silence_seconds / 4:
            self.send("ping")
        for message in messages:
            kind = message["type"]
            if kind not in _MESSAGES:
                raise ProtocolError("a message of type %r" % kind[:20])
            check_message(message, _MESSAGES[kind])
            if "data" in _MESSAGES[kind]:
                message["data"] = base64.b64decode(message["data"], validate=True)
            self.free = self.free or kind == "taken"
        return messages

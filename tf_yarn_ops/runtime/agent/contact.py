"""The agent's contact to the coordinator: find it, exchange lines over mutual TLS, connect again after a loss.

A lost connection loses no message: the agent repeats its registration, and the ending that the coordinator has not
acknowledged. The caller polls the socket; nothing here blocks for longer than `CONNECT_SECONDS`. Kept small: no
asyncio, no logging.
"""

import os
import select
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from ..common.link import Link, LinkLost, connect
from ..common.mutual_tls import client_context

#: The least time for which a new agent looks for the coordinator, seconds.
FIRST_CONTACT = 60.0
MAX_CONTACT_BACKOFF = 2.0


class Contact:
    """A connection that is made again whenever it is lost.

    Parameters
    ----------
    host : str
        Host of the application master.
    ports : sequence of int
    patience : float
        Seconds without a message of the coordinator after which the agent gives up; 0 for never.
    registration : callable
        Returns the line with which the agent registers.
    log : callable
        Writes a line to the container's log.
    heartbeat : callable
        Returns the line of a heartbeat, which the coordinator answers.
    """

    def __init__(
        self,
        host: str,
        ports: Sequence[int],
        patience: float,
        registration: Callable[[], bytes],
        log: Callable[..., None],
        heartbeat: Callable[[], bytes],
    ):
        self._host, self._ports, self._patience = host, ports, patience
        self._registration, self._log, self._heartbeat = registration, log, heartbeat
        self._context = client_context()
        self._received_at = time.monotonic()
        self._answered = False
        self._due = 0.0
        self._backoff = 0.1
        self._link: Optional[Link] = None
        self._unacknowledged: Optional[Callable[[], bytes]] = None

    def listen(self, poll: select.poll) -> None:
        """Register the connection, if there is one, with `poll`."""
        if self._link:
            poll.register(self._link, select.POLLIN)

    def keep(self) -> None:
        """Connect, or send a heartbeat over the connection, if the time for it has come."""
        now = time.monotonic()
        if now < self._due:
            return
        if self._link is None:
            try:
                self._link = connect(self._host, self._ports, self._context)
            except LinkLost as error:
                self._on_disconnect(error)
            else:
                self._due = now + 1.0
                self._register()
        else:
            self._due = now + min(5.0, (self._patience or 60.0) / 4)
            self.send(self._heartbeat())

    def renew(self) -> None:
        """Register for another round; drop the unacknowledged ending of the round before."""
        self._unacknowledged = None
        self._register()

    def _register(self) -> None:
        self.send(self._registration())
        if self._unacknowledged:
            self.send(self._unacknowledged())

    def deliver(self, message: Callable[[], bytes]) -> None:
        """Send a message, made anew each time, and again after each loss of the connection until it is acknowledged."""
        self._unacknowledged = message
        self.send(message())

    def acknowledged(self) -> None:
        """Forget the message that had to be delivered: it has arrived."""
        self._unacknowledged = None

    def send(self, line: bytes) -> None:
        """Send a message; after a loss of the connection `keep` connects again."""
        if self._link:
            try:
                self._link.send(line)
            except LinkLost as error:
                self._on_disconnect(error)

    def receive(self) -> List[Dict[str, Any]]:
        """Return the messages that have arrived."""
        if self._link is None:
            return []
        try:
            messages = self._link.receive()
        except LinkLost as error:
            self._on_disconnect(error)
            return []
        if messages:
            self._received_at = time.monotonic()
            self._backoff = 0.1
            self._answered = True
        return messages

    def pause(self) -> float:
        """Return the time until `keep` has something to do, seconds."""
        return max(0.0, self._due - time.monotonic())

    def silence(self) -> float:
        """Return the seconds for which the coordinator has been silent, if that is longer than the patience; else 0."""
        patience = self._patience if self._answered else max(self._patience, FIRST_CONTACT)
        quiet = time.monotonic() - self._received_at
        return quiet if self._patience and quiet > patience else 0.0

    def _on_disconnect(self, error: LinkLost) -> None:
        if self._link:
            self._log("connection lost: %s", error)
            self._link.close()
            self._link = None
        elif self._backoff > 1:
            self._log("%s", error)
        jitter = 0.5 + os.urandom(1)[0] / 512.0
        self._due = time.monotonic() + self._backoff * jitter
        self._backoff = min(MAX_CONTACT_BACKOFF, self._backoff * 2)

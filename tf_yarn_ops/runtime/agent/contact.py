"""The agent's contact to the coordinator: made, kept, and made again after a reset.

What an agent has to say survives a lost connection: the registration is repeated,
and so is whatever the coordinator has not acknowledged.
"""

import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from ..common import protocol
from .link import Link, LinkLost, client_context, connect

#: The least time that an agent looks for the coordinator at first, seconds.
FIRST_CONTACT = 60.0
MAX_BACKOFF = 2.0


class Contact:
    """A connection that is made again whenever it is lost.

    Parameters
    ----------
    host : str
        Of the application master.
    ports : sequence of int
    patience : float
        Seconds without a word of the coordinator after which it is given up; 0 for none.
    registration : callable
        Gives the line that says who we are.
    log : callable
        Writes a line to the container's log.
    """

    def __init__(self, host: str, ports: Sequence[int], patience: float, registration: Callable[[], bytes],
                 log: Callable[..., None]):
        self._host, self._ports, self._patience = host, ports, patience
        self._registration, self._log = registration, log
        self._context = client_context()
        self._heard = time.monotonic()
        self._greeted = False
        self._due = 0.0
        self._backoff = 0.1
        self.link: Optional[Link] = None
        self.unacknowledged: Optional[bytes] = None

    def keep(self) -> None:
        """Connect when there is no connection and it is time; else ping when it is time."""
        now = time.monotonic()
        if now < self._due:
            return
        if self.link is None:
            try:
                self.link = connect(self._host, self._ports, self._context)
            except LinkLost as error:
                self._lose(error)
                return
            self.register()
            self._due = now + 1.0
        else:
            self._due = now + min(5.0, (self._patience or 60.0) / 4)
            self.send(protocol.encode("ping"))

    def register(self) -> None:
        """Say who we are, and what is not acknowledged yet."""
        self.send(self._registration())
        if self.unacknowledged:
            self.send(self.unacknowledged)

    def send(self, line: bytes) -> None:
        """Send a message; when the connection is lost, it is made again later."""
        if self.link:
            try:
                self.link.send(line)
            except LinkLost as error:
                self._lose(error)

    def receive(self) -> List[Dict[str, Any]]:
        """Give the messages that have arrived."""
        if self.link is None:
            return []
        try:
            messages = self.link.receive()
        except LinkLost as error:
            self._lose(error)
            return []
        if messages:
            self._heard = time.monotonic()
            self._backoff = 0.1
            self._greeted = True
        return messages

    def pause(self) -> float:
        """How long nothing needs to be done, seconds."""
        return max(0.0, self._due - time.monotonic())

    def silence(self) -> float:
        """For how long the coordinator has been silent beyond our patience, seconds; 0 while it is not."""
        patience = self._patience if self._greeted else max(self._patience, FIRST_CONTACT)
        quiet = time.monotonic() - self._heard
        return quiet if self._patience and quiet > patience else 0.0

    def _lose(self, error: LinkLost) -> None:
        if self.link:
            self._log("connection lost: %s", error)
            self.link.close()
            self.link = None
        elif self._backoff > 1:
            self._log("%s", error)
        jitter = 0.5 + os.urandom(1)[0] / 512.0
        self._due = time.monotonic() + self._backoff * jitter
        self._backoff = min(MAX_BACKOFF, self._backoff * 2)

"""Who asks: the execution of a flow, read from the properties that Azkaban adds to every job.

Out go the identity of the training, so that a retry finds what an earlier attempt has
submitted, and the YARN tags by which Azkaban finds it.
"""

import logging
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from ..identity import Identity

logger = logging.getLogger(__name__)

_LOG_FILE = re.compile(r"_job\.(\d+)\.")
MAX_TAG = 100


@dataclass(frozen=True)
class Execution:
    """One attempt of one job of one flow's execution.

    Attributes
    ----------
    server : str
        The web server's host; without ``azkaban.webserver.url`` the executor's.
    project, flow, job : str
        ``job`` with the flows around it, ``outer:inner:job``.
    execution_id : str
        A number that the server gives once.
    attempt : int
        From 0.
    """

    server: str
    project: str
    flow: str
    execution_id: str
    job: str
    attempt: int

    @classmethod
    def read(cls, properties: Mapping[str, str]) -> "Execution":
        """Read Azkaban's properties.

        A job may set any of them but those that Azkaban adds last: the number in the
        log file's name is one of these, so it is believed before ``azkaban.flow.execid``.
        """
        said = properties.get("azkaban.flow.execid", "")
        match = _LOG_FILE.search(properties.get("azkaban.job.log.file", "").rpartition("/")[2])
        execution_id = match[1] if match else said
        if said != execution_id:
            logger.warning("azkaban.flow.execid is %r, but this is execution %s as the log file's name says: "
                           "something has overridden it", said, execution_id)
        attempt = properties.get("azkaban.job.attempt", "")
        return cls(
            server=properties.get("azkaban.webserverhost") or socket.gethostname(),
            project=properties.get("azkaban.flow.projectname", ""), flow=properties.get("azkaban.flow.flowid", ""),
            execution_id=execution_id,
            job=properties.get("azkaban.flow.nested.path") or properties.get("azkaban.job.id", ""),
            attempt=int(attempt) if attempt.isdigit() else 0)

    @property
    def identity(self) -> Identity:
        """The training's: a re-execution has a new id, so there is one generation of each."""
        key = "\n".join(["azkaban", self.project, self.flow, self.execution_id, self.job])
        return Identity(key, generation=0, attempt=self.attempt, deployment=f"azkaban {self.server}")

    @property
    def tags(self) -> tuple[str, ...]:
        """The YARN tags of Azkaban's own Hadoop job types, by which its killers look."""
        named = {"azkaban.flow.execid": self.execution_id, "azkaban.flow.flowid": self.flow,
                 "azkaban.flow.projectname": self.project, "azkaban.job.id": self.job}
        return tuple(_tag(f"{name}:{value}") for name, value in named.items() if value)


def _tag(text: str) -> str:
    """A tag as YARN takes it: lower-case ASCII, no comma, at most 100 characters."""
    return re.sub(r"[^!-+\--~]", "_", text.lower())[:MAX_TAG]

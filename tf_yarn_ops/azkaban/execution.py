"""Who asks: the execution of a flow, read from the properties that Azkaban adds to every job.

Out go the identity of the training, so that a retry finds what an earlier attempt has
submitted, and the YARN tags by which Azkaban finds it.
"""

import logging
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..follow.identity import Identity

logger = logging.getLogger(__name__)

_FILE = re.compile(r"_job\.(\d+)\.(.+)\.(?:meta|log)\Z")
MAX_TAG = 100
#: How every tag of Azkaban's begins.
PREFIX = "azkaban."


@dataclass(frozen=True)
class Execution:
    """One attempt of one job of one flow's execution.

    Attributes
    ----------
    server : str
        The web server's host; where the executor has no ``azkaban.webserver.url``, its own.
    project, flow, job : str
        ``job`` with the embedded flows around it, ``outer:inner:job``.
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

        Jobs and what runs upstream may set any of them but those that Azkaban adds last. Of these
        is the name of the metadata file, ``_job.<execution>[.<attempt>].<job>.meta``, which is
        therefore believed before ``azkaban.flow.execid`` and ``azkaban.flow.nested.path``.
        """
        said, job = properties.get("azkaban.flow.execid", ""), properties.get("azkaban.job.id", "")
        attempt = int(properties.get("azkaban.job.attempt", "")) if properties.get(
            "azkaban.job.attempt", "").isdigit() else 0
        execution_id = said
        for name in ("azkaban.job.metadata.file", "azkaban.job.log.file"):
            if match := _FILE.match(properties.get(name, "").rpartition("/")[2]):
                execution_id = match[1]
                job = match[2].removeprefix(f"{attempt}." if attempt else "").replace("._.", ":")
                break
        if said != execution_id:
            logger.warning("azkaban.flow.execid is %r, but this is execution %s, as %s says: something has overridden "
                           "it", said, execution_id, name)
        url = urlsplit(properties.get("azkaban.url", ""))
        return cls(
            server=url.hostname or properties.get("azkaban.webserverhost") or socket.gethostname(),
            project=properties.get("azkaban.flow.projectname", ""), flow=properties.get("azkaban.flow.flowid", ""),
            execution_id=execution_id, job=job, attempt=attempt)

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

"""`JobExecution`: one attempt of a job in Azkaban, read from the properties that Azkaban adds to every job.

It determines the identity of the training, by which a retry finds the application of an earlier attempt, and the YARN
tags by which Azkaban finds the application.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import Fault
from ..job.spec import MAX_TAGS_USER, JobSpec
from ..launch.identity import IGNORE, Identity, Run, is_reserved
from ..validation import check_faults
from .request import AzkabanJobFault, AzkabanRequest

logger = logging.getLogger(__name__)

_FILE = re.compile(r"_job\.(\d+)\.(.+)\.(?:meta|log)\Z")
#: A YARN tag is lower-case ASCII without blanks and commas, at most so long.
MAX_TAG = 100
_NOT_IN_A_TAG = re.compile(r"[^!-+\--~]")
#: The beginning of all Azkaban's tags.
TAG_PREFIX = "azkaban."
#: The parameter of the flow that names the past date of an execution.
BACKFILL_DATE = "ytf.backfill.date"


@dataclass(frozen=True)
class JobExecution:
    """One attempt of one job of one flow's execution.

    Attributes
    ----------
    server : str
        The web server's host, by the executor's settings; empty if they do not name it.
    project, flow, job : str
        ``job`` begins with the embedded flows around it: ``outer:inner:job``.
    execution_id : str
        A number that the server never uses again.
    attempt : int
        The number of the attempt, from 0.
    retries : int
        How often Azkaban retries the job.
    backoff : float
        Seconds before a retry.
    date : str
        The past date that it runs for; empty for other executions.
    project_id : str
        The number of the project in the server's database.
    """

    server: str
    project: str
    flow: str
    execution_id: str
    job: str
    attempt: int
    retries: int = 0
    backoff: float = 0.0
    date: str = ""
    project_id: str = ""

    @classmethod
    def read(cls, properties: Mapping[str, str]) -> "JobExecution":
        """Read Azkaban's properties.

        Jobs, and jobs upstream, can override these properties, except the last ones that Azkaban adds. One of the last
        is the name of the metadata file, ``_job.<execution>[.<attempt>].<job>.meta``, which therefore wins over
        ``azkaban.flow.execid`` and ``azkaban.job.id``.
        """
        given, job = properties.get("azkaban.flow.execid", ""), properties.get("azkaban.job.id", "")
        attempt, execution_id = _count(properties, "azkaban.job.attempt"), given
        for name in ("azkaban.job.metadata.file", "azkaban.job.log.file"):
            if match := _FILE.match(properties.get(name, "").rpartition("/")[2]):
                execution_id = match[1]
                job = match[2].removeprefix(f"{attempt}." if attempt else "").replace("._.", ":")
                break
        if given != execution_id:
            logger.warning(
                "azkaban.flow.execid is %r, but by %s this is execution %s: a job or a parameter has "
                "overridden the property",
                given,
                name,
                execution_id,
            )
        url = urlsplit(properties.get("azkaban.url", ""))
        return cls(
            server=url.hostname or properties.get("azkaban.webserverhost", ""),
            project=properties.get("azkaban.flow.projectname", ""),
            flow=properties.get("azkaban.flow.flowid", ""),
            execution_id=execution_id,
            job=job,
            attempt=attempt,
            retries=_count(properties, "retries"),
            backoff=_count(properties, "retry.backoff") / 1000,
            date=properties.get(BACKFILL_DATE, ""),
            project_id=properties.get("azkaban.flow.projectid", ""),
        )

    def __str__(self) -> str:
        return f"Azkaban's execution {self.execution_id}, job {self.job}, attempt {self.attempt}"

    def identity(self, previous: str = IGNORE, lease: float = 0.0, folder: Path | None = None) -> Identity:
        """Return the identity of the training, whose generations are the executions.

        The executors of one Azkaban may name its server differently. No property is the same on all of them and in no
        other Azkaban, so the deployment is what they share, and `check_previous` compares.

        Parameters
        ----------
        previous : str, optional
            The word of ``tf.previous``.
        lease : float, optional
            Seconds within which a launcher submits the application, and a retry starts after `backoff`.
        folder : Path, optional
            The execution's folder, which Azkaban deletes when the flow ends. A folder of another name is ignored.
        """
        shared = "\n".join(["azkaban", self.project_id, self.project, self.flow, self.job, self.date])
        generation = int(self.execution_id) if self.execution_id.isdecimal() else 0
        own = folder if folder and folder.name == self.execution_id else None
        run = Run(max(0, self.retries - self.attempt), self.backoff + lease, own)
        return Identity(self.server or "azkaban", generation, self.attempt, shared, previous=previous, run=run)

    @property
    def tags(self) -> tuple[str, ...]:
        """The YARN tags that Azkaban's own Hadoop job types set; Azkaban kills applications by them."""
        named = {
            "azkaban.flow.execid": self.execution_id,
            "azkaban.flow.flowid": self.flow,
            "azkaban.flow.projectname": self.project,
            "azkaban.job.id": self.job,
        }
        texts = (f"{name}:{value}".lower() for name, value in named.items() if value)
        return tuple(_NOT_IN_A_TAG.sub("_", text)[:MAX_TAG] for text in texts)


def project_folder(properties: Mapping[str, str], execution: JobExecution) -> Path:
    """Return the folder into which Azkaban has unpacked the project for this execution, without links.

    It is the folder with the number of the execution around the job's attachment, whose path Azkaban sets after all
    properties of the job. The working directory is not used, because older versions of Azkaban let a job set it.
    """
    attachment = properties.get("azkaban.job.attachment.file", "")
    folder = (Path(attachment).parent if attachment.startswith("/") else Path.cwd()).resolve()
    return next((one for one in (folder, *folder.parents) if one.name == execution.execution_id), folder)


def with_tags(job: JobSpec, execution: JobExecution, request: AzkabanRequest) -> JobSpec:
    """Return the job with Azkaban's tags.

    Raises
    ------
    SpecInvalid
        There is no room for the job's own tags, or one of them would look like Azkaban's or another training's.
        Tags of ``tony.application.tags``, which TonY overwrites, are left out with a warning instead.
    """
    tags = execution.tags
    free = MAX_TAGS_USER - len(tags)
    key = request.key_of("tags")
    foreign = [tag for tag in job.tags if is_reserved(tag, TAG_PREFIX)]
    own = [tag for tag in job.tags if tag not in foreign]
    faults = []
    if foreign:
        faults.append(Fault(key, AzkabanJobFault.RESERVED_TAG, {"tags": ", ".join(map(repr, foreign))}))
    if len(own) > free:
        faults.append(Fault(key, AzkabanJobFault.TOO_MANY_TAGS, {"given": len(own), "free": free}))
    if key != "tony.application.tags":
        check_faults(faults)
    left_out = filter(None, (foreign, own[free:]))
    request.warnings += [f"{fault}; left out: {', '.join(out)}" for fault, out in zip(faults, left_out, strict=True)]
    return replace(job, tags=(*tags, *own[:free]))


def _count(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "").strip()
    return int(text) if text.isdecimal() else 0

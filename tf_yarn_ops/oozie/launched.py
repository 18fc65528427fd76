"""`Launched`: one start of the action by Oozie, and the identity of the training that it asks for.

Oozie starts the same action again in many ways. A second attempt of its launcher, an attempt of ``retry-max`` and a
restart of Oozie or YARN belong to the same request for a training; ``wf rerun`` and ``coord-rerun`` are new requests.
Two tags on the application tell them apart: that of the identity, for the coordinator's action or the workflow, and
`Launched.request_tag`, for one run of one workflow.

References
----------
docs/operations/oozie.md. Oozie 5.2.1, ``LauncherAM``, ``JavaActionExecutor``.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SpecInvalid
from ..follow.yarn_report import read_yarn_report
from ..hadoop.configuration import read_configuration_file
from ..hadoop.resourcemanager import ENDED
from ..launch.identity import Identity, attempt_of, generation_of, order
from ..runtime.common.local_job import SCHEME
from .packed_job import values_of

#: The variable with the path of the action's configuration, which Oozie's launcher sets.
CONFIGURATION = "OOZIE_ACTION_CONF_XML"
_JOB, _ACTION, _TAG = "oozie.job.id", "oozie.action.id", "oozie.child.mapreduce.job.tags"
_CONTAINER = re.compile(r"container_(?:e\d+_)?(\d+)_(\d+)_(\d+)_\d+\Z")
#: Above the number of applications of a ResourceManager, and of attempts of a launcher.
_APPLICATIONS, _ATTEMPTS = 10**8, 16


@dataclass(frozen=True)
class Launched:
    """One start of the action.

    Attributes
    ----------
    workflow : str
        The id of the workflow job.
    action : str
        The name of the action in it.
    run : int
        How often a person has run the workflow job again, from 0.
    owner : str
        What a training is made once for: the id of the coordinator's action, or of the workflow without a coordinator.
    launcher : int
        Grows with each launcher that this YARN has started.
    attempt : int
        The attempt of the launcher, from 1.
    container : str
        The id of the container of this attempt; empty without Oozie.
    tag : str
        The YARN tag by which Oozie kills the applications of the action; may be empty.
    """

    workflow: str
    action: str
    run: int
    owner: str
    launcher: int
    attempt: int
    container: str
    tag: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Launched":
        """Read the environment of the action and the configuration that it names.

        With ``YTF_RESOURCEMANAGER=local://`` a person tries the action: each start is a request of its own.

        Raises
        ------
        SpecInvalid
            Oozie did not start this program.
        """
        container = _CONTAINER.match(environ.get("CONTAINER_ID", ""))
        path = environ.get(CONFIGURATION)
        if path is None and environ.get("YTF_RESOURCEMANAGER", "").startswith(SCHEME):
            return cls("local", "", 0, f"local {time.time_ns()}", 0, 1, "", "")
        if not path or container is None:
            raise SpecInvalid(
                f"{CONFIGURATION} or CONTAINER_ID is not set: only Oozie starts this program, in an "
                "application that `ytf oozie package` has packed"
            )
        try:
            properties = read_configuration_file(Path(path))
        except (OSError, ValueError) as error:
            raise SpecInvalid(f"{CONFIGURATION} can't be read: {error}") from error
        workflow = properties.get(_JOB, "")
        if not workflow:
            raise SpecInvalid(f"{path} has no {_JOB}: it is not the configuration of an action of Oozie")
        values = values_of(environ)
        run = values.get("workflowRun", "")
        return cls(
            workflow=workflow,
            action=properties.get(_ACTION, "").partition("@")[2],
            tag=properties.get(_TAG, ""),
            run=int(run) if run.isdecimal() else 0,
            owner=values.get("actionId") or workflow,
            launcher=int(container[1]) * _APPLICATIONS + int(container[2]),
            attempt=int(container[3]),
            container=container[0],
        )

    @property
    def launcher_id(self) -> str:
        """The application id of the launcher."""
        return "application_{}_{:04d}".format(*divmod(self.launcher, _APPLICATIONS))

    @property
    def key(self) -> str:
        """The key of the identity."""
        return f"oozie {self.owner} {self.action}"

    @property
    def request_tag(self) -> str:
        """The tag of applications for this run of this workflow."""
        text = f"{self.key}\0{self.workflow}\0{self.run}"
        return f"tfyo-{hashlib.sha256(text.encode()).hexdigest()[:40]}"

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that the application has besides those of its identity."""
        return (self.request_tag, *filter(None, [self.tag]))

    @property
    def number(self) -> int:
        """The number of this attempt of this launcher, by which the applications that it has killed are known.

        It has the start of the ResourceManager in seconds, so that a report holds it: an integer of 64 bits.
        """
        started, number = divmod(self.launcher, _APPLICATIONS)
        return (started // 1000 * _APPLICATIONS + number) * _ATTEMPTS + min(self.attempt, _ATTEMPTS - 1)

    def identify(self, listed: Iterable[Mapping[str, Any]]) -> Identity:
        """Return the identity of the training.

        A new request for the training is a new generation, which ends those before it. Its number is that of the
        launcher that has asked first, because these numbers grow in the order in which YARN has started launchers.

        Parameters
        ----------
        listed : iterable of mapping
            YARN's objects of the user's applications with the `request_tag`.

        Returns
        -------
        Identity
            With the generation of the application that was submitted for the same request, if there is one. The attempt
            is that of its launcher where a further attempt of the launcher has to report how it ended: then it ended
            while no launcher ran, and was not killed by the launcher itself.
        """
        ours = sorted(listed, key=lambda app: (generation_of(app), order(app["id"])))
        if not ours:
            return Identity(self.key, self.launcher, self.number)
        latest = ours[-1]
        recorded = attempt_of(latest)
        again = (
            latest["state"] in ENDED
            and recorded // _ATTEMPTS == self.number // _ATTEMPTS
            and read_yarn_report(latest).killed_by_attempt is None
        )
        return Identity(self.key, generation_of(latest), recorded if again else self.number)

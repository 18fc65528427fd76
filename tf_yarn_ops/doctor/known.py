"""`Question` and `KnownFacts`: what is asked of the doctor, and what the checks have found out so far."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..follow.session import Session
from ..hadoop.configuration import Configuration
from ..hadoop.site import Site
from ..job.parts import Environment

#: Seconds for one request of a check, at most; a server that is well answers in milliseconds.
REQUEST_TIMEOUT = 5.0
#: Seconds for which a check repeats a request.
CHECK_PATIENCE = 2.0


class Cancellation:
    """The wish to end an examination; a signal handler may express it."""

    def __init__(self) -> None:
        self.cancelled = False
        self._react: Callable[[], object] = lambda: None

    def cancel(self) -> None:
        """Leave out the checks that have not begun; end the application of the last one."""
        self.cancelled = True
        self._react()

    def then(self, react: Callable[[], object]) -> None:
        """Call `react` too on `cancel`; at once if that was called before."""
        self._react = react
        if self.cancelled:
            react()


@dataclass(frozen=True)
class Question:
    """What is asked of the doctor.

    Parameters
    ----------
    environ : mapping of str to str
        The environment of the process that would submit jobs.
    resourcemanager : str, optional
        Addresses as for `hadoop.cluster.discover`.
    user : str, optional
        The submitting user. Default: as `discover`.
    site : Site, optional
        Default: the site file of this machine.
    queue : str, optional
        Default ``default``.
    submit : bool, optional
        Whether to run a tiny application. Default False; an image is proved by one in any case.
    environment : Environment, optional
        The environment of that application. Default: the Python of the nodes.
    gpus : int, optional
        GPUs of its task. Default 0.
    timeout : float, optional
        Seconds for that application, from its submission to its end. Default 120.
    machines : mapping, optional
        Host names to the facts of other machines, see `doctor.machine.read_machine`.
    cancellation : Cancellation, optional
    """

    environ: Mapping[str, str]
    resourcemanager: str | None = None
    user: str | None = None
    site: Site | None = None
    queue: str = "default"
    submit: bool = False
    environment: Environment | None = None
    gpus: int = 0
    timeout: float = 120.0
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def image(self) -> str:
        """The Docker image of that application; empty for none."""
        return self.environment.location if self.environment and self.environment.scheme == "docker" else ""


@dataclass(frozen=True)
class KnownFacts:
    """What the checks have found out so far.

    Attributes
    ----------
    question : Question
    site : Site
        With a `request_timeout` of at most `REQUEST_TIMEOUT`.
    urls : tuple of str
        Addresses of the ResourceManagers.
    wants_ticket : bool
        Whether a ResourceManager asks for a Kerberos ticket.
    clocks : mapping of str to float
        Address to the seconds by which its clock is ahead of ours.
    configuration : Configuration
        The ResourceManager's; empty if it is not shown.
    opened : Session or None
        The connection to the cluster.
    http_storage : bool
        False if the file system can't be reached over HTTP, and Skein's Java client submits.
    tokens : bool
        False if the cluster is secured and gives no tokens over HTTP, so that Skein's Java client submits.
    scheduler : mapping
        ``schedulerInfo``.
    nodes : tuple of mapping
        The running nodes.
    application_id : str or None
        The application that has run.
    """

    question: Question
    site: Site = field(default_factory=Site)
    urls: tuple[str, ...] = ()
    wants_ticket: bool = False
    clocks: Mapping[str, float] = field(default_factory=dict)
    configuration: Configuration = field(default_factory=lambda: Configuration({}))
    opened: Session | None = None
    http_storage: bool = True
    tokens: bool = True
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[Mapping[str, Any], ...] = ()
    application_id: str | None = None

    @property
    def session(self) -> Session:
        """The connection to the cluster; only checks that need ``identity`` may use it."""
        if self.opened is None:
            raise LookupError("no check has opened the session")
        return self.opened

    @property
    def missing_for_skein(self) -> str:
        """The programs that Skein's Java client lacks on this machine, joined by "and"; empty if it can run."""
        environ = self.question.environ
        home, path = environ.get("JAVA_HOME"), environ.get("PATH")
        found = {
            "'yarn' on PATH": shutil.which("yarn", path=path),
            "Java": shutil.which("java", path=f"{home}/bin" if home else path),
        }
        return " and ".join(name for name, program in found.items() if not program)

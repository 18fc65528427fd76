"""`Submitter`: what each way to YARN can do; `SubmitMethod` chooses HTTP, Skein's Java client, or this machine."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..errors import HadoopClientUnfit
from ..follow.session import Session
from ..hadoop.local_jobs import LocalJobs
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec

logger = logging.getLogger(__name__)

SKEIN, AUTO = "skein", "auto"

_T = TypeVar("_T")


class Submitter(Protocol):
    """A way to YARN."""

    @property
    def reserves(self) -> bool:
        """Whether it reserves ids, so that clients of one identity can claim the same one."""

    def check(self, spec: JobSpec) -> None:
        """Raise an error when the job could not run; reserve nothing."""

    def reserve(self, spec: JobSpec) -> str:
        """Reserve an application id; return an empty one if this way reserves none."""

    def submit(self, spec: JobSpec, application_id: str, tags: Iterable[str] = ()) -> str:
        """Submit a job under a reserved id; return its id when YARN has accepted it."""


@dataclass(frozen=True)
class SubmitMethod:
    """How a client submits.

    Parameters
    ----------
    way : {"auto", "rest", "skein"}
        ``auto`` is HTTP, and Skein's Java client where HTTP is closed.
    strict_placement : bool
        Refuse a job with a container that no running node could hold.
    environ : mapping of str to str or None
        For Skein's Java client. None: the process's environment.
    """

    way: str
    strict_placement: bool
    environ: Mapping[str, str] | None

    def use(self, session: Session, spec: JobSpec, work: Callable[[Submitter], _T]) -> _T:
        """Return the result of ``work``, which is called again with Skein's Java client where HTTP is closed."""
        refusal = None
        if self.way != SKEIN:
            try:
                with make_submitter(session, spec, self.strict_placement) as submitter:
                    return work(submitter)
            except RestUnavailable as error:
                if self.way != AUTO:
                    raise
                logger.info("submitting with Skein's Java client, because HTTP is closed: %s", error)
                refusal = error
        if sys.platform != "linux":  # its module loads calls of Linux
            raise refusal or HadoopClientUnfit("Skein's Java client runs on Linux only")
        from .skein_java import SkeinJavaSubmitter

        return work(SkeinJavaSubmitter(session, self.strict_placement, self.environ, refusal))


@contextmanager
def make_submitter(session: Session, spec: JobSpec, strict_placement: bool = False) -> Iterator[Submitter]:
    """Yield the submitter of a job over HTTP, or on this machine; at the end cancel tokens that no application has."""
    match session.resourcemanager:
        case LocalJobs() as jobs:
            from .local_submitter import LocalSubmitter

            yield LocalSubmitter(session.cluster, jobs)
        case _:
            from .rest import RestSubmitter

            with closing(RestSubmitter(session, spec.user, strict_placement)) as submitter:
                yield submitter

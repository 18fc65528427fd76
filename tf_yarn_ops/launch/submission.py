"""`submit_once`: submit a job; a call that fails leaves nothing behind. `ensure` submits with the same parts."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import Cancelled, TfYarnError
from ..follow.kill import take_back
from ..follow.lease import first_end, lifetime_of
from ..follow.session import Session
from ..hadoop.resourcemanager import has_launched
from ..job.spec import JobSpec
from ..runtime.common.committed_output import OFF
from ..submit.preflight import file_faults
from ..submit.submitter import SubmitMethod, Submitter
from ..validation import check_faults
from .committed import PlannedOutput

logger = logging.getLogger(__name__)

#: Seconds to wait for the launch of the application master.
LAUNCH_WAIT = 2.0


def submit_once(session: Session, method: SubmitMethod, spec: JobSpec, notify: Callable[[str], None]) -> str:
    """Return the id of the application that YARN has accepted; see `Launcher.submit`."""
    prepared = prepare(session, spec)
    return method.use(
        session,
        prepared,
        lambda way: send(session, way, prepared, reserve(session, way, prepared), (), notify),
    )


def prepare(session: Session, spec: JobSpec) -> JobSpec:
    """Check the local files of a job; return it with its environment built."""
    check_faults(file_faults(spec))
    session.checkpoint()
    if any(environment.scheme == "requirements" for environment in spec.environments.values()):
        from ..environments.requirements import with_built_environment

        return with_built_environment(spec, session.cluster.site.environment_cache, session.checkpoint)
    return spec


def reserve(session: Session, submitter: Submitter, spec: JobSpec, tags: Iterable[str] = ()) -> str:
    """Check that the cluster can run a job, and reserve its id; an empty one if this way reserves none.

    Parameters
    ----------
    session : Session
    submitter : Submitter
    spec : JobSpec
    tags : iterable of str, optional
        Those of the identity. Default: there is none.
    """
    submitter.check(spec)
    if submitter.reserves and spec.commit != OFF:
        PlannedOutput(session, spec, tags).check()
    session.checkpoint()
    return submitter.reserve(spec)


def send(
    session: Session,
    submitter: Submitter,
    spec: JobSpec,
    application_id: str,
    tags: Iterable[str],
    notify: Callable[[str], None],
) -> str:
    """Submit a job that no other client submits; kill its application if an exception ends this call."""
    if application_id:
        notify(application_id)
    try:
        session.checkpoint()
        application_id = submitter.submit(spec, application_id, tags)
        if not submitter.reserves:
            notify(application_id)
        set_limits(session, spec, application_id, priority=not submitter.reserves)
        session.checkpoint()
    except BaseException as error:
        if application_id:
            take_back(session, application_id, error)
        raise
    return application_id


def set_limits(session: Session, spec: JobSpec, application_id: str, priority: bool = False) -> None:
    """Set the end in YARN of an application that was accepted: of its lease, or of its deadlines.

    Parameters
    ----------
    session : Session
    spec : JobSpec
    application_id : str
    priority : bool, optional
        Set its priority too: Skein's client has no option for it. Default False.
    """
    logger.info("submitted %s as %r to queue %s", application_id, spec.name, spec.queue)

    def set_end(application: Mapping[str, Any]) -> None:
        end = first_end(spec, application)  # the client that waits moves that of a lease
        if end is not None:
            session.resourcemanager.set_lifetime(application_id, *end)

    if priority and spec.priority:
        _update(
            session,
            application_id,
            "priority",
            lambda _: session.resourcemanager.set_priority(application_id, spec.priority),
        )
    # With a lifetime YARN ends the job even when no client and no coordinator is left.
    if spec.lease or lifetime_of(spec) is not None:
        _update(session, application_id, "lease" if spec.lease else "lifetime", set_end)


def _update(session: Session, application_id: str, what: str, change: Callable[[Mapping[str, Any]], None]) -> None:
    """Change an application that YARN has accepted; when that fails, log it and let the application run."""
    try:
        change(_launched(session, application_id))
    except Cancelled:
        raise
    except TfYarnError as error:
        logger.warning("%s has no %s in YARN: %s", application_id, what, error)


def _launched(session: Session, application_id: str) -> dict[str, Any]:
    """Return the application once its master is launched, at the latest after `LAUNCH_WAIT` seconds.

    A ResourceManager that stores a change while it launches the master may lose the master's token,
    and the application fails ("SIMPLE authentication is not enabled", EOFException; seen on Hadoop 3.4.3).
    """
    until, pause = time.monotonic() + LAUNCH_WAIT, 0.01
    while True:
        application = session.resourcemanager.get(application_id)
        if has_launched(application) or time.monotonic() >= until:
            return application
        session.pause(pause)
        pause = min(0.5, pause * 2)

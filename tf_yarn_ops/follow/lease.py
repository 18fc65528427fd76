"""`Lease`: the client that waits for an application moves its end in YARN; when the client is gone, YARN ends it.

Everything about a lease is here: its times, and ``<staging>/leases/<application id>``, the note about the client that
holds it. The note outlives the application's directory, because it is read after the end: YARN
keeps no text of a client that has gone; `sweep` deletes old ones. `follow.wait` moves it.

References
----------
Hadoop, ``RMAppLifetimeMonitor``: the ResourceManager looks every three seconds
(``yarn.resourcemanager.application-timeouts.monitor.interval-ms``). It keeps each end as a time of its own clock in the
state store. A time that passed while no ResourceManager ran counts at once when one is back.
"""

import json
import logging
import math
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..errors import TfYarnError
from ..job.spec import JobSpec
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..runtime.common.values import parse_json
from ..staging.staging_directory import LEASES_FOLDER, StagingDirectory

logger = logging.getLogger(__name__)

#: The lease of a door that has it on by default, seconds.
USUAL_LEASE = 900.0
#: A lease is moved after this part of it.
PART = 1 / 4
#: Seconds that a ResourceManager needs after an outage until it takes the next move: recovery, a look of the client.
_RETURN = 75.0
#: Seconds by which YARN's lifetime is longer than the deadlines, so that these end the job first and say why.
LIFETIME_SLACK = 300.0


class End(NamedTuple):
    """A time at which YARN ends an application.

    Attributes
    ----------
    at : float
        Seconds since the epoch, by the clock of the ResourceManager.
    leased : bool
        Whether this is the end of a lease; False for that of the job's own deadlines.
    """

    at: float
    leased: bool


@dataclass(frozen=True)
class Lease:
    """The lease of a client on an application.

    Parameters
    ----------
    seconds : float
        The application ends this long after the last move.
    lifetime : float, optional
        Seconds from the submission after which YARN ends the application although its client lives. Default: no limit.
    holder : str, optional
        The client, for the report of a lease that has run out.
    """

    seconds: float
    lifetime: float | None = None
    holder: str = ""

    def end(self, application: Mapping[str, Any]) -> End | None:
        """Return the end that an application should have from now on; None if its own deadlines have passed.

        Parameters
        ----------
        application : mapping
            YARN's ``app`` object of a live application. Its ``elapsedTime`` follows the clock of the ResourceManager,
            so the result does not depend on the clock of this machine.
        """
        submitted = int(application.get("startedTime") or 0) / 1000
        now = submitted + int(application.get("elapsedTime") or 0) / 1000
        if self.lifetime is None or now + self.seconds < submitted + self.lifetime:
            return End(now + self.seconds, True)
        # YARN answers a time in the past with an error.
        return End(submitted + self.lifetime, False) if submitted + self.lifetime > now + 1 else None


def usual_lease(unreachable_timeout: float) -> float:
    """Return the seconds of a lease where the job does not say them.

    A client gives up after ``unreachable_timeout`` seconds without an answer of YARN. Three quarters of a lease are
    left when its move fails for the first time. They have to last for that, and for the return of the ResourceManager.
    """
    return max(USUAL_LEASE, math.ceil((min(unreachable_timeout, 86400.0) + _RETURN) / (1 - PART)))


def with_lease(spec: JobSpec, unreachable_timeout: float) -> JobSpec:
    """Return a job that YARN ends when no client waits for it any more, unless the job itself says what its lease is.

    Parameters
    ----------
    spec : JobSpec
    unreachable_timeout : float
        As in `usual_lease`.
    """
    return spec if spec.lease is not None else replace(spec, lease=usual_lease(unreachable_timeout))


def first_end(spec: JobSpec, application: Mapping[str, Any]) -> End | None:
    """Return the end that YARN gets for an application that was just submitted: of its lease, else of its deadlines."""
    lease, lifetime = lease_of(spec, ""), lifetime_of(spec)
    if lease is not None:
        return lease.end(application)
    return End(int(application["startedTime"]) / 1000 + lifetime, False) if lifetime is not None else None


def lease_of(spec: JobSpec, holder: str) -> Lease | None:
    """Return the lease that a job asks for; None if it asks for none.

    Parameters
    ----------
    spec : JobSpec
    holder : str
        The client; its process and its machine are added.
    """
    return Lease(spec.lease, lifetime_of(spec), client_name(holder)) if spec.lease else None


def client_name(holder: str) -> str:
    """Return the name of a client with its process and its machine."""
    return f"{holder} (process {os.getpid()} on {socket.gethostname()})"


def lifetime_of(spec: JobSpec) -> float | None:
    """Return the seconds after which YARN itself ends the job; None if the queue or the total deadline is 0.

    YARN counts from the submission, so the lifetime is the sum of both deadlines.
    """
    queue, total = spec.deadlines.queue, spec.deadlines.total
    return queue + total + LIFETIME_SLACK if queue and total else None


def note_holder(
    staging: Callable[[str | None], StagingDirectory], application_id: str, user: str, lease: Lease
) -> bool:
    """Write who holds a lease, over the note of an earlier holder; return whether it is written.

    An error is only logged, because the lease itself is YARN's.

    Parameters
    ----------
    staging : callable
        Returns the staging directory of a user, or raises `TfYarnError`.
    application_id, user : str
    lease : Lease
    """
    content = json.dumps({"holder": lease.holder, "seconds": lease.seconds}).encode()
    try:
        place = staging(user or None)
        place.make_private(f"{place.cluster.staging}/{LEASES_FOLDER}")
        place.filesystem.replace(holder_path(place, application_id), content, 0o600)
    except (TfYarnError, OSError) as error:
        logger.debug("the holder of the lease of %s is not noted: %s", application_id, error)
        return False
    return True


def with_holder(staging: Callable[[str | None], StagingDirectory], report: JobReport) -> JobReport:
    """Return a report of a lease that has run out with its last holder, if it is known; any other report as it is.

    Parameters
    ----------
    staging : callable
        As in `note_holder`.
    report : JobReport
    """
    if report.reason is not Reason.LEASE_EXPIRED:
        return report
    try:
        place = staging(report.user or None)
        note = parse_json(place.filesystem.read(holder_path(place, report.application_id)) or b"")
        return replace(
            report,
            message=f"{report.message.rstrip('.')}. Its last holder, {note['holder']}, had to renew it within "
            f"{float(note['seconds']):g} s.",
        )
    except (TfYarnError, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        logger.debug("the holder of the lease of %s is not known: %r", report.application_id, error)
        return report


def holder_path(staging: StagingDirectory, application_id: str) -> str:
    """Return the path of the note about the holder of a lease."""
    return f"{staging.cluster.staging}/{LEASES_FOLDER}/{application_id}"

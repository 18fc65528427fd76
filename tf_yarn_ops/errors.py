"""The errors of tf_yarn_ops: one tree, each with the reason that a report would carry."""

from collections.abc import Iterable, Sequence

from .runtime.common.reasons import Reason


def list_faults(faults: Sequence[str]) -> str:
    """Give one fault as it is, and several one a line."""
    if len(faults) == 1:
        return faults[0]
    return "\n  - ".join([f"{len(faults)} faults in the request:", *faults])


class TfYarnError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes
    ----------
    reason : Reason
        The row of the reason table; gives exit code and whether a retry can help.
    """

    reason = Reason.TASK_FAILED


class SpecInvalid(TfYarnError, ValueError):
    """A request has faults; all of them are listed, one a line.

    Attributes
    ----------
    faults : tuple of str
        Every fault of the request, in the order in which the request names them.
    """

    reason = Reason.SPEC_INVALID

    def __init__(self, faults: str | Iterable[str]):
        self.faults = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__(*self.faults)

    def __str__(self) -> str:
        return list_faults(self.faults)


class SubmissionRejected(TfYarnError, RuntimeError):
    """YARN, or the file system, refused the application; trying again changes nothing."""

    reason = Reason.SUBMISSION_REJECTED


class ResourcesImpossible(SubmissionRejected):
    """A container is larger than the cluster's maximum allocation or, where that was asked, than every running node."""

    reason = Reason.RESOURCES_IMPOSSIBLE


class ClusterUnreachable(TfYarnError, ConnectionError):
    """The ResourceManager or a file system, this machine's own too, did not answer, or is not a Hadoop at all."""

    reason = Reason.CLUSTER_UNREACHABLE


class ResourceManagerUnknown(ClusterUnreachable):
    """Neither the caller nor the configuration of this machine names a ResourceManager."""


class ApplicationNotFound(TfYarnError, LookupError):
    """The ResourceManager does not know the application."""

    reason = Reason.LOST


class Superseded(TfYarnError, RuntimeError):
    """A newer generation of the same training is live; nothing of it was touched."""

    reason = Reason.SUPERSEDED


class Cancelled(TfYarnError, RuntimeError):
    """The launcher was told to cancel; whatever it had submitted has been killed."""

    reason = Reason.KILLED


class WaitTimeout(TfYarnError, TimeoutError):
    """A wait of the caller's own ran out; the application goes on."""

    reason = Reason.TOTAL_TIMEOUT


class MiniClusterError(TfYarnError, RuntimeError):
    """The embedded Hadoop could not be started, stopped or found."""

    reason = Reason.CLUSTER_UNREACHABLE

"""The errors of tf_yarn_ops, one tree, each with its reason in reports; and the faults of a request.

A `Fault` is data: the path of the value, a code, and the values that its text shows. Code reads the path and the
code; only people read the text.
"""

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from .runtime.common.reasons import Reason

if TYPE_CHECKING:
    from .runtime.common.report import JobReport

ErrorType = TypeVar("ErrorType", bound="TfYarnError")


class FaultCode(enum.Enum):
    """The kind of a fault. A member's value is a template for `str.format`; each room declares its own members."""


class GeneralFault(FaultCode):
    """Codes that every room uses."""

    #: A finished sentence, for a fault that only people read.
    SENTENCE = "{sentence}"
    UNKNOWN_KEY = "unknown key{hint}; known: {allowed}"
    NOT_A_CHOICE = "{given!r} is not one of {allowed}{hint}"
    UNREADABLE_FILE = "{file!r} can't be read: {error}"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request.

    Parameters
    ----------
    path : str
        The name of the value: ``tasks.worker.memory``, an option, or the key of a file. Empty for a value that has
        no name yet, and for the request as a whole.
    code : FaultCode
        The kind of the fault, with the template of the text.
    values : mapping of str to object, optional
        The values for the template. These names have a meaning: ``given`` is the value; ``allowed`` the allowed
        names or words, from which the text suggests the nearest; ``other`` the path of another value that the text
        names; ``item`` one of several values under the path, and ``position`` its number, from 1. Never put the
        value of an environment variable here: it may be a secret.
    """

    path: str
    code: FaultCode
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def below(self, parent: str) -> "Fault":
        """Return the same fault with its paths below ``parent``."""
        return self.renamed(lambda path: f"{parent}.{path}" if path else parent)

    def renamed(self, rename: Callable[[str], str]) -> "Fault":
        """Return the same fault with other paths."""
        other = {"other": rename(self.values["other"])} if "other" in self.values else {}
        return replace(self, path=rename(self.path), values={**self.values, **other})

    def in_file(self, file: object) -> "Fault":
        """Return the same fault with the file before its path."""
        return replace(self, path=f"{file}: {self.path}" if self.path else str(file))

    @property
    def text(self) -> str:
        """The text of the fault, without the path."""
        shown = {
            name: ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else value
            for name, value in self.values.items()
        }
        hint = did_you_mean(str(self.values.get("given", "")), map(str, self.values.get("allowed", ())))
        return str(self.code.value).format(**{"hint": hint, **shown})

    def __str__(self) -> str:
        where = self.path
        if "position" in self.values:
            where += f", item {self.values['position']}"
        if "item" in self.values:
            where += f" {self.values['item']!r}"
        return f"{where}: {self.text}" if where else self.text


def why_unreadable(error: Exception) -> str:
    """Return why a file can't be read or written, without the number and the name that Python's text has."""
    if isinstance(error, IsADirectoryError):
        return "it is a folder; name a file"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8; convert the file to UTF-8"
    return getattr(error, "strerror", None) or str(error)


def did_you_mean(name: str, valid: Iterable[str], likeness: float = 0.5) -> str:
    """Return `` (did you mean 'worker'?)`` with the valid name nearest to ``name``; empty if none is near.

    ``likeness`` is that of the farthest name that counts as near, from 0 to 1, as `difflib` measures it.
    """
    near = difflib.get_close_matches(name, sorted(valid), n=1, cutoff=likeness)
    return f" (did you mean {near[0]!r}?)" if near else ""


def list_faults(faults: Sequence[object]) -> str:
    """Return the text of faults: of a single one its text, of several a heading and one line each."""
    if len(faults) == 1:
        return str(faults[0])
    return "\n  - ".join([f"{len(faults)} faults in the request:", *map(str, faults)])


_KERBEROS_HINT = "Correct what the message says about Kerberos, then try again."


class TfYarnError(Exception):
    """The base of every error that this package raises on purpose.

    Attributes
    ----------
    reason : Reason
        The row of the reason table. It holds the exit code and whether a retry can help.
    command : str
        The command that helps; empty for that of the reason.
    """

    reason = Reason.TASK_FAILED
    command = ""

    @property
    def hint(self) -> str:
        """The next step for the operator, a sentence: that of the reason, unless the kind of error knows better."""
        return self.reason.hint

    def with_command(self: ErrorType, command: str) -> ErrorType:
        """Set the command that helps; return the same error."""
        self.command = command
        return self


class SpecInvalid(TfYarnError, ValueError):
    """A request has faults; the text lists all of them, one a line.

    Parameters
    ----------
    faults : Fault, str, or iterable of them
        A text stands for a fault without a path, with the code `GeneralFault.SENTENCE`.

    Attributes
    ----------
    faults : tuple of Fault
        Every fault of the request, in the order in which the request names them.
    """

    reason = Reason.SPEC_INVALID

    def __init__(self, faults: Fault | str | Iterable[Fault | str]):
        several = (faults,) if isinstance(faults, Fault | str) else faults
        self.faults = tuple(
            Fault("", GeneralFault.SENTENCE, {"sentence": one}) if isinstance(one, str) else one for one in several
        )
        super().__init__(self.faults)

    def __str__(self) -> str:
        return list_faults(self.faults)


class ResourceManagerUnknown(SpecInvalid):
    """Neither the caller nor the configuration of this machine names a ResourceManager."""


class SubmissionRejected(TfYarnError, RuntimeError):
    """YARN or the file system has refused the application; another try would be refused too."""

    reason = Reason.SUBMISSION_REJECTED


class ResourcesImpossible(SubmissionRejected):
    """A container is above the cluster's maximum allocation, or, with strict placement, above every running node."""

    reason = Reason.RESOURCES_IMPOSSIBLE


class ClusterUnreachable(TfYarnError, ConnectionError):
    """The ResourceManager or a file system does not answer, or its answer is not Hadoop's.

    Also raised for faults of this machine, such as a full disk: a retry on another machine can help.
    """

    reason = Reason.CLUSTER_UNREACHABLE


class KmsUnreachable(ClusterUnreachable):
    """The key server of an encryption zone does not answer the file system or this client."""

    command = "ytf doctor"
    hint = "Let the administrator of Hadoop start the KMS that the message names, then try again."


class TicketMissing(ClusterUnreachable):
    """There is no ticket now, as it has expired or no KDC answers; the same call can succeed later."""

    command = "ytf doctor"
    hint = _KERBEROS_HINT


class KerberosRefused(SubmissionRejected):
    """Only a person can help: no ticket or library, a ticket of another realm, a useless keytab, a locked principal."""

    command = "ytf doctor"
    hint = _KERBEROS_HINT


class CredentialsRefused(SubmissionRejected):
    """A gateway refuses the password or the token of a request; another try with the same one can lock an account."""

    command = "ytf doctor"
    hint = "Correct the password or the token that the message names, then try again."


class HadoopClientUnfit(SubmissionRejected):
    """Hadoop's client on this machine is missing, or can't submit with its configuration or its Java.

    Parameters
    ----------
    message : str
    http_closed : bool, optional
        Whether the cluster has refused the submission over HTTP before; then the message says why. Default False.
    """

    def __init__(self, message: str, http_closed: bool = False):
        super().__init__(message)
        self.http_closed = http_closed

    @property
    def hint(self) -> str:
        return (
            "Correct Hadoop's client on this machine, or what closes HTTP, as the message says."
            if self.http_closed
            else "Correct Hadoop's client on this machine as the message says, or submit over HTTP."
        )


class ApplicationNotFound(TfYarnError, LookupError):
    """The ResourceManager does not know the application."""

    reason = Reason.LOST


class LogMissing(ApplicationNotFound):
    """No service has the log of a task; its application may run."""

    hint = (
        "A log is on its node while the container runs, and at the log server a few seconds after the end; "
        "log_server in site.yaml names that server."
    )


class CommitRefused(TfYarnError, RuntimeError):
    """The output of a job can't be committed: it exists, another training writes it, or its folder is not ours."""

    reason = Reason.COMMIT_REFUSED


class Superseded(TfYarnError, RuntimeError):
    """A newer generation of the same training exists; it was left alone."""

    reason = Reason.SUPERSEDED


class Cancelled(TfYarnError, RuntimeError):
    """The launcher was cancelled, and has killed the application that it had submitted."""

    reason = Reason.KILLED


class FunctionFailed(TfYarnError, RuntimeError):
    """The job of a function ended without success; the text ends with the log of the task that failed first.

    Attributes
    ----------
    report : JobReport
    """

    def __init__(self, report: "JobReport"):
        self.report = report
        self.reason = report.reason or Reason.TASK_FAILED
        log = "".join(
            f"\n\n{task.task}:\n{task.log_tail}"
            for task in report.tasks
            if task.task == report.first_failure and task.log_tail
        )
        super().__init__(f"{report.application_id} {self.reason.value}: {report.message}{log}")


class WaitTimeout(TfYarnError, TimeoutError):
    """The time that the caller wanted to wait is over; the application continues."""

    reason = Reason.TOTAL_TIMEOUT


class MiniClusterError(TfYarnError, RuntimeError):
    """The embedded Hadoop could not be started, stopped or found."""

    reason = Reason.CLUSTER_UNREACHABLE

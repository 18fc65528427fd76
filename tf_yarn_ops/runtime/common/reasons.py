"""Why a job ended: the table of reasons with their exit codes, and whether a retry can help.

Engines map a reason to their own status; nothing else decides whether to try again.
"""

import enum
import re
from typing import Any, NamedTuple, Optional


class Reason(str, enum.Enum):
    """Why a job ended; the value is the name in reports, logs and documents.

    Attributes
    ----------
    exit_code : int
        Exit code of ``ytf-submit --wait`` and ``ytf wait``, 0 to 9.
    retryable : bool
        Whether the infrastructure failed and the same job may be submitted again.
        A failure of the user's program is the business of the engine's own retries.
    hint : str
        The next step for the operator, a sentence.
    """

    exit_code: int
    retryable: bool
    hint: str

    def __new__(cls, name: str, *outcome: Any) -> "Reason":
        reason = str.__new__(cls, name)
        reason._value_ = name
        reason.exit_code, reason.retryable, reason.hint = outcome
        return reason

    SUCCEEDED = "SUCCEEDED", 0, False, "Nothing to do."
    TASK_FAILED = "TASK_FAILED", 1, False, "Read the failed task's log and correct the program: it ended by itself."
    SPEC_INVALID = "SPEC_INVALID", 2, False, "Correct what the message names."
    SUBMISSION_REJECTED = (
        "SUBMISSION_REJECTED", 3, False, "Correct the queue, node label, rights or limits in the message."
    )  # fmt: skip
    RESOURCES_IMPOSSIBLE = "RESOURCES_IMPOSSIBLE", 3, False, "Ask for less; the message says what the cluster has."
    ENVIRONMENT_INVALID = (
        "ENVIRONMENT_INVALID", 2, False, "Use an environment with Python 3.9 or later: venv:///folder or "
        "python:///path of every node, or an archive with bin/python."
    )  # fmt: skip
    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE", 4, True, "Check the addresses of the ResourceManager and the NameNode."
    QUEUE_TIMEOUT = "QUEUE_TIMEOUT", 5, True, "Submit again later or to another queue, or raise queue_timeout."
    ALLOCATION_TIMEOUT = (
        "ALLOCATION_TIMEOUT", 5, True, "Submit again when all tasks have room at once, or ask for less."
    )  # fmt: skip
    REGISTRATION_TIMEOUT = (
        "REGISTRATION_TIMEOUT", 5, True, "Read the containers' logs; open the coordinator's ports, or raise "
        "registration_timeout."
    )  # fmt: skip
    HEARTBEAT_LOST = (
        "HEARTBEAT_LOST", 5, True, "Check the node of the silent task and the task's log, then submit again."
    )  # fmt: skip
    CONTAINER_LOST = "CONTAINER_LOST", 5, True, "Find in the NodeManager's log what ended the containers; submit again."
    PREEMPTED = "PREEMPTED", 5, True, "Use a queue with guaranteed capacity, or raise max_container_losses."
    NODE_LOST = "NODE_LOST", 5, True, "Submit again: a node left the cluster."
    AM_FAILED = "AM_FAILED", 5, True, "Read application.driver.log, then application.master.log, and submit again."
    OUT_OF_MEMORY = "OUT_OF_MEMORY", 6, False, "Raise the memory of the task type in the message."
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT", 7, False, "Raise execution_timeout, or find out why the training hangs."
    STALLED = (
        "STALLED", 7, False, "Find the hang in the Python stacks at the end of each task's log, or raise stall_timeout."
    )  # fmt: skip
    TOTAL_TIMEOUT = "TOTAL_TIMEOUT", 7, False, "Raise total_timeout, or find out why the job takes so long."
    LEASE_EXPIRED = (
        "LEASE_EXPIRED", 5, True, "Find out why the client in the message ended, or could not reach YARN, and "
        "submit again."
    )  # fmt: skip
    COMMIT_FAILED = (
        "COMMIT_FAILED", 5, True, "Check the file system of the output and submit again; the working folder keeps "
        "the work."
    )  # fmt: skip
    COMMIT_REFUSED = "COMMIT_REFUSED", 3, False, "Correct what the message names; the working folder keeps the work."
    KILLED = "KILLED", 8, False, "Submit again if the kill was a mistake."
    SUPERSEDED = "SUPERSEDED", 8, False, "Follow the newer application of the same training."
    LOST = "LOST", 9, False, "Check the output before you submit again."
    UNKNOWN_REASON = (
        "UNKNOWN_REASON", 1, False, "Use the release that has submitted the job: this one is older, and does not "
        "know the reason."
    )  # fmt: skip


class StartFault(NamedTuple):
    """Why a container has ended before a program of ours ran in it.

    Attributes
    ----------
    reason : Reason
    advice : str
        What is wrong, and what to do.
    everywhere : bool
        Whether a container on any other node ends so, too.
    words : str
        YARN's own, without its stack trace.
    """

    reason: Reason
    advice: str
    everywhere: bool = False
    words: str = ""

    def __str__(self) -> str:
        return f"{self.advice} ({self.words})" if self.words else self.advice


#: What a NodeManager says of a file that it can't localise.
_LOCALISATION_FAULTS = (
    (
        # Java calls a local file that it can't open not found, too.
        r"No space left on device|(?:any valid|good) local director|No good disks|Disk quota exceeded|"
        r"\((?:Read-only file system|Input/output error|Too many open files|Permission denied|Stale file handle)\)|"
        r"File file:\S*/nmPrivate/\S+ does not exist",
        StartFault(Reason.CONTAINER_LOST, "a disk of the node is full or broken: its administrator must free it"),
    ),
    (
        r"Resource \S+ changed on src filesystem",  # a new submission takes the file as it is then
        StartFault(
            Reason.CONTAINER_LOST,
            "a file was replaced after the submission: submit again, and give each version a name of its own",
            True,
        ),
    ),
    (
        r"(?:AccessControlException: )?Permission denied: user=|Resource \S+ is not publicly accessible",
        StartFault(Reason.SUBMISSION_REJECTED, "YARN may not read a file of the job: let the job's user read it", True),
    ),
    (
        r"File does not exist: \S+/(?:application_\d+_\d+|cache)/",  # the next submission stages it again
        StartFault(Reason.CONTAINER_LOST, "a staged file is gone: submit again, and let nobody delete it", True),
    ),
    (
        r"File does not exist|FileNotFoundException",
        StartFault(Reason.SUBMISSION_REJECTED, "a file of the job is gone: keep it until the job has ended", True),
    ),
    (
        r"ZipException",
        StartFault(
            Reason.SUBMISSION_REJECTED, "an archive of the job is broken, see unzip -t: write it once more", True
        ),
    ),
    (
        r"Error executing command|Download and unpack failed",  # the text does not say why tar has failed
        StartFault(
            Reason.CONTAINER_LOST, "an archive of the job is broken, see tar -tzf, or the disk of the node is full"
        ),
    ),
)
_REST_OF_MESSAGE = r".{0,400}?(?=\s(?:at|java\.\S+|org\.\S+|Caused by:)\s|\s*\Z)"


def find_localisation_fault(text: str) -> Optional[StartFault]:
    """Return why YARN could not localise a file of a container; None if its text does not say that.

    Parameters
    ----------
    text : str
        YARN's diagnostics of a container in which nothing has run.

    References
    ----------
    Hadoop, ``FSDownload`` and ``FileUtil``.
    """
    if "container-launch" in text:  # it was started; the text may have words of its programs
        return None
    for words, fault in _LOCALISATION_FAULTS:
        if found := re.search(f"(?:{words}){_REST_OF_MESSAGE}", text, re.S):
            return fault._replace(words=" ".join(found[0].split()))
    return None

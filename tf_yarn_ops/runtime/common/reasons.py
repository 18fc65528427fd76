"""Why a job ended: the one table of reasons, exit codes and what may be retried.

Engines map a reason to their own status; nothing else decides what is worth a
second try.
"""

import enum
from typing import NamedTuple


class Outcome(NamedTuple):
    """What follows from a reason.

    Attributes
    ----------
    exit_code : int
        Exit code of ``ytf-submit --wait`` and ``ytf wait``, 0 to 9.
    retryable : bool
        Whether the infrastructure failed and the same job may be submitted again.
        A failure of the user's program is the business of the engine's own retries.
    hint : str
        What an operator does next, a sentence.
    """

    exit_code: int
    retryable: bool
    hint: str


class Reason(str, enum.Enum):
    """Why a job ended; the value is the name in reports, logs and documentation."""

    SUCCEEDED = "SUCCEEDED"
    TASK_FAILED = "TASK_FAILED"
    SPEC_INVALID = "SPEC_INVALID"
    SUBMISSION_REJECTED = "SUBMISSION_REJECTED"
    RESOURCES_IMPOSSIBLE = "RESOURCES_IMPOSSIBLE"
    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE"
    QUEUE_TIMEOUT = "QUEUE_TIMEOUT"
    ALLOCATION_TIMEOUT = "ALLOCATION_TIMEOUT"
    REGISTRATION_TIMEOUT = "REGISTRATION_TIMEOUT"
    HEARTBEAT_LOST = "HEARTBEAT_LOST"
    CONTAINER_LOST = "CONTAINER_LOST"
    PREEMPTED = "PREEMPTED"
    NODE_LOST = "NODE_LOST"
    AM_FAILED = "AM_FAILED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT"
    TOTAL_TIMEOUT = "TOTAL_TIMEOUT"
    KILLED = "KILLED"
    SUPERSEDED = "SUPERSEDED"
    LOST = "LOST"

    @property
    def exit_code(self) -> int:
        return OUTCOMES[self].exit_code

    @property
    def retryable(self) -> bool:
        return OUTCOMES[self].retryable

    @property
    def hint(self) -> str:
        return OUTCOMES[self].hint


OUTCOMES = {
    Reason.SUCCEEDED: Outcome(0, False, "Nothing to do."),
    Reason.TASK_FAILED: Outcome(1, False, "Read the failed task's log; the program ended by itself."),
    Reason.SPEC_INVALID: Outcome(2, False, "Correct the request; the message lists every fault."),
    Reason.SUBMISSION_REJECTED: Outcome(3, False, "Read why in the message: queue, node label, rights or limits."),
    Reason.RESOURCES_IMPOSSIBLE: Outcome(3, False, "Ask for what the cluster has; the message has the figures."),
    Reason.CLUSTER_UNREACHABLE: Outcome(4, True, "Check the ResourceManager's and the NameNode's addresses."),
    Reason.QUEUE_TIMEOUT: Outcome(5, True, "The queue was full for too long; wait, or raise queue_timeout."),
    Reason.ALLOCATION_TIMEOUT: Outcome(5, True, "The cluster could not hold all tasks at once; wait, or ask for less."),
    Reason.REGISTRATION_TIMEOUT: Outcome(5, True, "Containers ran but no agent called; see their logs and firewall."),
    Reason.HEARTBEAT_LOST: Outcome(5, True, "A task fell silent; see its node and its log."),
    Reason.CONTAINER_LOST: Outcome(5, True, "Containers were lost more often than max_container_losses allows."),
    Reason.PREEMPTED: Outcome(5, True, "Another queue took the containers back; use a queue with a guarantee."),
    Reason.NODE_LOST: Outcome(5, True, "A node left the cluster; submit again."),
    Reason.AM_FAILED: Outcome(5, True, "The application master died; see application.driver.log and its node."),
    Reason.OUT_OF_MEMORY: Outcome(6, False, "Raise the memory of the task type that was killed."),
    Reason.EXECUTION_TIMEOUT: Outcome(7, False, "The training took longer than execution_timeout allows."),
    Reason.TOTAL_TIMEOUT: Outcome(7, False, "The job took longer than total_timeout or YARN's lifetime allows."),
    Reason.KILLED: Outcome(8, False, "Somebody killed the application; the message says who, where YARN knows."),
    Reason.SUPERSEDED: Outcome(8, False, "A newer request for the same training took over."),
    Reason.LOST: Outcome(9, False, "YARN no longer knows the application; look for its output."),
}

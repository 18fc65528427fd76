"""How the job treats each task type: the table of docs/concepts/lifecycle.md."""

from typing import NamedTuple


class Role(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    in_cluster : bool
        Whether the task is part of the cluster spec.
    awaited : bool
        Whether the job waits for its end. A task that is not awaited is ended with the job.
    fatal : bool
        Whether the failure of its command spends a restart, or without one fails the job. Without a success of any
        awaited task the job fails, too.
    """

    in_cluster: bool
    awaited: bool
    fatal: bool


CHIEF = "chief"
EVALUATOR = "evaluator"
TENSORBOARD = "tensorboard"

ROLES = {
    CHIEF: Role(in_cluster=True, awaited=True, fatal=True),
    "worker": Role(in_cluster=True, awaited=True, fatal=True),
    "ps": Role(in_cluster=True, awaited=False, fatal=True),
    EVALUATOR: Role(in_cluster=False, awaited=True, fatal=True),
    TENSORBOARD: Role(in_cluster=False, awaited=False, fatal=False),
}
#: Any other name behaves like a worker.
OTHER = ROLES["worker"]

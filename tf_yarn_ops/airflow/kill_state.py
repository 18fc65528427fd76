"""`KillState`: what becomes of the application of a task that Airflow ends; pure, without Airflow.

Airflow sends the same signal when a person or a time limit ends a task, when a worker is shut down, and to a worker
that it takes for lost: after an outage of the API server, or after the scheduler has given the task to another try.
Only in the first case the application is killed. Otherwise it is left to the next try, which attaches.
"""

import enum
from dataclasses import dataclass

#: States of a task instance that no try follows, unless a person clears it; a try after a clear trains anew.
FINAL = ("failed", "success", "skipped", "upstream_failed", "removed")
#: States that a person or a time limit has set: the application of the present try ends. Airflow sets ``restarting``
#: only when a person clears a running task. In any other state a try goes on or follows, and attaches.
DECIDED = (*FINAL, "restarting", "deleted")


class KillOutcome(enum.Enum):
    """What has become of the application; the value is the part of a sentence."""

    NONE = "goes on"
    LEFT = "was left alone"
    SENT = "may still run (its end is not confirmed)"
    DONE = "was killed"


@dataclass(frozen=True)
class KillState:
    """The decision about an application.

    Attributes
    ----------
    outcome : KillOutcome
    unclear : str or None
        The state of the task if it shows that no person has ended this try.
    """

    outcome: KillOutcome = KillOutcome.NONE
    unclear: str | None = None

    def on_signal(
        self,
        *,
        leaves: bool = False,
        has_application: bool = True,
        state: str | None = None,
        last_try: bool = False,
        leased: bool = False,
    ) -> "KillState":
        """Return the state after a signal; the first decision stays, and a further kill repeats it.

        Parameters
        ----------
        leaves : bool, optional
            Whether the operator has ``on_kill="leave"``.
        has_application : bool, optional
            Whether there is an application to kill.
        state : str or None, optional
            The state of the task; empty if Airflow did not answer. None: a person or a time limit has decided.
        last_try : bool, optional
            Whether no try follows a failure of this one.
        leased : bool, optional
            Whether YARN ends the application when no client waits for it.
        """
        decided = state is None or state in DECIDED
        # No later try attaches to the application.
        final = decided or (last_try and (state == "running" or (not state and not leased)))
        kills = final and not leaves
        if self.outcome is KillOutcome.LEFT or not (kills or self.outcome is KillOutcome.NONE):
            return self
        if not kills:
            return KillState(KillOutcome.LEFT, None if leaves else state)
        return KillState(KillOutcome.SENT if has_application else KillOutcome.DONE)

    def on_answer(self, accepted: bool) -> "KillState":
        """Return the state after the answer of YARN to a kill."""
        return KillState(KillOutcome.DONE) if accepted else self

    def describe(self, application_id: str) -> str:
        """Return the sentence for the error of the task."""
        text = f"{application_id or 'The submission'} {self.outcome.value}: Airflow ended the task or its worker"
        if self.unclear is None:
            return text
        return f"{text} (state of the task: {self.unclear or 'Airflow did not answer'}); the next try attaches to it"

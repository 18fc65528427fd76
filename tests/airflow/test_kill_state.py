"""What becomes of an application whose task Airflow ends: the table, without Airflow."""

import subprocess
import sys

import pytest

from support.source import ROOT
from tf_yarn_ops.airflow.kill_state import DECIDED, KillOutcome, KillState

NONE, LEFT, SENT, DONE = KillOutcome
ON, LAST = False, True


@pytest.mark.parametrize(("state", "last_try", "leased", "outcome"), [
    *[(state, ON, False, SENT) for state in (None, *DECIDED)],
    *[(state, LAST, False, LEFT) for state in ("scheduled", "queued", "up_for_retry", "deferred", "replaced")],
    ("running", ON, False, LEFT), ("running", LAST, False, SENT), ("running", LAST, True, SENT),
    ("", ON, False, LEFT), ("", LAST, False, SENT), ("", LAST, True, LEFT),
])  # fmt: skip
def test_signal_kills_only_when_no_later_try_attaches(state, last_try, leased, outcome):
    after = KillState().on_signal(state=state, last_try=last_try, leased=leased)
    assert (after.outcome, after.unclear) == (outcome, state if outcome is LEFT else None)


@pytest.mark.parametrize(
    ("before", "signal", "after"),
    [
        (NONE, {"leaves": True}, LEFT),
        (NONE, {"has_application": False}, DONE),
        (NONE, {"has_application": False, "state": "running"}, LEFT),
        (LEFT, {}, LEFT),
        (SENT, {}, SENT),
        (DONE, {}, SENT),
        (SENT, {"state": "running"}, SENT),
        (SENT, {"leaves": True}, SENT),
    ],
)
def test_signal_after_another_one(before, signal, after):
    assert KillState(before).on_signal(**signal).outcome is after


@pytest.mark.parametrize(("accepted", "after"), [(True, DONE), (False, SENT)])
def test_only_an_accepted_kill_is_confirmed(accepted, after):
    assert KillState(SENT).on_answer(accepted).outcome is after


@pytest.mark.parametrize(
    ("state", "application_id", "text"),
    [
        (KillState(DONE), "", "The submission was killed: Airflow ended the task or its worker"),
        (KillState(SENT), "application_1_0001", "application_1_0001 may still run (its end is not confirmed): Airflow"),
        (KillState(LEFT), "application_1_0001", "application_1_0001 was left alone: Airflow ended the task or its"),
        (KillState(LEFT, "queued"), "a", "worker (state of the task: queued); the next try attaches to it"),
        (KillState(LEFT, ""), "a", "(state of the task: Airflow did not answer); the next try attaches to it"),
    ],
)
def test_sentence_names_outcome_and_state(state, application_id, text):
    assert text in state.describe(application_id)


def test_module_needs_no_airflow():
    code = "import sys, tf_yarn_ops.airflow.kill_state; sys.exit('airflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0

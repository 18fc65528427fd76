"""When an application is lost, and how often an outage is told; the waits themselves are in test_launcher.py."""

import pytest

from tf_yarn_ops.errors import ClusterUnreachable, SubmissionRejected, TicketMissing
from tf_yarn_ops.follow.wait import LOST_AFTER, REPEAT, SILENT_AFTER, Look, Outage, Unknown, waiting
from tf_yarn_ops.hadoop.resourcemanager import RECOVERY_TIME
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

RUNNING = {"id": "application_1_0001", "state": "RUNNING"}


@pytest.mark.parametrize("seen, looks, lost", [
    (False, [0], [False]),
    (False, [0, 0], [False, True]),
    (True, [0, 1, RECOVERY_TIME - 0.1, RECOVERY_TIME], [False, False, False, True]),
    (True, [0], [False]),
])
def test_unknown_twice_is_lost_and_one_that_was_seen_not_before_a_restart_is_over(seen, looks, lost):
    unknown = Unknown()
    assert [unknown.again(1000 + at, seen) for at in looks] == lost


def test_an_answer_between_two_looks_begins_anew():
    unknown = Unknown()
    for at in (0.0, 2 * RECOVERY_TIME):
        assert not unknown.again(at, True)
        unknown.answered()
    assert [unknown.again(at, False) for at in range(LOST_AFTER)] == [False] * (LOST_AFTER - 1) + [True]


def test_an_unchanged_report_is_repeated_for_those_who_write_a_log():
    now, told = [0.0], []
    steps = waiting("application_1_0001", on_change=lambda report: told.append(now[0]), clock=lambda: now[0])
    step = next(steps)
    for at in (0.0, 1.0, REPEAT - 1, REPEAT, 2 * REPEAT - 1, 2 * REPEAT):
        now[0] = at
        while not isinstance(step, Look):
            step = steps.send(None)
        step = steps.send((RUNNING, JobReport(RUNNING["id"], state="RUNNING")))
    assert told == [0.0, REPEAT, 2 * REPEAT]


@pytest.mark.parametrize("state, tasks, sees_tasks, told", [
    ("RUNNING", (), True, 1), ("RUNNING", (TaskReport("worker:0"),), True, 0), ("ACCEPTED", (), True, 0),
    ("RUNNING", (), False, 0)])
def test_a_coordinator_that_does_not_show_itself_is_told_once(caplog, state, tasks, sees_tasks, told):
    """An application master whose token does not fit registers, and then hangs until YARN ends it after ten minutes."""
    now = [0.0]
    steps = waiting("application_1_0001", on_change=lambda report: None, clock=lambda: now[0], sees_tasks=sees_tasks)
    step = next(steps)

    def look():
        nonlocal step
        while not isinstance(step, Look):
            step = steps.send(None)
        step = steps.send((RUNNING | {"state": state}, JobReport(RUNNING["id"], state=state, tasks=tasks)))
        return sum("does not show itself. Next: ytf logs application_1_0001 --task master" in text
                   for text in caplog.messages)

    looks = []
    for now[0] in (1000.0, 1000.0 + SILENT_AFTER, 1001.0 + SILENT_AFTER, 1002.0 + 2 * SILENT_AFTER):
        looks.append(look())
    assert looks == [0, 0, told, told]


def test_an_outage_is_told_once_for_each_kind_of_error_and_at_its_end(caplog):
    caplog.set_level("INFO")
    now = [0.0]
    outage = Outage(lambda: now[0])
    outage.answered()
    for error in (ClusterUnreachable("a away"), ClusterUnreachable("b away"), TicketMissing("expired"),
                  TicketMissing("expired"), SubmissionRejected("403")):
        now[0] += 1
        outage.failed(error, "waiting: %s", error)
    outage.answered()
    outage.answered()
    assert [record.getMessage() for record in caplog.records] == [
        "waiting: a away", "waiting: expired", "waiting: 403", "YARN answers again after 4 s"]

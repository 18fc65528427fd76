"""How often a wait reports a state or an outage; the waits themselves are in test_launcher.py."""

import types

import pytest

from tf_yarn_ops.errors import (
    ClusterUnreachable,
    CredentialsRefused,
    KerberosRefused,
    SubmissionRejected,
    TicketMissing,
)
from tf_yarn_ops.follow.wait import REPEAT, SILENT_AFTER, Driver, Outage, waiting
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

RUNNING = {"id": "application_1_0001", "state": "RUNNING"}


@types.coroutine
def step(name):
    """Yield the name of a call of the driver to the test, which sends the answer or throws an error."""
    return (yield name)


DRIVER = Driver(*(lambda *given, name=name: step(name) for name in ("poll", "call", "renew", "pause")))


def test_an_unchanged_report_is_repeated_for_those_who_write_a_log():
    now, told = [0.0], []
    steps = waiting("application_1_0001", DRIVER, on_change=lambda report: told.append(now[0]), clock=lambda: now[0])
    step = steps.send(None)
    for at in (0.0, 1.0, REPEAT - 1, REPEAT, 2 * REPEAT - 1, 2 * REPEAT):
        now[0] = at
        while step != "poll":
            step = steps.send(None)
        step = steps.send((RUNNING, JobReport(RUNNING["id"], state="RUNNING")))
    assert told == [0.0, REPEAT, 2 * REPEAT]


SILENT = "application_1_0001 has run for 60 s, and its coordinator does not show itself"
UNSEEN = "application_1_0001 runs, but this client can't show its tasks: proxy:1 wants a ticket"


@pytest.mark.parametrize(
    "state, tasks, obstacle, told",
    [
        ("RUNNING", (), lambda: "", [SILENT]),
        ("RUNNING", (), lambda: "proxy:1 wants a ticket", [UNSEEN]),
        ("RUNNING", (TaskReport("worker:0"),), lambda: "", []),
        ("ACCEPTED", (), lambda: "", []),
        ("RUNNING", (), None, []),
    ],
)
def test_silent_coordinator_is_logged_once(caplog, state, tasks, obstacle, told):
    """An application master whose token does not fit registers, and then hangs until YARN ends it after ten minutes."""
    now = [0.0]
    steps = waiting(
        "application_1_0001", DRIVER, on_change=lambda report: None, clock=lambda: now[0], obstacle=obstacle
    )
    step = steps.send(None)

    def look():
        nonlocal step
        while step != "poll":
            step = steps.send(None)
        step = steps.send((RUNNING | {"state": state}, JobReport(RUNNING["id"], state=state, tasks=tasks)))
        return [text.partition(". Next: ytf logs application_1_0001 --task master")[0] for text in caplog.messages]

    looks = []
    for now[0] in (1000.0, 1000.0 + SILENT_AFTER, 1001.0 + SILENT_AFTER, 1002.0 + 2 * SILENT_AFTER):
        looks.append(look())
    assert looks == [[], [], told, told]


def test_outage_is_logged_once_for_each_error_and_at_its_end(caplog):
    caplog.set_level("INFO")
    now = [0.0]
    outage = Outage(lambda: now[0])
    outage.answered()
    for error in (
        ClusterUnreachable("a away"),
        ClusterUnreachable("b away"),
        TicketMissing("expired"),
        TicketMissing("expired"),
        SubmissionRejected("403"),
    ):
        now[0] += 1
        outage.failed(error, "waiting: %s", error)
    outage.answered()
    outage.answered()
    assert [record.getMessage() for record in caplog.records] == [
        "waiting: a away",
        "waiting: expired",
        "waiting: 403",
        "YARN answers again after 4 s",
    ]


def test_a_wait_logs_the_begin_and_the_end_of_an_outage(caplog):
    caplog.set_level("INFO")
    steps = waiting("application_1_0001", DRIVER, on_change=lambda report: None)
    assert steps.send(None) == "poll"
    for _ in range(2):
        assert steps.throw(ClusterUnreachable("away")) == "pause"
        assert steps.send(None) == "poll"
    steps.send((RUNNING, JobReport(RUNNING["id"], state="RUNNING")))
    begin, end = caplog.messages
    assert begin == "still waiting for application_1_0001: away" and "again" in end


def test_a_wait_logs_each_refusal_of_its_kill_once(caplog):
    queued = RUNNING | {"state": "ACCEPTED", "startedTime": 1, "elapsedTime": 60_000}
    steps = waiting("application_1_0001", DRIVER, on_change=lambda report: None, queue_timeout=30)
    assert steps.send(None) == "poll"
    for refusal in ("ann may not", "ann may not", "nor bob"):
        assert steps.send((queued, JobReport(RUNNING["id"], state="ACCEPTED"))) == "call"
        assert steps.throw(SubmissionRejected(refusal)) == "pause"
        assert steps.send(None) == "poll"
    assert [text.rpartition(": ")[2] for text in caplog.messages] == ["ann may not", "nor bob"]


@pytest.mark.parametrize(
    "error, kind",
    [
        (ClusterUnreachable, ClusterUnreachable),
        (SubmissionRejected, ClusterUnreachable),
        (TicketMissing, TicketMissing),
        (KerberosRefused, KerberosRefused),
        (CredentialsRefused, CredentialsRefused),
    ],
)
def test_wait_ends_with_the_kind_of_its_last_failure(error, kind):
    now = [0.0]
    steps = waiting(
        "application_1_0001", DRIVER, on_change=lambda report: None, clock=lambda: now[0], unreachable_timeout=60
    )
    assert steps.send(None) == "poll"
    assert steps.throw(error("refused")) == "pause"
    assert steps.send(None) == "poll"
    now[0] = 61.0
    with pytest.raises(kind, match="waited 61 s for application_1_0001: refused") as raised:
        steps.throw(error("refused"))
    assert type(raised.value) is kind


def test_outage_after_a_long_kill_counts_from_the_kill():
    now = [0.0]
    queued = RUNNING | {"state": "ACCEPTED", "startedTime": 1, "elapsedTime": 60_000}
    steps = waiting(
        RUNNING["id"],
        DRIVER,
        on_change=lambda report: None,
        queue_timeout=30,
        clock=lambda: now[0],
        unreachable_timeout=60,
    )
    assert steps.send(None) == "poll"
    assert steps.send((queued, JobReport(RUNNING["id"], state="ACCEPTED"))) == "call"
    now[0] = 50.0
    assert steps.send(None) == "poll"
    now[0] = 109.0
    assert steps.throw(ClusterUnreachable("away")) == "pause"

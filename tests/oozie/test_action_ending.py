"""What SIGTERM means for the training, by the state of the launcher that YARN shows."""

import os
import signal

import pytest

from support.fake_yarn import FakeYarn, application, serving
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.run import EngineRun
from tf_yarn_ops.oozie import action_ending as ending
from tf_yarn_ops.oozie.launched import Launched

STAMP = 1700000000000
LOGS = f"http://node:8042/node/containerlogs/container_e02_{STAMP}_0007_{{:02}}_000001/ann"


def launched(attempt=1):
    return Launched(
        workflow="0000004-oozie-W",
        action="train",
        run=0,
        owner="0000004-oozie-W",
        launcher=STAMP * 10**8 + 7,
        attempt=attempt,
        container=f"container_e02_{STAMP}_0007_{attempt:02}_000001",
        tag="",
    )


@pytest.fixture
def signalled(monkeypatch):
    """Return a function that delivers SIGTERM to an action whose launcher shows these states, one at each look."""
    monkeypatch.setattr(ending, "_HASTE", 2.0)
    yarn = FakeYarn()

    def deliver(*launchers):
        trained, causes, looks = yarn.add(application(9)), [], list(launchers)

        def fault(method, path):
            if path.endswith("_0007") and method == "GET":
                yarn.apps[f"application_{STAMP}_0007"] = application(
                    7, **(looks.pop(0) if len(looks) > 1 else looks[0])
                )

        yarn.faults.append(fault)
        read, write = os.pipe()
        run = EngineRun(print, print, application_ids=[trained])
        cluster = discover(yarn.url, environ={"HADOOP_USER_NAME": "ann"})
        actions = ending.ActionEnding(cluster, launched(), run, causes.append)
        thread = actions.watch(read)
        os.write(write, bytes([signal.SIGTERM]))
        thread.join(30)
        assert not thread.is_alive()
        return causes, [request for request in yarn.requests if request[0] == "PUT"]

    with serving(yarn):
        yield deliver


OURS, NEXT, UNPLACED = ({"amContainerLogs": LOGS.format(1)}, {"amContainerLogs": LOGS.format(2)}, {"state": "ACCEPTED"})


@pytest.mark.parametrize("looks", [
    [{"state": "KILLED", **OURS}],
    [OURS, OURS, {"state": "KILLED", **OURS}],
    [{"state": "FAILED"}],
    [OURS],
], ids=["killed", "stored late", "last attempt", "signal to the action alone"])  # fmt: skip
def test_training_ends_when_no_attempt_of_the_launcher_follows(signalled, looks):
    causes, kills = signalled(*looks)
    assert causes == [ending.WHY] and len(kills) == 1


@pytest.mark.parametrize("looks", [[OURS, UNPLACED], [NEXT]], ids=["next attempt waits", "next attempt runs"])
def test_training_is_left_to_the_next_attempt_of_the_launcher(signalled, looks):
    assert signalled(*looks) == ([], [])


def test_training_is_left_when_yarn_is_undecided_and_the_launcher_gone(signalled, monkeypatch):
    parents = iter([100, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    assert signalled(OURS) == ([], [])


def test_watch_starts_without_a_request(yarn):
    """A signal that comes before the action's handler would end it without the kill of its training."""
    yarn.add(application(7, "FINISHED", amContainerLogs=LOGS.format(1)))
    cluster = discover(yarn.url, environ={"HADOOP_USER_NAME": "ann"})
    actions, (read, write) = ending.ActionEnding(cluster, launched(), EngineRun(print, print), [].append), os.pipe()
    before = len(yarn.requests)
    thread = actions.watch(read)
    assert len(yarn.requests) == before
    actions.connect()
    assert [path for _, path, *_ in yarn.requests[before:]] == [f"/ws/v1/cluster/apps/application_{STAMP}_0007"]
    os.write(write, bytes([signal.SIGTERM]))
    thread.join(30)
    assert not thread.is_alive()

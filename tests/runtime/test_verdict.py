"""The ResourceManager is away when a job ends: the verdict waits for it."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest

from support.appmaster import APPLICATION, AppMaster
from support.fake_yarn import FakeYarn, application, closed_address, serving
from support.runtime_jobs import job
from support.waiting import until
from support.wire import job_of
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, parse_diagnostics
from tf_yarn_ops.runtime.master import verdict as ending
from tf_yarn_ops.runtime.master.skein_calls import SkeinFailed

STATE = f"/ws/v1/cluster/apps/{APPLICATION}/state"


def away(method, path):
    return 503, {}, "starting"


def silent(method, path):
    raise ConnectionResetError


@pytest.fixture
def yarn():
    made = FakeYarn()
    made.add(application(42))
    return made


@contextmanager
def training(tmp_path, url):
    """Run a job that succeeds as soon as a file exists."""
    mark = tmp_path / "mark"
    command = f"while [ ! -e {mark} ]; do sleep 0.05; done"
    with AppMaster(tmp_path / "job", job(command, ps=False), resourcemanagers=(url,)) as am:
        yield am, mark


@pytest.mark.slow
@pytest.mark.parametrize("at_start", ["it answers", "it recovers"])
def test_a_verdict_waits_until_a_resourcemanager_answers(yarn, tmp_path, at_start):
    """Skein would give up after 30 s, and YARN would call a training that succeeded AM_FAILED."""
    if at_start == "it recovers":
        yarn.faults.append(away)
    with serving(yarn) as url, training(tmp_path, url) as (am, mark):
        until(lambda: yarn.count("GET", STATE))
        looks = yarn.count("GET", STATE) if yarn.faults else 0
        yarn.faults.clear()
        until(lambda: yarn.count("GET", STATE) > looks)
        yarn.faults.append(silent)
        mark.touch()
        until(lambda: "the verdict waits for it" in am.coordinator_log.read_text())
        seen = yarn.count("GET", STATE)
        until(lambda: yarn.count("GET", STATE) > seen)
        assert am.ended == []
        yarn.faults.clear()
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_unreachable_resourcemanager_holds_up_nothing(tmp_path):
    """The nodes need not reach its web port."""
    with AppMaster(tmp_path / "job", job("true", ps=False), resourcemanagers=("http://nowhere.invalid:8088",)) as am:
        assert am.wait().reason is Reason.SUCCEEDED
        text = am.coordinator_log.read_text()
        assert "the verdict will not wait for it" in text and "the verdict waits for it" not in text


@pytest.mark.slow
def test_verdict_waits_for_a_resourcemanager_unseen_since_the_start(yarn, tmp_path):
    """It was restarted before the coordinator began, and the job has ended before it has recovered."""
    yarn.faults.append(away)
    with serving(yarn) as url, AppMaster(tmp_path / "job", job("true", ps=False), resourcemanagers=(url,)) as am:
        until(lambda: "the verdict waits for it" in am.coordinator_log.read_text())
        assert am.ended == []
        yarn.faults.clear()
        assert am.wait().reason is Reason.SUCCEEDED


def test_wait_for_an_unseen_resourcemanager_ends():
    closed = job_of(closed_address())
    asyncio.run(asyncio.wait_for(ending.wait_for_resourcemanager(closed, APPLICATION, seconds=0.1, seen=False), 60))
    assert ending.resourcemanager_knows(closed, APPLICATION) is False
    assert ending.resourcemanager_knows(job_of(), APPLICATION) is None


def test_forgotten_kill_is_repeated_and_never_counts_as_done(monkeypatch):
    """An exit with 0 would be the first word in YARN: 'completed successfully', whatever the verdict."""
    asked = []
    monkeypatch.setattr(ending, "kill_by_rest", lambda *words: asked.append(words))
    monkeypatch.setattr(ending, "RESOURCEMANAGER_POLL_SECONDS", 0.0)
    monkeypatch.setattr(ending, "SHUTDOWN_PAUSES", (0.0,))

    class Refusing:
        async def shutdown(self, *words):
            raise SkeinFailed("no")

    verdict = JobReport(APPLICATION, reason=Reason.TASK_FAILED, message="worker:0 failed")
    with pytest.raises(ending.VerdictRejected) as raised:
        asyncio.run(ending.end_application(Refusing(), job_of(), verdict))
    assert raised.value.report is verdict and len(asked) == ending.KILLS > 1
    assert all("worker:0 failed" in words[2] for words in asked)


@pytest.mark.slow
def test_a_verdict_that_nobody_took_is_sent_once_more_as_it_was(yarn, tmp_path):
    """The coordinator's own failure is not what the training's readers are to hear; and it exits as failed."""
    yarn.faults.append(lambda method, path: (503, {}, "starting") if method == "PUT" else None)
    failing = job("exit 3", ps=False, workers=1)
    with (
        serving(yarn) as url,
        AppMaster(tmp_path / "job", failing, hiccups={"shutdown": 99}, resourcemanagers=(url,)) as am,
    ):
        assert am.coordinator.wait(60) == 1
    kills = [request for request in yarn.requests if request[0] == "PUT"]
    assert len(kills) == ending.KILLS + 1
    reports = [parse_diagnostics(body["diagnostics"], APPLICATION)[0] for *_, body in kills]
    assert [(report.reason, report.message) for report in reports] == [(Reason.TASK_FAILED, reports[0].message)] * len(
        kills
    )
    assert "worker:0" in reports[0].message


@pytest.mark.slow
def test_a_verdict_waits_until_the_application_is_recovered(yarn, tmp_path):
    with serving(yarn) as url, training(tmp_path, url) as (am, mark):
        until(lambda: yarn.count("GET", STATE))
        forgotten = yarn.apps.pop(APPLICATION)
        mark.touch()
        until(lambda: "the verdict waits for it" in am.coordinator_log.read_text())
        assert am.ended == []
        yarn.add(forgotten)
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.parametrize(
    "status, text, known",
    [
        (200, '{"state": "RUNNING"}', True),
        (200, "<html>a proxy's page</html>", False),
        (200, "null", False),
        (401, "Authentication required", True),
        (403, "forbidden", True),
        (404, "not recovered", False),
        (503, "starting", False),
    ],
)
def test_what_counts_as_a_resourcemanager_that_knows_us(yarn, status, text, known):
    yarn.faults.append(lambda method, path: (status, {"Content-Type": "application/json"}, text))
    with serving(yarn) as url:
        assert ending.resourcemanager_knows(job_of("http://127.0.0.1:1", url), APPLICATION) is known


def test_a_standby_leads_to_the_active_one(yarn):
    """Only one address was named, and it is not at work any more."""
    standby = FakeYarn()
    with serving(yarn) as active, serving(standby) as url:
        standby.faults.append(lambda method, path: (307, {"Location": f"{active}{path}"}, "This is standby RM."))
        assert ending.resourcemanager_knows(job_of(url), APPLICATION)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", b"\x16\x03\x01\r\n\r\n", b""])
def test_server_that_dies_while_answering_has_not_answered(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert not ending.resourcemanager_knows(job_of(f"http://127.0.0.1:{server.getsockname()[1]}"), APPLICATION)
        thread.join(60)

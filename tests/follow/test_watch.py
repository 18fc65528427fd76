"""Many jobs watched by one call: requests, callbacks, and that no job disturbs the others."""

import asyncio
import contextvars
import json
import threading
from dataclasses import replace
from itertools import groupby, pairwise

import pytest

from support.fake_yarn import FakeYarn, application, serving, stand_by, verdict_text
from support.real_yarn import WIRE_AND_REAL, one_of
from support.staging_place import staged_at
from support.waiting import until, until_async
from tf_yarn_ops.follow.watch import Watcher, watcher_for
from tf_yarn_ops.launch.identity import Identity, deployment_tag
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

TAG = deployment_tag("server")
LIST = "/ws/v1/cluster/apps"


@pytest.fixture(params=WIRE_AND_REAL)
def yarn(request):
    """The ResourceManager that a test asks: the one on the wire, and the real one behind a counting proxy."""
    with one_of(request) as place:
        yield place


#: What no real ResourceManager can be brought to do, or not in numbers.
wire_only = pytest.mark.parametrize("yarn", ["wire"], indirect=True)


def add(yarn, at, **fields):
    return yarn.add(application(at, **{"applicationTags": TAG} | fields))


def finish(yarn, name, reason=Reason.SUCCEEDED, state="FINISHED"):
    final = {"KILLED": "KILLED"}.get(state, "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED")
    yarn.end(name, verdict_text(JobReport(name, reason=reason, message="x")), state, final)


def lists(yarn):
    return sum(method == "GET" and path == LIST for method, path, *_ in yarn.requests)


def singles(yarn):
    return [path.rsplit("/", 1)[-1] for method, path, *_ in yarn.requests if path.startswith(f"{LIST}/")]


@pytest.mark.slow
def test_one_list_for_all_and_one_call_for_each_end(yarn, cluster):
    names = [add(yarn, at) for at in range(1, 61)]

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.05)
        waits = [asyncio.create_task(watcher.wait(name)) for name in names]
        await until_async(lambda: lists(yarn) >= 3)
        assert singles(yarn) == []
        for name in names:
            finish(yarn, name)
        return await asyncio.gather(*waits)

    reports = asyncio.run(main())
    assert [report.application_id for report in reports] == names
    assert {report.reason for report in reports} == {Reason.SUCCEEDED}
    assert sorted(singles(yarn)) == sorted(names)
    query = next(parameters for _, path, parameters, *_ in yarn.requests if path == LIST)
    assert query["applicationTags"] == TAG and query["user"] == "ann" and "FINISHED" not in query["states"]
    assert "resourceInfo" in query["deSelects"]


@pytest.mark.slow
@wire_only
def test_two_thousand_jobs_cost_one_call_per_interval(yarn, cluster):
    names = [add(yarn, at) for at in range(1, 2001)]

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.05)
        waits = [asyncio.create_task(watcher.wait(name)) for name in names]
        await until_async(lambda: lists(yarn) >= 3, 60)
        assert singles(yarn) == []
        for wait in waits:
            wait.cancel()
        results = await asyncio.gather(*waits, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        await until_async(watcher._loop_task.done)  # without waiters there are no calls

    asyncio.run(main())


@pytest.mark.slow
def test_changes_are_reported_once(yarn, cluster):
    name = add(yarn, 1, state="ACCEPTED")
    told = []

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(name, on_change=told.append))
        await until_async(lambda: lists(yarn) >= 20)
        finish(yarn, name, Reason.TASK_FAILED, "KILLED")
        return await wait

    assert asyncio.run(main()) == told[-1] and told[-1].reason is Reason.TASK_FAILED
    assert all(one != after for one, after in pairwise(told))
    # Twice ACCEPTED on a real YARN when its words about the application master come after the first look.
    assert [state for state, _ in groupby(report.state for report in told)] == ["ACCEPTED", "KILLED"]
    assert len(told) <= 3


@wire_only
def test_running_is_reported(yarn, cluster):
    """On a real YARN: test_launcher_cluster.py, where an application master runs."""
    name = add(yarn, 1, state="ACCEPTED")
    states = []

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(name, on_change=lambda report: states.append(report.state)))
        await until_async(lambda: states)
        yarn.apps[name]["state"] = "RUNNING"
        await until_async(lambda: len(states) == 2)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED
    assert states == ["ACCEPTED", "RUNNING", "FINISHED"]


def test_unknown_twice_is_lost(yarn, cluster):
    name = yarn.reserve()  # and never submitted

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name)

    assert asyncio.run(main()).reason is Reason.LOST
    assert len(singles(yarn)) == 2


@pytest.mark.slow
@wire_only
def test_unknown_to_a_resourcemanager_that_recovers_is_not_lost(yarn, cluster):
    name = application(1)["id"]
    yarn.ha_state = "INITIALIZING"

    async def main():
        wait = asyncio.create_task(Watcher(cluster, tag=TAG, interval=0.02).wait(name))
        await until_async(lambda: len(singles(yarn)) >= 6)
        assert not wait.done()
        yarn.add(application(1, applicationTags=TAG))
        yarn.ha_state = "ACTIVE"
        seen = lists(yarn)
        await until_async(lambda: lists(yarn) >= seen + 2)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        (503, {}, "starting"),
        (500, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "boom"}}'),
        (200, {"Content-Type": "application/json"}, "not json"),
        (200, {"Content-Type": "application/json"}, "[]"),
        (200, {"Content-Type": "application/json"}, '{"apps": {"app": ["x"]}}'),
        (200, {"Content-Type": "text/html"}, "<html>"),
    ],
)
def test_a_resourcemanager_in_trouble_does_not_reach_the_waiters(yarn, cluster, answer, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.hadoop.transport.CALL_PATIENCE", 0.1)
    name = add(yarn, 1)
    troubles = [answer] * 3
    yarn.faults.append(lambda method, path: troubles.pop() if path == LIST and troubles else None)

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(name))
        await until_async(lambda: not troubles)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED


@pytest.mark.slow
@pytest.mark.parametrize("answer", ['{"app": {}}', '{"app": 7}', '{"app": {"state": "FINISHED"}}', "not json"])
def test_an_odd_answer_about_one_application_does_not_reach_its_waiter(yarn, cluster, answer):
    name = add(yarn, 1)
    finish(yarn, name)
    odd = [(200, {"Content-Type": "application/json"}, answer)] * 3
    yarn.faults.append(lambda method, path: odd.pop() if path.endswith(name) and odd else None)

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name)

    assert asyncio.run(main()).reason is Reason.SUCCEEDED
    assert not odd


@pytest.mark.parametrize(
    "fields",
    [
        {"tasks": [{"task": "worker:0", "state": "failed", "log_url": "http://["}]},
        {"tasks": [{"task": 7}], "finished_at": "soon", "rounds": 5, "usage": [1]},
        {"metrics": {"a\0b": 2**100, "__classname__": "x"}, "alerts": [{"code": 1}]},
        {"message": ["x"], "started_at": 1e300, "versions": 3, "excluded_nodes": ["n"]},
    ],
    ids=["url", "types", "metrics", "ranges"],
)
def test_ill_typed_report_of_a_kill_ends_the_wait(yarn, cluster, fields):
    name = add(yarn, 1)
    report = {"schema": 1, "application_id": name, "reason": "KILLED", **fields}
    yarn.end(name, f"Application {name} was killed by user ann at 127.0.0.1\n{json.dumps(report)}", "KILLED", "KILLED")

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name)

    assert asyncio.run(main()).reason is Reason.KILLED


def test_a_directory_that_can_not_be_deleted_does_not_hide_the_end(yarn, cluster, monkeypatch, caplog):
    def fail(self, application_id):
        raise OSError("the disk is gone")

    monkeypatch.setattr("tf_yarn_ops.staging.staging_directory.StagingDirectory.delete", fail)
    name = add(yarn, 1)
    finish(yarn, name)

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name)

    assert asyncio.run(main()).reason is Reason.SUCCEEDED
    assert "could not be deleted: the disk is gone" in caplog.text


def test_a_callback_that_fails_disturbs_nobody(yarn, cluster, caplog):
    first, second = add(yarn, 1), add(yarn, 2)

    def fail(report):
        raise RuntimeError("a stranger's mistake")

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        waits = [asyncio.create_task(watcher.wait(first, on_change=fail)), asyncio.create_task(watcher.wait(second))]
        await until_async(lambda: lists(yarn) >= 2)
        for name in (first, second):
            finish(yarn, name)
        return await asyncio.gather(*waits)

    assert len(asyncio.run(main())) == 2
    assert "a stranger's mistake" in caplog.text


def test_the_queue_deadline_of_a_watched_job(yarn, cluster):
    name = add(yarn, 1, state="ACCEPTED", elapsedTime=31_000)

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name, queue_timeout=1)

    report = asyncio.run(main())
    assert report.reason is Reason.QUEUE_TIMEOUT
    assert "longer than the 1 s of the queue deadline" in report.message


@wire_only
def test_request_of_a_wait_that_is_cancelled_keeps_its_connection(yarn, cluster):
    """The kill is on its way in a thread, and tried again, when the last wait of the watcher ends."""
    name = add(yarn, 1, state="ACCEPTED", elapsedTime=31_000)
    held, freed = threading.Event(), threading.Event()

    def hold(method, path):
        if method == "PUT" and not held.is_set():
            held.set()
            assert freed.wait(60)
            return 503, {}, "later"
        return None

    yarn.faults.append(hold)

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        waiting = asyncio.create_task(watcher.wait(name, queue_timeout=1))
        await asyncio.to_thread(held.wait, 60)
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.wait([watcher._loop_task], timeout=0.5)
        freed.set()
        await until_async(lambda: yarn.apps[name]["state"] == "KILLED")

    asyncio.run(main())


def test_the_queue_deadline_of_one_that_is_not_in_the_list(yarn, cluster):
    name = add(yarn, 1, state="ACCEPTED", elapsedTime=31_000, applicationTags="")

    async def main():
        return await Watcher(cluster, tag=TAG, interval=0.02).wait(name, queue_timeout=1)

    assert asyncio.run(main()).reason is Reason.QUEUE_TIMEOUT


@pytest.mark.slow
def test_a_waiter_that_comes_while_the_last_one_leaves_is_served(yarn, cluster):
    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.01)
        for at in range(1, 30):
            name = add(yarn, at)
            finish(yarn, name)
            assert (await watcher.wait(name)).reason is Reason.SUCCEEDED
            for _ in range(at % 5):
                await asyncio.sleep(0)

    asyncio.run(main())


def test_an_application_without_the_tag_is_watched_all_the_same(yarn, cluster):
    name = add(yarn, 1, applicationTags="")

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(name))
        await until_async(lambda: len(singles(yarn)) >= 2)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED


@wire_only
def test_an_older_hadoop_is_asked_for_whole_objects(yarn, cluster):
    name = add(yarn, 1)
    yarn.faults.append(
        lambda method, path: (
            (400, {"Content-Type": "application/json"}, "{}")
            if path == LIST and "resourceInfo" in yarn.requests[-1][2]["deSelects"]
            else None
        )
    )

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(name))
        await until_async(lambda: lists(yarn) >= 4)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED
    refused = [
        parameters
        for _, path, parameters, *_ in yarn.requests
        if path == LIST and "resourceInfo" in parameters["deSelects"]
    ]
    assert len(refused) == 1


def test_a_killed_one_of_two_is_followed_to_the_other(yarn, cluster):
    identity = Identity("key", 1, 1, "server")
    tags = ",".join(identity.tags)
    first, second = add(yarn, 1, applicationTags=tags), add(yarn, 2, applicationTags=tags)

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        wait = asyncio.create_task(watcher.wait(second, identity=identity))
        await until_async(lambda: lists(yarn) >= 2)
        finish(yarn, second, Reason.SUPERSEDED, "KILLED")
        await until_async(lambda: second in singles(yarn))
        seen = lists(yarn)
        await until_async(lambda: lists(yarn) >= seen + 2)
        finish(yarn, first)
        return await wait

    report = asyncio.run(main())
    assert (report.application_id, report.reason) == (first, Reason.SUCCEEDED)


@wire_only
def test_application_that_has_ended_is_read_once(yarn, cluster):
    """Also while the rest of its wait takes long, here the answer about a successor."""
    identity = Identity("key", 1, 1, "server")
    name, other = add(yarn, 1, applicationTags=",".join(identity.tags)), add(yarn, 2)

    def hold(method, path):
        if path == LIST and yarn.requests[-1][2]["applicationTags"] == identity.tag:
            seen = lists(yarn)
            until(lambda: lists(yarn) >= seen + 3)

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        ends, goes_on = (asyncio.create_task(watcher.wait(each, identity=identity)) for each in (name, other))
        await until_async(lambda: lists(yarn) >= 2)
        yarn.faults.append(hold)
        finish(yarn, name, Reason.SUPERSEDED, "KILLED")
        await ends
        goes_on.cancel()

    asyncio.run(main())
    assert singles(yarn) == [name]


def test_whoever_sees_the_end_deletes_the_directory(yarn, cluster, tmp_path):
    name = add(yarn, 1)
    folder = tmp_path / "user/ann/.skein" / name
    folder.mkdir(parents=True)

    async def main():
        wait = asyncio.create_task(Watcher(cluster, tag=TAG, interval=0.02).wait(name))
        await until_async(lambda: lists(yarn) >= 2)
        assert folder.exists()
        finish(yarn, name)
        await wait

    asyncio.run(main())
    assert not folder.exists()


async def of_two_stagings(cluster, elsewhere):
    return watcher_for(cluster, tag=TAG) is not watcher_for(elsewhere, tag=TAG)


@wire_only
def test_watcher_is_shared_within_one_event_loop_only(yarn, cluster):
    async def two():
        return watcher_for(cluster, tag=TAG), watcher_for(cluster, tag=TAG), watcher_for(cluster)

    first, second, other = asyncio.run(two())
    assert first is second and first is not other
    elsewhere = staged_at(cluster, "/elsewhere/{user}")
    assert asyncio.run(of_two_stagings(cluster, elsewhere)), "each deletes directories in its own"
    assert asyncio.run(two())[0] is not first


def test_each_callback_runs_in_the_context_of_its_waiter(yarn, cluster):
    variable = contextvars.ContextVar("task log", default="nobody's")
    names = [add(yarn, 1), add(yarn, 2)]
    seen = {name: set() for name in names}

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)

        async def wait(name):
            variable.set(name)  # a task has a context of its own
            await watcher.wait(name, on_change=lambda report: seen[name].add(variable.get()))

        waits = [asyncio.create_task(wait(name)) for name in names]
        await until_async(lambda: all(seen.values()))
        for name in names:
            finish(yarn, name)
        await asyncio.gather(*waits)

    asyncio.run(main())
    assert seen == {name: {name} for name in names}


def test_a_watcher_starts_again_after_a_rest(yarn, cluster):
    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.02)
        for at in (1, 2):
            name = add(yarn, at, state="RUNNING")
            wait = asyncio.create_task(watcher.wait(name))
            await until_async(lambda: lists(yarn))
            finish(yarn, name)
            assert (await wait).reason is Reason.SUCCEEDED

    asyncio.run(main())


def test_one_application_that_can_not_be_killed_does_not_starve_the_others(yarn, cluster):
    stuck, *others = (add(yarn, at, state="ACCEPTED", elapsedTime=3600_000) for at in range(1, 6))
    yarn.faults.append(lambda method, path: (403, {}, "switched off") if method == "PUT" else None)

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.05)
        overdue = asyncio.create_task(watcher.wait(stuck, queue_timeout=1))
        waits = [asyncio.create_task(watcher.wait(name)) for name in others]
        await until_async(lambda: any(method == "PUT" for method, *_ in yarn.requests))
        for name in others:
            finish(yarn, name)
        reports = await asyncio.gather(*waits)
        overdue.cancel()
        return reports

    assert {report.reason for report in asyncio.run(main())} == {Reason.SUCCEEDED}


@pytest.mark.slow
@wire_only
def test_hundreds_of_waits_go_over_a_failover(yarn, cluster):
    """For a while none is active; then the other one has the applications, and the first one leads to it."""
    names = [add(yarn, at) for at in range(1, 301)]
    other = FakeYarn()
    stand_by(other, yarn.url)

    async def main(two, url):
        watcher = Watcher(two, tag=TAG, interval=0.05)
        waits = [asyncio.create_task(watcher.wait(name)) for name in names]
        await until_async(lambda: lists(yarn) >= 3)
        stand_by(yarn)
        stand_by(other)
        asked = len(yarn.requests)
        await until_async(lambda: len(yarn.requests) > asked + 2)
        assert not any(wait.done() for wait in waits)
        stand_by(yarn, url)
        other.apps = yarn.apps
        other.faults.clear()
        for name in names:
            finish(yarn, name)
        return await asyncio.gather(*waits)

    with serving(other) as url:
        reports = asyncio.run(main(replace(cluster, resourcemanagers=(yarn.url, url)), url))
    assert [report.application_id for report in reports] == names
    assert {report.reason for report in reports} == {Reason.SUCCEEDED}
    asked = singles(other)  # a question that was answered too late is repeated
    assert set(asked) == set(names) and len(asked) < 1.1 * len(names)


@wire_only
def test_a_kill_goes_to_the_resourcemanager_that_answered_the_look(yarn, cluster):
    name = add(yarn, 1, state="ACCEPTED", elapsedTime=31_000)
    standby = FakeYarn()
    standby.faults.append(lambda method, path: (503, {}, "This is standby RM."))

    async def main(two):
        return await Watcher(two, tag=TAG, interval=0.02).wait(name, queue_timeout=1)

    with serving(standby) as url:
        report = asyncio.run(main(replace(cluster, resourcemanagers=(url, yarn.url))))
    assert report.reason is Reason.QUEUE_TIMEOUT
    assert {method for method, *_ in standby.requests} == {"GET"}, "it was known to be no one to ask"


def test_no_fault_of_one_look_ends_the_loop(yarn, cluster):
    """What a proxy in the way may answer: text that claims to be compressed."""
    name = add(yarn, 1)
    broken = iter(range(2))
    yarn.faults.append(
        lambda method, path: (
            (200, {"Content-Encoding": "gzip"}, "no gzip") if path == LIST and next(broken, None) is not None else None
        )
    )

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.05)
        wait = asyncio.create_task(watcher.wait(name))
        await until_async(lambda: lists(yarn) >= 2)
        finish(yarn, name)
        return await wait

    assert asyncio.run(main()).reason is Reason.SUCCEEDED


@pytest.mark.slow
@wire_only
def test_watching_goes_on_through_an_outage_of_the_resourcemanager(yarn, cluster):
    """On a real YARN: test_recovery.py, which restarts it."""
    names = [add(yarn, at) for at in range(1, 6)]

    def gone(method, path):
        raise ConnectionResetError

    async def main():
        watcher = Watcher(cluster, tag=TAG, interval=0.1)
        waits = [asyncio.create_task(watcher.wait(name)) for name in names]
        await until_async(lambda: lists(yarn) >= 2)
        yarn.faults.append(gone)
        seen = len(yarn.requests)
        await until_async(lambda: len(yarn.requests) >= seen + 5)
        yarn.faults.remove(gone)
        for name in names:
            finish(yarn, name)
        return await asyncio.gather(*waits)

    reports = asyncio.run(main())
    assert [(report.application_id, report.reason) for report in reports] == [
        (name, Reason.SUCCEEDED) for name in names
    ]

"""A ResourceManager that has just been started and recovers its applications: submissions to it, and who watches it."""

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support.fake_yarn import SECRET, application, serving, verdict_text
from support.place import job
from support.real_yarn import RealYarn
from support.recovery import slow_recovery
from support.waiting import until
from tf_yarn_ops.errors import ClusterUnreachable
from tf_yarn_ops.follow.kill import kill_application
from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts, discover
from tf_yarn_ops.hadoop.resourcemanager import ResourceManager
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, verdict_tag

POST = ("POST", "/ws/v1/cluster/apps")
STARTING = '{"clusterInfo": {"state": "STARTED", "haState": "INITIALIZING"}}'


def body_of(application_id):
    """An application for which YARN starts nothing."""
    return {"application-id": application_id, "application-name": "digits", "application-type": "skein", "queue": "default",
            "unmanaged-AM": True, "max-app-attempts": 1, "am-container-spec": {"commands": {"command": "true"}},
            "resource": {"memory": 64, "vCores": 1}, "application-tags": {"tag": ["mine"]}}  # fmt: skip


def client(url, patience):
    return ResourceManager([url], SimpleAuthentication("ann", "ann"), request_timeout=5, patience=patience)


def starting(yarn, looks):
    """Let the ResourceManager say so often that it is not active yet."""
    left = [looks]

    def fault(method, path):
        if path.endswith("/info") and left[0]:
            left[0] -= 1
            return 200, {"Content-Type": "application/json"}, STARTING
        return None

    yarn.faults.append(fault)


@pytest.mark.slow
def test_it_is_given_nothing_before_it_is_active(yarn):
    starting(yarn, 3)
    resourcemanager = client(yarn.url, 20)
    name, _ = resourcemanager.new_application()
    resourcemanager.submit(body_of(name))
    asked = [(method, path) for method, path, *_ in yarn.requests]
    assert asked.index(POST) == len(asked) - 1 and asked.count(("GET", "/ws/v1/cluster/info")) == 4


def test_one_that_does_not_become_active_is_unreachable(yarn):
    starting(yarn, 10**9)
    resourcemanager = client(yarn.url, 0.3)
    name, _ = resourcemanager.new_application()
    with pytest.raises(ClusterUnreachable, match="is still starting"):
        resourcemanager.submit(body_of(name))
    assert yarn.count(*POST) == 1  # the reservation


def test_before_each_try_it_is_asked_again(yarn):
    """The one that answered may be gone, and its successor recovering."""
    lost = []

    def fault(method, path):
        if (method, path) == POST and not lost:
            lost.append(path)
            starting(yarn, 2)
            raise ConnectionResetError
        return None

    yarn.faults.append(fault)
    resourcemanager = client(yarn.url, 20)
    name, _ = resourcemanager.new_application()
    resourcemanager.submit(body_of(name))
    paths = [path.rsplit("/", 1)[-1] for _, path, *_ in yarn.requests]
    assert paths == ["new-application", "info", "apps", "info", "info", "info", "apps"]


def test_configuration_is_read_again_after_the_activation(yarn):
    """Until then it may not have read hdfs-site.xml, and HDFS would be looked for at its default port."""
    starting(yarn, 3)
    whole = yarn.conf
    yarn.conf = {key: value for key, value in whole.items() if not key.startswith("dfs.")}

    def read_all(method, path):
        if path.endswith("/info") and yarn.count("GET", "/ws/v1/cluster/info") == 4:
            yarn.conf = whole
        return None

    yarn.faults.append(read_all)
    assert discover(yarn.url, environ={"HADOOP_USER_NAME": "ann"}).storage.webhdfs == ("http://namenode:9870",)
    assert yarn.count("GET", "/conf") == 2


def test_one_that_starts_for_longer_than_a_person_waits_is_unreachable(yarn, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.hadoop.cluster.DISCOVERY_PATIENCE", 0.3)
    starting(yarn, 10**9)
    with pytest.raises(ClusterUnreachable, match="is still starting"):
        discover(yarn.url, environ={"HADOOP_USER_NAME": "ann"})


def patiently(ask):
    """Ask again while no ResourceManager is active, as a scheduler does."""

    def answered():
        with contextlib.suppress(ClusterUnreachable):
            return [ask()]
        return None

    return until(answered, 240, 0.1)[0]


#: What asks for its application through a recovery, and what it has to find: its first answer, of any kind, counts.
DOORS = {
    "wait": (lambda launcher, name: launcher.wait(name, timeout=240, poll_interval=0.1).reason, Reason.SUCCEEDED),
    "watch": (
        lambda launcher, name: asyncio.run(Watcher(launcher.cluster, interval=0.1).wait(name)).reason,
        Reason.SUCCEEDED,
    ),
    "report": (lambda launcher, name: patiently(lambda: launcher.report(name)).state, "ACCEPTED"),
    "kill": (lambda launcher, name: patiently(lambda: launcher.kill(name, "enough")).message, "enough"),
    "kill at once": (
        lambda launcher, name: (
            kill_application(launcher.session, name, "enough", look_first=False, timeout=240).message
        ),
        "enough",
    ),
    "ensure": (lambda launcher, name: patiently(lambda: launcher.ensure(job(), TRAINING)).reason, None),
    "lease": (
        lambda launcher, name: patiently(
            lambda: launcher.session.resourcemanager.set_lifetime(name, time.time() + 999)
        ),
        None,
    ),
    "list": (
        lambda launcher, name: name in {found["id"] for found in patiently(launcher.session.resourcemanager.find)},
        True,
    ),
}
TRAINING = Identity("training", deployment="recovery")


@pytest.fixture(scope="module")
def restart(minicluster, tmp_path_factory):
    """Restart the real ResourceManager while all doors ask for a job each, and while jobs are watched and submitted.

    It recovers when every door has asked in vain.
    """
    url = minicluster.resourcemanager_url
    yarn, seen = RealYarn(url), SimpleNamespace()
    for at in range(1, 41):  # to be recovered
        yarn.add(application(at, user="ann", applicationTags="other"))
    seen.watched = [
        yarn.add(application(at, user="ann", applicationTags=f"watched,{verdict_tag(SECRET)}")) for at in range(1, 6)
    ]
    seen.asked = {
        door: yarn.add(application(1, user="ann", applicationTags=",".join(TRAINING.tags) if door == "ensure" else ""))
        for door in DOORS
    }
    names = [yarn.reserve() for _ in range(20)]
    cluster = Cluster(
        (url,),
        "ann",
        "ann",
        StorageFacts(
            "viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(tmp_path_factory.mktemp("restart"))
        ),
    )

    def ask(door):
        """Let a door ask by a proxy of its own, which counts what it does not learn."""
        between = RealYarn(url)
        with (
            serving(between) as own_url,
            contextlib.closing(Launcher(replace(cluster, resourcemanagers=(own_url,)))) as launcher,
        ):
            proxies[door] = between
            return DOORS[door][0](launcher, seen.asked[door])

    def asked_in_vain(door):
        return door in proxies and proxies[door].in_vain > 2

    def restart_and_end():
        with ThreadPoolExecutor(len(DOORS)) as pool:
            with slow_recovery(minicluster):
                seen.during = client(url, 5).info()
                submitting = [threading.Thread(target=client(url, 120).submit, args=[body_of(name)]) for name in names]
                for thread in submitting:
                    thread.start()
                answers = {door: pool.submit(ask, door) for door in DOORS}
                until(lambda: all(asked_in_vain(door) for door in DOORS if not answers[door].done()), 60)
            for thread in submitting:
                thread.join(120)
            with contextlib.suppress(AssertionError):  # its test says so
                until(lambda: all(yarn.state(name) == "ACCEPTED" for name in names), 60, 0.2)
            seen.submitted = {yarn.state(name) for name in names}
            seen.info = client(url, 5).info()
            for name in (*seen.watched, seen.asked["wait"], seen.asked["watch"]):
                yarn.end(name, verdict_text(JobReport(name, reason=Reason.SUCCEEDED, message="x")))
            seen.answers = {door: answer.exception(60) or answer.result() for door, answer in answers.items()}

    async def main():
        watcher = Watcher(cluster, tag="watched", interval=0.1)
        looked = asyncio.Event()
        waits = [asyncio.create_task(watcher.wait(name, on_change=lambda _: looked.set())) for name in seen.watched]
        await looked.wait()
        await asyncio.to_thread(restart_and_end)
        return await asyncio.gather(*waits)

    proxies = {}
    try:
        seen.reports = asyncio.run(main())
        return seen
    finally:
        yarn.close()


@pytest.mark.cluster
@pytest.mark.parametrize("door", DOORS)
def test_an_application_is_not_lost_during_a_recovery(restart, door):
    assert restart.during["haState"] == "INITIALIZING"
    assert restart.answers[door] == DOORS[door][1]


@pytest.mark.cluster
def test_a_submission_does_not_keep_it_from_starting(restart):
    """A ResourceManager that finds what it was given among what it recovers ends."""
    assert restart.submitted == {"ACCEPTED"}
    assert restart.info["haState"] == "ACTIVE"


@pytest.mark.cluster
def test_watching_goes_on_through_a_restart(restart):
    assert [(report.application_id, report.reason) for report in restart.reports] == [
        (name, Reason.SUCCEEDED) for name in restart.watched
    ]

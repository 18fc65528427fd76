"""Exactly one application trains: races, kills in every gap, restarts, on real daemons."""

import os
import queue
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from support import identity_rows
from support.access import plain
from support.cluster_jobs import job, until_it_runs
from support.gaps import GAPS
from support.identity_rows import client_in, found, live
from support.waiting import PATIENCE, until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.launch.claims import Claims
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
RACES = 6
#: Its application waits, and starts no JVM.
WAITS = job("sleep 600", queue="full")
#: Seconds that Hadoop gives a JVM's last acts, and some.
SHUTDOWN_HOOK = 35


def new_launcher(minicluster):
    return Launcher(discover(minicluster.resourcemanager_url))


@pytest.fixture
def launcher(minicluster):
    made = new_launcher(minicluster)
    yield made
    for application in made.session.resourcemanager.find(states=LIVE):
        made.kill(application["id"], "the test is over")
    made.close()


@pytest.mark.parametrize("gap", [*GAPS, "waiting"])
def test_killed_in_a_gap_and_called_again_trains_once(minicluster, launcher, gap):
    identity_rows.killed_in_a_gap_and_called_again_trains_once(plain(minicluster), launcher, gap, WAITS)


@pytest.mark.parametrize("gap", [*GAPS, "waiting"])
def test_term_in_a_gap_leaves_nothing(minicluster, launcher, gap):
    identity_rows.term_in_a_gap_leaves_nothing(plain(minicluster), launcher, gap, WAITS)


def test_a_stale_older_generation_wakes_up(minicluster, launcher):
    identity_rows.a_stale_older_generation_wakes_up(plain(minicluster), launcher, WAITS)


def test_a_foreign_users_application_with_the_same_tags_is_left_alone(minicluster, launcher):
    identity = Identity(f"foreign {time.time()}")
    environ = {**os.environ, "HADOOP_USER_NAME": "stranger"}
    files = launcher.session.staging(launcher.cluster.user).filesystem
    files.makedirs("/user/stranger", 0o700)
    httpx.put(
        f"{launcher.cluster.storage.webhdfs[0]}/webhdfs/v1/user/stranger",
        params={"op": "SETOWNER", "owner": "stranger", "user.name": launcher.cluster.user},
    ).raise_for_status()
    foreign = Launcher(discover(minicluster.resourcemanager_url, environ)).ensure(WAITS, identity)
    mine = launcher.ensure(WAITS, identity)
    assert mine.application_id != foreign.application_id
    assert set(live(launcher, identity)) == {mine.application_id, foreign.application_id}
    assert launcher.ensure(WAITS, identity).application_id == mine.application_id
    for application in (foreign.application_id, mine.application_id):
        launcher.session.resourcemanager.kill(application, "over")


@pytest.fixture(scope="module")
def raced(minicluster):
    """Let pairs of clients race: the application of one pair trains, and fails, the others wait until they are killed.

    Return each identity with what its pair has got, and the most live applications at a time by the identity's key.
    """
    launcher = new_launcher(minicluster)
    most = {}
    over = threading.Event()
    identities = [Identity(f"race {time.time()} {n}", attempt=1) for n in range(RACES)]
    attached = queue.Queue()

    def look():
        counts = {}
        for item in launcher.session.resourcemanager.find(states=LIVE):
            for tag in item["applicationTags"].split(","):
                counts[tag] = counts.get(tag, 0) + 1
        for identity in identities:
            most[identity.key] = max(most.get(identity.key, 0), counts.get(identity.tag, 0))

    def watch():
        while not over.wait(0.2):
            look()

    def compete(identity):
        barrier = threading.Barrier(2)

        def client():
            one = new_launcher(minicluster)
            barrier.wait(60)
            report = one.ensure(job("exit 3") if identity == identities[0] else WAITS, identity)
            attached.put((identity, report.application_id))
            return one.wait(report.application_id, identity=identity, timeout=300)

        with ThreadPoolExecutor(2) as pair:
            return [future.result() for future in [pair.submit(client), pair.submit(client)]]

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with ThreadPoolExecutor(RACES) as pool:
            pairs = pool.map(compete, identities)
            applications = dict(attached.get(timeout=120) for _ in range(2 * RACES))
            look()
            for identity in identities[1:]:
                launcher.kill(applications[identity], "enough")
            pairs = list(pairs)
    finally:
        over.set()
        watching.join()
        launcher.close()
    return SimpleNamespace(pairs=list(zip(identities, pairs, strict=True)), most=most)


def test_racing_pairs_of_clients_train_once(launcher, raced):
    """Never two live applications of one identity, and both callers get the same report."""
    for number, (identity, (first, second)) in enumerate(raced.pairs):
        assert first == second
        assert first.reason is (Reason.KILLED if number else Reason.TASK_FAILED)
        assert [item["id"] for item in found(launcher, identity)] == [first.application_id]
    assert set(raced.most.values()) == {1}


def test_a_failed_attempt_is_not_repeated_but_the_next_one_trains(minicluster, launcher, raced):
    identity, (first, _) = raced.pairs[0]
    assert first.reason is Reason.TASK_FAILED
    identity_rows.next_attempt_trains(plain(minicluster), launcher, identity.key, first)


@pytest.fixture(scope="module")
def outage(minicluster, tmp_path_factory):
    """Kill the ResourceManager amid the life of four jobs, start it after a while; return what became of the jobs.

    One is only reserved, one waits, one ends while no ResourceManager answers, and one is being submitted.
    """
    folder = tmp_path_factory.mktemp("outage")
    folder.chmod(0o777)
    mark, seen = folder / "mark", SimpleNamespace()
    reserved, waiting, middle = (Identity(f"{name} {time.time()}") for name in ("reserved", "waiting", "middle"))
    launcher = new_launcher(minicluster)
    seen.claimed = launcher.session.resourcemanager.new_application()[0]
    Claims(launcher.session, None, reserved).make(0, seen.claimed)
    seen.before = launcher.ensure(WAITS, waiting).application_id
    ending = launcher.submit(job(f"while [ ! -e {mark} ]; do sleep 0.1; done"))
    until_it_runs(launcher, ending)
    process = client_in(plain(minicluster), middle, "staging", job("sleep 0.1"))
    try:
        minicluster.stop_daemon("rm", signal.SIGKILL)
        mark.touch()
        ended = time.monotonic()
        until(lambda: time.monotonic() - ended > SHUTDOWN_HOOK, 60, 0.5)
        minicluster.start_daemon("rm")
        launcher.session.resourcemanager.await_active(time.monotonic() + 60 * PATIENCE)
        process.stdin.write("\n")
        process.stdin.flush()
        seen.after = launcher.ensure(job("sleep 0.1"), reserved).application_id
        seen.again = launcher.ensure(WAITS, waiting).application_id
        seen.live = live(launcher, waiting)
        seen.middle_code = process.wait(120)
        seen.middle = [item["finalStatus"] for item in found(launcher, middle)]
        seen.reserved = launcher.wait(seen.claimed, timeout=120)
        seen.ending = launcher.wait(ending, timeout=120)
        return seen
    finally:
        process.kill()
        for application in launcher.session.resourcemanager.find(states=LIVE):
            launcher.kill(application["id"], "over")
        launcher.close()


def test_id_reserved_before_a_restart_is_submitted(outage):
    """YARN answers 202 for an id that an earlier life of the ResourceManager reserved, and runs it."""
    assert outage.after == outage.claimed
    assert outage.reserved.reason is Reason.SUCCEEDED
    assert outage.again == outage.before
    assert outage.live == [outage.before]


def test_the_resourcemanager_restarts_in_the_middle_of_a_submission(outage):
    assert outage.middle_code == 0
    assert outage.middle == ["SUCCEEDED"]


def test_a_job_that_ends_while_no_resourcemanager_answers_has_its_verdict(outage):
    """Skein's application master gives up its last call after 30 s, and training would begin anew."""
    assert outage.ending.reason is Reason.SUCCEEDED

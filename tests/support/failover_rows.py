"""What holds when a ResourceManager or a NameNode of a pair is killed; on a plain and on a secured cluster."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial

import pytest

from support.cluster_jobs import job, until_its_log_is_stored
from support.faults import processes_of
from support.gaps import STOP_IN_GAPS
from support.hadoop.cluster import make_active
from support.knox import Knox, serving_knox
from support.programs import YTF
from support.two_nodes import directories
from support.waiting import PATIENCE, until
from tf_yarn_ops.errors import ApplicationNotFound, ClusterUnreachable
from tf_yarn_ops.follow.sweep import sweep_directories
from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.launch.identity import Identity, deployment_tag
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

#: A client that knows one address, and stops in a gap.
CLIENT = (
    """\
import json, sys
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.job.spec import JobSpec

url, spec, key, gap = sys.argv[1:]

def stop(name):
    if name == gap:
        print("stopped", flush=True)
        sys.stdin.readline()

"""
    + STOP_IN_GAPS
    + """
launcher = Launcher(discover(url))
launcher.ensure(JobSpec.from_dict(json.loads(spec)), Identity(key))
"""
)


def gated(hadoop, name, **fields):
    gate = hadoop.directory / f"gate-{name}"
    return job(f"until [ -e {gate} ]; do sleep 0.1; done", **fields), gate


def standby_url(hadoop):
    return hadoop.settings.web_address(next(name for name in ("rm", "rm2") if name != hadoop.active("rm")))


def client_in(access, identity, gap, spec):
    words = [access.hadoop.resourcemanager_url, json.dumps(spec.to_dict()), identity.key, gap]
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=access.environ,
        text=True,
    )
    assert process.stdout.readline() == "stopped\n"
    return process


def go_on(client):
    client.stdin.write("\n")
    client.stdin.close()


def again(call):
    """Call until the cluster answers, as an engine's retries do; fail after a minute, times `PATIENCE`."""
    deadline = time.monotonic() + 60 * PATIENCE
    while True:
        try:
            return call()
        except ClusterUnreachable:
            assert time.monotonic() < deadline


def a_gateway_that_asks_the_standby_is_no_obstacle(hadoop, authority, folder):
    """It changes to the active one only for paths that the standby does not answer itself."""
    knox = Knox(hadoop.settings.web_address(hadoop.active("rm")), hadoop.namenode_url, hadoop.settings.user)
    knox.standby = standby_url(hadoop)
    (folder / "token").write_text("a.b.c")
    (folder / "token").chmod(0o600)
    with serving_knox(knox, authority.server("127.0.0.1")) as topology:
        cluster = discover(
            f"{topology}/yarn",
            {"HOME": "/nowhere"},
            site=Site(ca_file=str(authority.file), gateway_token_file=str(folder / "token")),
        )
        resourcemanager = cluster.resourcemanager()
        assert resourcemanager.info()["haState"] == "STANDBY"
        name, _ = resourcemanager.new_application()
        resourcemanager.find()
        with pytest.raises(ApplicationNotFound):
            resourcemanager.get(name)
        knox.resourcemanager = knox.standby
        with pytest.raises(ClusterUnreachable, match=r"standby RM.*name both: resourcemanager"):
            resourcemanager.get(name)


@contextmanager
def a_gateway_with_a_path_for_each(hadoop, authority, folder):
    """Run a job behind it, which outlives the failover of the ResourceManagers inside; yield its id.

    The gateway passes the standby's redirect to the client, which asks the other path.
    """
    (folder / "token").write_text("a.b.c")
    (folder / "token").chmod(0o600)
    with ExitStack() as stack:
        topologies = [
            stack.enter_context(
                serving_knox(Knox(url, hadoop.namenode_url, hadoop.settings.user), authority.server("127.0.0.1"))
            )
            for url in (standby_url(hadoop), hadoop.settings.web_address(hadoop.active("rm")))
        ]
        site = Site(
            resourcemanager=[f"{topology}/yarn" for topology in topologies],
            ca_file=str(authority.file),
            webhdfs=[topologies[0]],
            gateway_token_file=str(folder / "token"),
            staging="/user/{user}/by-gateway",
        )
        with closing(Launcher(discover(None, {"HOME": "/nowhere"}, site=site))) as launcher:
            spec, gate = gated(hadoop, "gateway")
            application = launcher.submit(spec)
            until(lambda: launcher.report(application).state == "RUNNING", 120, 0.2)
            yield application
            gate.touch()
            report = launcher.wait(application, timeout=180)
            assert report.reason is Reason.SUCCEEDED, report
            assert [found["id"] for found in launcher.session.resourcemanager.find(user=launcher.cluster.user)].count(
                application
            ) == 1


def trained_once(launcher, identity, report):
    assert report.reason is Reason.SUCCEEDED, report
    assert len(report.rounds) == 1 and [task.starts for task in report.tasks] == [1]
    assert [found["id"] for found in launcher.session.resourcemanager.find([identity.tag])] == [report.application_id]


def one_address_is_enough(access):
    """Also that of the standby: /conf completes the list."""
    hadoop = access.hadoop
    for url in hadoop.resourcemanager_urls:
        cluster = access.discover(url)
        assert set(cluster.resourcemanagers) == set(hadoop.resourcemanager_urls)
        assert (cluster.storage.default, cluster.storage.webhdfs) == ("hdfs://minicluster", hadoop.namenode_urls)


def nothing_is_lost_when_the_resourcemanager_is_killed(access, launcher):
    """Two jobs that are watched, one of them waited for and one killed, and submissions in two gaps.

    That which is waited for commits its output to a folder that the nodes share.
    """
    hadoop = access.hadoop
    tag, versions = deployment_tag("failover"), hadoop.directory / "models" / "digits"
    watched, gate = gated(hadoop, "watched", tags=[tag], output=str(versions), commit="version")
    names = kept, doomed = [launcher.submit(spec) for spec in (watched, job("sleep 300", tags=[tag]))]
    spec = job("sleep 0.2")
    # The page of a running job is there, behind the proxy of one ResourceManager of two.
    until(lambda: all(launcher.report(name).tasks for name in names), 120, 0.5)
    # They hold tokens, which end when nobody renews them; so they come last.
    identities = {gap: Identity(f"rm {gap} {time.time()}") for gap in ("staging", "submitted")}
    clients = {gap: client_in(access, identity, gap, spec) for gap, identity in identities.items()}
    # YARN waits ten minutes for an application master that it was launching when it was killed.
    until(lambda: not launcher.list(["NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"]), 120, 0.2)

    learned = access.discover(standby_url(hadoop))

    async def watch():
        watcher = Watcher(learned, tag=tag, interval=0.5)
        return await asyncio.gather(*[watcher.wait(name) for name in names])

    with ThreadPoolExecutor(5) as pool:
        reports = pool.submit(asyncio.run, watch())
        waiting = pool.submit(launcher.wait, kept, timeout=180)
        before = hadoop.active("rm")
        failing_over = pool.submit(hadoop.failover, "rm", restart=False)
        until(lambda: hadoop.pid(before) is None)
        try:  # other tests need both of the pair, also if this one fails
            killing = pool.submit(again, lambda: launcher.kill(doomed, "enough"))
            for client in clients.values():
                go_on(client)
            for identity in identities.values():
                report = again(lambda identity=identity: launcher.ensure(spec, identity))
                trained_once(launcher, identity, launcher.wait(report.application_id, identity=identity, timeout=180))
            assert failing_over.result() != before
        finally:
            hadoop.start_daemon(before)
            gate.touch()
        ended, killed = reports.result()
        assert [report.reason for report in (killing.result(), killed)] == [Reason.KILLED] * 2
    for report in (ended, waiting.result()):
        assert (report.reason, len(report.rounds), report.tasks[0].starts) == (Reason.SUCCEEDED, 1, 1)
        assert report.output_path == str(versions / "1")
    assert {path.name for path in versions.iterdir()} == {"1", "LATEST"}
    for client in clients.values():
        client.wait(60)
    until(lambda: not launcher.list() and not directories(launcher), 60, 0.5)
    until(lambda: not [pid for name in names for pid in processes_of(name)], 60, 0.5)


def nothing_is_lost_when_the_namenode_is_killed(access, launcher, kill=None):
    """Submissions while staging and claiming, logs and sweeping, with a dead NameNode; return the job that ran.

    ``kill`` gets the name of the active one, and kills it.
    """
    hadoop, output = access.hadoop, f"hdfs:///user/{launcher.cluster.user}/digits-{time.time()}"
    # The tokens of the secured cluster end for good before this row does, and with them the right to commit.
    spec, gate = gated(hadoop, "namenode", output=output, commit="off" if hadoop.settings.kerberos else "new")
    running = launcher.submit(spec)
    until(lambda: launcher.report(running).state == "RUNNING", 120, 0.2)
    quick = job("echo word-for-the-log")
    identities = {gap: Identity(f"nn {gap} {time.time()}") for gap in ("claimed", "staging")}
    clients = {gap: client_in(access, identity, gap, quick) for gap, identity in identities.items()}
    before = hadoop.active("nn")
    after = next(name for name in hadoop.settings.namenodes if name != before)
    (kill or partial(hadoop.stop_daemon, signal=signal.SIGKILL))(before)
    try:  # as above
        clients["staging"].kill()  # its directory is left
        go_on(clients["claimed"])
        with pytest.raises(ClusterUnreachable):
            launcher.ensure(quick, identities["claimed"])
        make_active(hadoop.settings, after)
        for identity in identities.values():
            report = again(lambda identity=identity: launcher.ensure(quick, identity))
            trained_once(launcher, identity, launcher.wait(report.application_id, identity=identity, timeout=180))
        gate.touch()
        ended = launcher.wait(running, timeout=180)
        assert (ended.reason, ended.output_path) == (Reason.SUCCEEDED, output)
        until_its_log_is_stored(launcher, report.application_id)
        words = [*YTF, "logs", report.application_id]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=90, env=access.environ)
        assert "word-for-the-log" in ran.stdout, ran
        for client in clients.values():
            client.wait(60)
        sweep_directories(launcher.session.staging(), launcher.session.resourcemanager)
        assert directories(launcher) == []
        assert hadoop.active("nn") == after
        return running
    finally:
        gate.touch()
        hadoop.start_daemon(before)
        if hadoop.active("nn") is None:
            make_active(hadoop.settings, after)

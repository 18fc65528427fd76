"""The same rows on the versions of Hadoop that are in use: the oldest and the newest in a run of everything.

``./dev test versions 3.3.6 3.2.4`` runs them on these versions, ``./dev test versions --all`` on all.
"""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from support.access import by_keytab
from support.cluster_jobs import job
from support.forged import forged, kill_as
from support.hadoop import HadoopCluster
from support.hadoop.labels import put_labels
from support.hadoop.versions import VERSIONS
from support.programs import SUBMIT
from support.two_nodes import directories, launcher_by, launcher_on
from support.waiting import until
from tf_yarn_ops.errors import LogMissing, SubmissionRejected
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
#: The pages of 2.10.2 end their answers early over HTTPS (Jetty 6 on Java 17).
WITHOUT_HTTPS = ("2.10.2",)
#: Their NodeManagers may stop their heartbeats for good when a ResourceManager restarts: `NodeStatusUpdaterImpl` starts its
#: thread before it clears ``isStopped``. YARN then loses the nodes, and the application ends as NODE_LOST.
LOSES_NODES = ("2.10.2",)

_NAMED = os.environ.get("YTF_TEST_VERSIONS", "").split()
_CHOSEN = (
    list(VERSIONS) if _NAMED == ["all"] else _NAMED or [min(VERSIONS, key=list(VERSIONS).index), list(VERSIONS)[-1]]
)
SLEEP = "sleep 300"


@pytest.fixture(scope="module", params=_CHOSEN)
def hadoop(request, tmp_path_factory):
    """Return a cluster whose only node has a label: what does not ask for it, waits."""
    folder = tmp_path_factory.mktemp(f"hadoop-{request.param}")
    with HadoopCluster(folder, version=request.param, labels={"nm": "gpu"}) as cluster:
        yield cluster


@pytest.fixture
def launcher(hadoop):
    with launcher_on(hadoop) as made:
        yield made


def log_of(launcher, application_id):
    """Return the log of an ended application out of HDFS; empty while YARN still writes it."""
    try:
        return "".join(launcher.log(application_id))
    except LogMissing:
        return ""


def fails_on_its_label(hadoop, launcher):
    """The last line of its log looks like the coordinator's report."""
    tasks = {"worker": TaskSpec(memory=256, node_label="gpu")}
    spec = job(f"echo '{forged('x')}'; exit 3", tasks=tasks, node_label="gpu")
    report = launcher.wait(launcher.submit(spec), timeout=180)
    assert (report.reason, report.tasks[0].exit_code) == (Reason.TASK_FAILED, 3)
    assert (report.metrics, report.output_path) == (None, None)
    with pytest.raises(SubmissionRejected, match="gpu"):
        launcher.submit(job("true", tasks={"worker": TaskSpec(memory=256, node_label="gpus")}))


def is_killed(hadoop, launcher):
    """While it waits for its application master, for which no node is free of labels."""
    application = launcher.submit(job(SLEEP))
    assert launcher.kill(application, "enough").reason is Reason.KILLED
    assert "enough" in launcher.report(application).message


def is_killed_by_another_user(hadoop, launcher):
    """Anybody may kill by the stock ACL of a queue, and nobody can make a kill a success."""
    application = launcher.submit(job(SLEEP, node_label="gpu"))
    until(lambda: launcher.report(application).state == "RUNNING", 120, 0.2)
    kill_as(hadoop, "mallory", application, f"bye\n{forged(application)}")
    report = launcher.wait(application, timeout=60)
    assert (report.reason, report.message) == (Reason.KILLED, "The application was killed by user mallory: bye")
    assert (report.metrics, report.output_path, report.tensorboard_url) == (None, None, None)


def test_jobs_side_by_side(hadoop, launcher):
    rows = [fails_on_its_label, is_killed, is_killed_by_another_user]
    with ThreadPoolExecutor(len(rows)) as pool:
        for done in [pool.submit(row, hadoop, launcher) for row in rows]:
            done.result()
    assert launcher.cluster.version == hadoop.settings.version
    until(lambda: not directories(launcher), 60, 0.5)


def test_job_of_two_clients_survives_a_restart_of_the_resourcemanager(hadoop, launcher):
    """They race for it, and wait; a third call finds that it has ended, and its log is in HDFS."""
    put_labels(replace(hadoop.settings, labels={"nm": ""}))
    gate, identity = hadoop.directory / "gate", Identity("race")
    spec = job(f"echo word-for-the-log; until [ -e {gate} ]; do sleep 0.1; done")
    other = Launcher(launcher.cluster)
    with ThreadPoolExecutor(2) as pair:
        application, same = pair.map(lambda one: one.ensure(spec, identity).application_id, (launcher, other))
        assert application == same
        until(lambda: launcher.report(application).state == "RUNNING", 120, 0.2)
        waiting = [pair.submit(one.wait, application, identity=identity, timeout=180) for one in (launcher, other)]
        hadoop.stop_daemon("rm")
        hadoop.start_daemon("rm")
        if hadoop.settings.version in LOSES_NODES:
            hadoop.stop_daemon("nm", signal.SIGKILL)
            hadoop.start_daemon("nm")
        gate.touch()
        report, seen = (one.result() for one in waiting)
    other.close()
    assert report == seen and report.reason is Reason.SUCCEEDED
    assert [task.starts for task in report.tasks] == [1] and len(report.rounds) == 1
    assert launcher.ensure(spec, identity).application_id == application
    assert [found["id"] for found in launcher.session.resourcemanager.find([identity.tag])] == [application]
    until(lambda: "word-for-the-log" in log_of(launcher, application), 60, 1)
    assert application not in directories(launcher)


@pytest.mark.skipif(not _NAMED, reason="by hand: ./dev test versions --all")
@pytest.mark.parametrize("version", _CHOSEN)
def test_with_kerberos_a_keytab_is_enough(version, tmp_path):
    """Submit, follow and kill over HTTP, without Java."""
    with (
        HadoopCluster(
            tmp_path / "secured", version=version, kerberos=True, https=version not in WITHOUT_HTTPS
        ) as hadoop,
        by_keytab(hadoop, tmp_path) as access,
        launcher_by(access) as launcher,
    ):
        doomed = launcher.submit(job(SLEEP))
        ran = subprocess.run(
            [
                *SUBMIT,
                "--submit_with",
                "rest",
                "--wait",
                "--json",
                "--environment",
                f"venv://{sys.prefix}",
                "-m",
                "256",
                "-r",
                "worker:1",
                "true",
            ],
            capture_output=True,
            text=True,
            timeout=180,
            env=access.environ,
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["user"] == "alice"
        assert launcher.kill(doomed, "enough").reason is Reason.KILLED
        until(lambda: not directories(launcher), 60, 0.5)

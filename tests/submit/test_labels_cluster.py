"""Node labels on real daemons: containers run where their label says, and an unavailable label is reported."""

import json
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support import two_nodes
from support.hadoop import HadoopCluster
from support.hadoop.labels import put_labels
from support.two_nodes import directories, launcher_on
from support.waiting import until
from support.wire_proxy import Proxy

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with HadoopCluster(tmp_path_factory.mktemp("labels"), light=True, nodes=2, labels={"nm2": "gpu"}) as cluster:
        yield cluster


@pytest.fixture
def launcher(hadoop):
    with launcher_on(hadoop) as made:
        yield made


def submit(hadoop, *words):
    return two_nodes.submit(hadoop, "--json", "--wait", "-m", "256", *words, timeout=150)


def node_of_master(hadoop, launcher, done):
    """Return the NodeManager on which a job's application master ran."""
    page_of = {hadoop.settings.ports[f"{name}-web"]: name for name in ("nm", "nm2")}
    application = launcher.session.resourcemanager.get(json.loads(done.stdout)["application_id"])
    return page_of[int(application["amHostHttpAddress"].rpartition(":")[2])]


def test_containers_run_where_their_label_says(hadoop, launcher, tmp_path):
    """The job's label; a type's, and none: `test_a_type_has_its_own_label_command_and_environment`.

    A light cluster, as this one, is left clean; by Skein: test_launcher_cluster.py.
    """
    where = tmp_path / "where"
    done = submit(
        hadoop,
        "--submit_with",
        "rest",
        "-r",
        "ps:1,worker:1",
        "--node_label",
        "gpu",
        f'echo "$DTF_TASK_JOB_NAME $NM_PORT" >> {where}; sleep 0.5',
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reason"] == "SUCCEEDED"
    node_of = {hadoop.settings.ports[name]: name for name in ("nm", "nm2")}
    found = {task: node_of[int(port)] for task, port in map(str.split, where.read_text().splitlines())}
    assert (node_of_master(hadoop, launcher, done), found["ps"], found["worker"]) == ("nm2", "nm2", "nm2")
    until(lambda: directories(launcher) == [])


UNKNOWN = "there is no node label 'gpuu' (did you mean 'gpu'?), which worker asks for; the cluster has gpu"
CLOSED = "queue 'low' may not use node label 'gpu', which worker asks for; these may: default"


@pytest.mark.parametrize(
    "words, says",
    [
        (["--node_label", "worker:gpuu"], UNKNOWN),
        (["--node_label", "gpuu"], UNKNOWN.replace("worker", "the job")),
        (["-q", "low", "--node_label", "worker:gpu"], CLOSED),
        (["--submit_with", "skein", "--node_label", "worker:gpuu"], UNKNOWN),
    ],
    ids=["of the workers", "of the job", "of the queue", "by Skein"],
)
def test_a_label_that_can_not_be_had_is_refused_before_an_id_is_reserved(hadoop, launcher, words, says):
    done = submit(hadoop, "-r", "worker:1", *words, "true")
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["application_id"]) == (3, "SUBMISSION_REJECTED", "")
    assert says in report["message"]
    assert launcher.list() == [] and directories(launcher) == []


def test_late_refusal_of_yarn_does_not_blame_the_cluster(hadoop, launcher):
    """YARN refuses when the master asks for the containers, and that ends Skein's; on the wire labels look different.

    The refusal of a queue without the label, in YARN's words: `tests/follow/test_yarn_report.py`.
    """
    words = ["--node_label", "worker:gpuu"]
    with Proxy(hadoop.resourcemanager_url) as proxy:
        proxy.replaced = {"gpu": "gpuu"}
        proxy.rewritten = {"/ws/v1/cluster/get-node-labels", "/ws/v1/cluster/scheduler"}
        done = submit(hadoop, "--resourcemanager", proxy.url, "-r", "worker:1", *words, "true")
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"]) == (3, "SUBMISSION_REJECTED"), report
    assert "Invalid label resource request, cluster do not contain , label= gpuu" in report["message"]
    assert ".java" not in report["message"]
    until(lambda: directories(launcher) == [])


@pytest.fixture(scope="module")
def restarted(hadoop, tmp_path_factory):
    """Restart the ResourceManager and run a job whose types differ; return YARN's labels and what the job wrote."""
    hadoop.stop_daemon("rm", signal.SIGKILL)
    hadoop.start_daemon("rm")
    until(lambda: hadoop.status().active_nodes == 2, 60)
    with launcher_on(hadoop) as launcher:
        labels = launcher.session.resourcemanager.labels()
    folder = tmp_path_factory.mktemp("restarted")
    where, spec = folder / "where", folder / "job.yaml"
    command = f'echo "$DTF_TASK_JOB_NAME $NM_PORT $WHO" >> {where}; sleep 0.5'
    spec.write_text(
        json.dumps(
            {
                "command": command,
                "env": {"WHO": "everyone"},
                "tasks": {
                    "ps": {"memory": 256, "command": f"echo its own command >> {where}; {command}"},
                    "worker": {"memory": 256, "node_label": "gpu", "env": {"WHO": "ann"}},
                },
            }
        )
    )
    done = submit(hadoop, "--submit_with", "rest", "--spec", str(spec))
    return SimpleNamespace(
        labels=labels, done=done, lines=sorted(where.read_text().splitlines()) if where.exists() else []
    )


def test_a_type_has_its_own_label_command_and_environment(hadoop, restarted):
    assert restarted.done.returncode == 0, restarted.done.stderr
    ports = hadoop.settings.ports
    assert restarted.lines == ["its own command", f"ps {ports['nm']} everyone", f"worker {ports['nm2']} ann"]


def test_label_without_a_node_is_a_warning_also_after_a_restart(hadoop, launcher, restarted):
    assert restarted.labels["nodeLabelInfo"]["name"] == "gpu"
    assert restarted.done.returncode == 0, restarted.done.stderr
    ports = hadoop.settings.ports
    assert node_of_master(hadoop, launcher, restarted.done) == "nm"
    assert [line.split()[:2] for line in restarted.lines[1:]] == [
        ["ps", str(ports["nm"])],
        ["worker", str(ports["nm2"])],
    ]
    put_labels(replace(hadoop.settings, labels={"nm": "gpu"}))
    hadoop.up()  # also what an `up` that was killed left undone
    labels = {
        int(node["id"].rpartition(":")[2]): "".join(node.get("nodeLabels") or "")
        for node in launcher.session.resourcemanager.nodes()
    }
    assert labels == {hadoop.settings.ports["nm"]: "", hadoop.settings.ports["nm2"]: "gpu"}
    hadoop.stop_daemon("nm2")
    until(lambda: len(launcher.session.resourcemanager.nodes()) == 1, 60, 0.1)
    nowhere = "the cluster has no running node with label 'gpu' now, for worker"
    words = ["-r", "worker:1", "--node_label", "worker:gpu", "true"]
    refused = submit(hadoop, "--strict_placement", *words)
    report = json.loads(refused.stdout)
    assert (refused.returncode, report["reason"], report["message"]) == (3, "RESOURCES_IMPOSSIBLE", nowhere)
    waited = submit(hadoop, "--allocation_timeout", "3", *words)
    assert f"{nowhere}; the job waits until the cluster has room for it" in waited.stderr
    assert (waited.returncode, json.loads(waited.stdout)["reason"]) == (5, "ALLOCATION_TIMEOUT")

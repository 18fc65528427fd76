"""Containers on a cluster of two nodes that differ: labels, GPUs, many tasks, and what no node could hold.

A row of stages, each of which changes the cluster for the tests below it: YARN takes no submission by REST; it takes them,
and the second node has a label; that node has GPUs as well; no node has a label.

Hadoop's maximum allocation is what the configuration says until ``scheduling-wait-ms`` after the
ResourceManager's start (time for the nodes to come back), then the largest memory, vcores and GPUs
that any node has, each on its own. Above it: RESOURCES_IMPOSSIBLE. Below it, and yet no node: the warning.
"""

import contextlib
import json
import os
import re
import signal
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import gpu_node
from support.cluster_jobs import job, until_it_runs
from support.hadoop import HadoopCluster
from support.hadoop.labels import put_labels
from support.machines import read_xml, write_script
from support.programs import SUBMIT, run_here
from support.two_nodes import directories, launcher_on
from support.waiting import until
from support.wire_proxy import Proxy
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.resourcemanager import Allocation
from tf_yarn_ops.hadoop.transport import RestUnavailable
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.minicluster.daemon_settings import render_xml
from tf_yarn_ops.minicluster.daemons import log_tail
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

A100 = "yarn.io/gpu-a100"
BY_REST = "yarn.webapp.enable-rest-app-submissions"
GPUS = "yarn.nodemanager.resource-type.yarn.io/gpu"
LINUX, PLUGINS = "yarn.nodemanager.linux-container-executor", "yarn.nodemanager.resource-plugins"
MEMORY = "yarn.nodemanager.resource.memory-mb"
MAXIMUM = "yarn.scheduler.maximum-allocation-mb"
VCORES = "yarn.nodemanager.resource.cpu-vcores"
WAIT = "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms"


def configure(cluster, values):
    """Change the cluster's yarn-site.xml as an administrator does; a daemon reads it when it starts."""
    path = cluster.directory / "conf" / "yarn-site.xml"
    path.write_text(render_xml(read_xml(path.read_text()) | {name: str(value) for name, value in values.items()}))


def submit(hadoop, *words):
    return run_here(SUBMIT, "--environment", f"venv://{sys.prefix}", *words, env=hadoop.environ)


def wait(hadoop, *words):
    return submit(hadoop, "--json", "--wait", "-m", "256", *words)


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    """Return a cluster of two nodes with 20,000 MiB and 96 vcores each and no GPU."""
    with HadoopCluster(
        tmp_path_factory.mktemp("placement"),
        light=True,
        nodes=2,
        labels={"nm2": "gpu"},
        properties={BY_REST: "false", GPUS: "0", MEMORY: "20000", VCORES: "96", MAXIMUM: "32000"},
    ) as cluster:
        yield cluster


@pytest.fixture
def launcher(hadoop):
    with launcher_on(hadoop) as made:
        yield made


def nodes_are(hadoop, launcher, count=2):
    """Wait for the nodes; where they don't come, say what YARN and their logs say."""
    try:
        until(lambda: len(launcher.session.resourcemanager.nodes()) == count, 60, 0.1)
    except AssertionError:
        seen = launcher.session.resourcemanager.request("GET", "/ws/v1/cluster/nodes").text
        logs = (f"{name} (pid {hadoop.pid(name)})\n{log_tail(hadoop.directory, name)}" for name in ("rm", "nm", "nm2"))
        pytest.fail("\n".join([f"not {count} nodes: {seen}", *logs]))


# ---------------------------------------------------------------- no submissions by REST


@pytest.fixture(scope="module")
def left_to_skein(hadoop):
    """Run a job where YARN takes none by REST, and kill its application master; return what was seen of it."""
    seen = SimpleNamespace()
    cluster = discover(hadoop.resourcemanager_url, environ={})
    with contextlib.closing(Launcher(cluster, environ={**os.environ, **hadoop.environ})) as launcher:
        seen.id = launcher.submit(job("sleep 600"))
        until_it_runs(launcher, seen.id)
        seen.running = launcher.report(seen.id)
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"java") and any(seen.id.encode() in word for word in words):
                    os.kill(pid, signal.SIGKILL)
        seen.report = launcher.wait(seen.id, timeout=120)
        # Skein's own hook may still be at work on it.
        until(lambda: seen.id not in directories(launcher))
    return seen


def test_where_yarn_takes_no_submissions_by_rest_skein_submits(hadoop, left_to_skein):
    cluster = discover(hadoop.resourcemanager_url, environ={})
    with (
        contextlib.closing(Launcher(cluster, submit_with="rest")) as launcher,
        pytest.raises(RestUnavailable, match="via REST is disabled"),
    ):
        launcher.submit(job())
    assert [task.state for task in left_to_skein.running.tasks] == ["running"]


def test_master_killed_by_sigkill_leaves_nothing_of_skeins(left_to_skein):
    """The same by REST is a row of the fault matrix."""
    assert (left_to_skein.report.reason, left_to_skein.report.retryable) == (Reason.AM_FAILED, True)


# ---------------------------------------------------------------- labels


@pytest.fixture(scope="module")
def restarted(hadoop, tmp_path_factory):
    """Restart the ResourceManager and run a job whose types differ; return YARN's labels and what the job wrote."""
    hadoop.stop_daemon("rm", signal.SIGKILL)
    configure(hadoop, {BY_REST: "true"})
    hadoop.start_daemon("rm")
    until(lambda: hadoop.status().active_nodes == 2, 60)
    with launcher_on(hadoop) as launcher:
        labels = launcher.session.resourcemanager.labels()
    folder = tmp_path_factory.mktemp("restarted")
    where, spec = folder / "where", folder / "job.yaml"
    command = f'echo "$DTF_TASK_JOB_NAME $NM_PORT $WHO gpus:${{CUDA_VISIBLE_DEVICES-unset}}" >> {where}; sleep 0.5'
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
    done = wait(hadoop, "--submit_with", "rest", "--spec", str(spec))
    return SimpleNamespace(
        labels=labels, done=done, lines=sorted(where.read_text().splitlines()) if where.exists() else []
    )


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
def test_a_label_that_can_not_be_had_is_refused_before_an_id_is_reserved(hadoop, restarted, launcher, words, says):
    done = wait(hadoop, "-r", "worker:1", *words, "true")
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["application_id"]) == (3, "SUBMISSION_REJECTED", "")
    assert says in report["message"]
    assert launcher.list() == [] and directories(launcher) == []


def test_late_refusal_of_yarn_does_not_blame_the_cluster(hadoop, restarted, launcher):
    """YARN refuses when the master asks for the containers, and that ends Skein's; on the wire labels look different.

    The refusal of a queue without the label, in YARN's words: `tests/follow/test_yarn_report.py`.
    """
    words = ["--node_label", "worker:gpuu"]
    with Proxy(hadoop.resourcemanager_url) as proxy:
        proxy.replaced = {"gpu": "gpuu"}
        proxy.rewritten = {"/ws/v1/cluster/get-node-labels", "/ws/v1/cluster/scheduler"}
        done = wait(hadoop, "--resourcemanager", proxy.url, "-r", "worker:1", *words, "true")
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"]) == (3, "SUBMISSION_REJECTED"), report
    assert "Invalid label resource request, cluster do not contain , label= gpuu" in report["message"]
    assert ".java" not in report["message"]
    until(lambda: directories(launcher) == [])


def test_a_type_has_its_own_label_command_and_environment(hadoop, restarted):
    """A task that asks for no GPU sees those of its node only if it has a label."""
    assert restarted.done.returncode == 0, restarted.done.stderr
    nm, nm2 = (hadoop.settings.ports[name] for name in ("nm", "nm2"))
    assert restarted.lines == ["its own command", f"ps {nm} everyone gpus:", f"worker {nm2} ann gpus:unset"]


def node_of_master(hadoop, launcher, application_id):
    """Return the NodeManager on which a job's application master ran."""
    page_of = {hadoop.settings.ports[f"{name}-web"]: name for name in ("nm", "nm2")}
    application = launcher.session.resourcemanager.get(application_id)
    return page_of[int(application["amHostHttpAddress"].rpartition(":")[2])]


def test_label_without_a_node_is_a_warning_also_after_a_restart(hadoop, launcher, restarted):
    assert restarted.labels["nodeLabelInfo"]["name"] == "gpu"
    assert restarted.done.returncode == 0, restarted.done.stderr
    ports = hadoop.settings.ports
    assert node_of_master(hadoop, launcher, json.loads(restarted.done.stdout)["application_id"]) == "nm"
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
    assert labels == {ports["nm"]: "", ports["nm2"]: "gpu"}
    hadoop.stop_daemon("nm2")
    nodes_are(hadoop, launcher, 1)
    nowhere = "the cluster has no running node with label 'gpu' now, for worker"
    words = ["-r", "worker:1", "--node_label", "worker:gpu", "true"]
    refused = wait(hadoop, "--strict_placement", *words)
    report = json.loads(refused.stdout)
    assert (refused.returncode, report["reason"], report["message"]) == (3, "RESOURCES_IMPOSSIBLE", nowhere)
    waited = wait(hadoop, "--allocation_timeout", "3", *words)
    assert f"{nowhere}; the job waits until the cluster has room for it" in waited.stderr
    assert (waited.returncode, json.loads(waited.stdout)["reason"]) == (5, "ALLOCATION_TIMEOUT")


@pytest.mark.matrix
@pytest.mark.timeout(600)
def test_every_one_of_64_tasks_is_reported_and_has_its_log(restarted, launcher):
    """On one node, the one without the label: nobody loses sight of a task."""
    size = 64
    application_id = launcher.submit(job("echo log of $TASK_INDEX; sleep 600", instances=size))
    until_it_runs(launcher, application_id)
    last = f"worker:{size - 1}"
    until(lambda: f"log of {size - 1}\n" in "".join(launcher.log(application_id, last)), 60, 0.5)
    report = launcher.kill(application_id, "seen")
    assert report.reason is Reason.KILLED
    # The diagnostics of YARN are too short for all; the history has the rest.
    names = {task.task for task in launcher.report(application_id).tasks}
    assert names == {f"worker:{index}" for index in range(size)}, (len(names), report.omitted_tasks)
    assert f"log of {size - 1}\n" in "".join(launcher.log(application_id, last))


# ---------------------------------------------------------------- GPUs that YARN's plug-in assigns


@pytest.fixture(scope="module")
def with_gpus(hadoop, restarted, tmp_path_factory):
    """Start the node with the label again, with two GPUs, LinuxContainerExecutor and less memory."""
    folder = tmp_path_factory.mktemp("gpus")
    (folder / "cgroup" / "devices").mkdir(parents=True)
    smi, executor = (
        write_script(
            folder / "bin" / name, f'exec {sys.executable} -IS {gpu_node.__file__} {folder}/cgroup {name} "$@"\n'
        )
        for name in ("nvidia-smi", "container-executor")
    )
    if hadoop.pid("nm2"):
        hadoop.stop_daemon("nm2")
    configure(
        hadoop,
        {
            MEMORY: 16384,
            "yarn.nodemanager.container-executor.class": hadoop.settings.linux_executor,
            f"{LINUX}.path": executor,
            f"{LINUX}.nonsecure-mode.limit-users": "false",
            f"{LINUX}.cgroups.mount-path": folder / "cgroup",
            f"{LINUX}.cgroups.delete-timeout-ms": 0,
            # container-executor gets none of the NodeManager's variables, so bash chooses the PATH of a container.
            "yarn.nodemanager.admin-env": f"PATH={smi.parent}:{os.environ['PATH']}",
            PLUGINS: "yarn.io/gpu",
            f"{PLUGINS}.gpu.path-to-discovery-executables": smi,
        },
    )
    hadoop.start_daemon("nm2")
    with launcher_on(hadoop) as launcher:
        nodes_are(hadoop, launcher)


TRAIN = """\
{ echo $NM_PORT; nvidia-smi -L; echo "CUDA_VISIBLE_DEVICES: ${CUDA_VISIBLE_DEVICES-unset}"; } > FOLDER/new.$JOB_NAME$TASK_INDEX
mv FOLDER/new.$JOB_NAME$TASK_INDEX FOLDER/$JOB_NAME$TASK_INDEX
until [ -e FOLDER/go ]; do sleep 0.2; done"""


def read(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def trained(hadoop, with_gpus, tmp_path_factory):
    """Run a job with a label, two tasks of which ask for a GPU; return what was seen of it."""
    folder, seen = tmp_path_factory.mktemp("trained"), SimpleNamespace()
    with launcher_on(hadoop) as launcher:
        words = ["--submit_with", "rest", "-r", "worker:2,other:1", "-m", "256", "--task_gpus", "worker:1"]
        done = submit(hadoop, *words, "--node_label", "gpu", TRAIN.replace("FOLDER", str(folder)))
        application = done.stdout.strip()
        assert done.returncode == 0 and application, done.stderr
        files = [folder / name for name in ("worker0", "worker1", "other0")]
        until(lambda: all(file.exists() for file in files), 120, what=f"the tasks of {application}")
        seen.ports, seen.texts = zip(*(file.read_text().split("\n", 1) for file in files), strict=True)
        tracking_url = launcher.report(application).tracking_url.rstrip("/")

        def usages():
            document = json.loads(read(f"{tracking_url}/pages/ytf/status.json"))
            gpus = [(task["usage"] or {}).get("gpus") for task in document["tasks"]]
            return gpus == [1, 1, None] and document

        seen.document = until(usages, 60, what="the answers of nvidia-smi")
        seen.assigned = json.loads(read(f"{hadoop.settings.web_address('nm2')}/ws/v1/node/resources/yarn.io%2Fgpu"))
        (folder / "go").touch()
        seen.report = launcher.wait(application, timeout=120)
        seen.node_of_master = node_of_master(hadoop, launcher, application)

        def costs_of_the_end():
            """Return those of the report and of YARN's page; YARN counts until the last container has ended."""
            report = launcher.report(application)
            page = read(f"{hadoop.resourcemanager_url}/cluster/app/{application}")
            counted = re.search(r"(\d+) MB-seconds, (\d+) vcore-seconds.*? (\d+) yarn\.io/gpu-seconds", page)
            costs = (report.memory_seconds, report.vcore_seconds, report.gpu_seconds)
            return costs == tuple(map(int, counted.groups())) and costs

        seen.costs = until(costs_of_the_end, 60, what="the costs of the report and of YARN's page are equal")
        until(lambda: directories(launcher) == [])
    assert seen.report.reason is Reason.SUCCEEDED
    return seen


def test_containers_run_where_their_label_says(hadoop, trained):
    """The job's label; a type's, and none: `test_a_type_has_its_own_label_command_and_environment`."""
    assert (trained.node_of_master, set(trained.ports)) == ("nm2", {str(hadoop.settings.ports["nm2"])})


def test_two_tasks_of_a_node_see_the_gpu_that_yarn_gave_each(trained):
    """Cgroups hide the others, and YARN sets no variable in a container without Docker."""
    *workers, other = trained.texts
    assert other == "CUDA_VISIBLE_DEVICES: unset\n"
    seen = [re.fullmatch(rf"GPU 0: Stand-in \(UUID: (.*)\)\n{other}", text)[1] for text in workers]
    assert sorted(seen) == sorted(gpu_node.GPUS.values())
    tasks = trained.document["tasks"]
    assert [task["usage"]["gpu_uuids"] for task in tasks] == [*seen, None] and not trained.document["alerts"]
    assigned = trained.assigned["assignedGpuDevices"]
    by_container = {entry["containerId"]: gpu_node.GPUS[entry["minorNumber"]] for entry in assigned}
    assert by_container == {task["container_id"]: task["usage"]["gpu_uuids"] for task in tasks[:2]}
    assert all(cost > 0 for cost in trained.costs), trained.costs


# ---------------------------------------------------------------- no labels


@pytest.fixture(scope="module")
def unlabelled(hadoop, with_gpus):
    """Take the label away: one node has two GPUs and 16,384 MiB, and one none and 20,000 MiB."""
    put_labels(replace(hadoop.settings, labels={"nm2": ""}))


#: A worker fails on the node on which the first of them has begun.
FAILS_THERE = """echo $NM_HTTP_PORT > {0}/$SKEIN_CONTAINER_ID; ln {0}/$SKEIN_CONTAINER_ID {0}/bad
    [ $(cat {0}/bad) != $NM_HTTP_PORT ] || exit 3"""


def test_job_trains_on_the_node_that_is_not_excluded(unlabelled, launcher, tmp_path):
    patient = RestartPolicy("cluster", max_restarts=9, backoff=0, exclude_node_after=1)
    workers = TaskSpec(instances=2, memory=256, resources={A100: 1})
    # Without the archive of classes, which has Skein's own names of resources: YARN here has no yarn.io/fpga.
    site = launcher.cluster.site
    unshared = replace(site, am_java_options=f"{site.am_java_options} -Xshare:off")
    launcher.session.cluster = replace(launcher.cluster, site=unshared)
    report = launcher.run(
        job(FAILS_THERE.format(tmp_path), tasks={"worker": workers}, restart=patient), poll_interval=0.1
    )
    assert report.reason is Reason.SUCCEEDED, "".join(launcher.log(report.application_id, "master"))
    ((node, why),) = report.excluded_nodes.items()
    assert node.endswith(f":{(tmp_path / 'bad').read_text().strip()}") and "failed with exit code 3" in why


FIVE = ["-r", "worker:1", "-m", "256", "--task_gpus", "5"]
BOTH = ["-r", "worker:1", "-m", "18000", "--task_gpus", "1"]
NO_NODE = (
    "no node could hold worker, which asks for 18000 MiB, 1 vcores, 1 GPUs; "
    f"the largest of 2 nodes: 20000 MiB, 96 vcores, 2 GPUs, 2 {A100}"
)


def test_memory_and_gpus_of_different_nodes_are_a_warning(hadoop, unlabelled, launcher):
    until(lambda: launcher.session.resourcemanager.new_application()[1] == Allocation(20000, 32, 2, {A100: 2}), 60, 0.1)
    refused = submit(hadoop, "--strict_placement", "--json", *BOTH, "true")
    assert (refused.returncode, json.loads(refused.stdout)["reason"]) == (3, "RESOURCES_IMPOSSIBLE")
    assert NO_NODE in refused.stderr
    assert launcher.list() == [] and directories(launcher) == []

    above = submit(hadoop, *FIVE, "true")
    assert above.returncode == 3
    assert "worker asks for 256 MiB, 1 vcores, 5 GPUs; the cluster's maximum allocation is 20000 MiB" in above.stderr
    assert launcher.list() == [] and directories(launcher) == []

    unknown = submit(hadoop, "-r", "worker:1", "--resource", "chip=1", "true")
    assert unknown.returncode == 3
    assert "0 GPUs, 1 chip; the cluster's maximum allocation is" in unknown.stderr
    assert f"any number of {A100}" in unknown.stderr
    assert launcher.list() == [] and directories(launcher) == []

    taken = submit(hadoop, *BOTH, "--allocation_timeout", "3", "true")
    assert taken.returncode == 0 and f"{NO_NODE}; the job waits until the cluster has room for it" in taken.stderr
    report = launcher.wait(taken.stdout.strip(), timeout=120)
    assert report.reason is Reason.ALLOCATION_TIMEOUT and "worker_0" in report.message
    until(lambda: directories(launcher) == [])


def test_more_gpus_than_present_nodes_have_is_a_warning(hadoop, unlabelled, launcher):
    hadoop.stop_daemon("rm", signal.SIGKILL)
    configure(hadoop, {WAIT: 3600_000})
    hadoop.start_daemon("rm")
    nodes_are(hadoop, launcher)
    refused = submit(hadoop, "--strict_placement", "--json", *FIVE, "true")
    assert (refused.returncode, json.loads(refused.stdout)["reason"]) == (3, "RESOURCES_IMPOSSIBLE")
    assert "no node could hold worker, which asks for 256 MiB, 1 vcores, 5 GPUs" in refused.stderr
    assert launcher.list() == [] and directories(launcher) == []

    taken = submit(hadoop, *FIVE, "true")
    assert taken.returncode == 0 and "5 GPUs; the largest of 2 nodes" in taken.stderr
    application_id = taken.stdout.strip()
    assert launcher.kill(application_id, "enough").reason is Reason.KILLED
    until(lambda: directories(launcher) == [])

    above = submit(hadoop, "-r", "worker:1", "-m", "900g", "true")
    assert above.returncode == 3
    assert "the cluster's maximum allocation is 32000 MiB, 32 vcores, any number of GPUs" in above.stderr

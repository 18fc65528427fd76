"""GPUs that YARN's plug-in assigns: cgroups hide the others, and YARN sets no variable in a container without Docker."""

import json
import os
import re
import sys
import urllib.request

import pytest

from support import gpu_node
from support.cluster_jobs import job
from support.hadoop import HadoopCluster
from support.machines import write_script
from support.two_nodes import launcher_on
from support.waiting import until
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

TRAIN = """\
{ nvidia-smi -L; echo "CUDA_VISIBLE_DEVICES: ${CUDA_VISIBLE_DEVICES-unset}"; } > FOLDER/new.$JOB_NAME$TASK_INDEX
mv FOLDER/new.$JOB_NAME$TASK_INDEX FOLDER/$JOB_NAME$TASK_INDEX
until [ -e FOLDER/go ]; do sleep 0.2; done"""


@pytest.fixture
def hadoop(tmp_path):
    """Return a cluster of one node with two GPUs and LinuxContainerExecutor."""
    (tmp_path / "cgroup" / "devices").mkdir(parents=True)
    smi, executor = (
        write_script(
            tmp_path / "bin" / name, f'exec {sys.executable} -IS {gpu_node.__file__} {tmp_path}/cgroup {name} "$@"\n'
        )
        for name in ("nvidia-smi", "container-executor")
    )
    linux, plugins = "yarn.nodemanager.linux-container-executor", "yarn.nodemanager.resource-plugins"
    properties = {
        "yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
        f"{linux}.path": executor,
        f"{linux}.nonsecure-mode.limit-users": "false",
        f"{linux}.cgroups.mount-path": tmp_path / "cgroup",
        f"{linux}.cgroups.delete-timeout-ms": 0,
        # container-executor gets none of the NodeManager's variables, so bash chooses the PATH of a container.
        "yarn.nodemanager.admin-env": f"PATH={smi.parent}:{os.environ['PATH']}",
        plugins: "yarn.io/gpu",
        f"{plugins}.gpu.path-to-discovery-executables": smi,
    }
    with HadoopCluster(
        tmp_path / "cluster", light=True, properties={k: str(v) for k, v in properties.items()}
    ) as cluster:
        yield cluster


def read(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def read_text(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def test_two_tasks_of_a_node_see_the_gpu_that_yarn_gave_each(hadoop, tmp_path):
    with launcher_on(hadoop) as launcher:
        application = launcher.submit(
            job(
                TRAIN.replace("FOLDER", str(tmp_path)),
                tasks={"worker": TaskSpec(instances=2, memory=256, gpus=1), "other": TaskSpec(memory=256)},
            )
        )
        files = [tmp_path / name for name in ("worker0", "worker1", "other0")]
        until(lambda: all(file.exists() for file in files), 120, what=f"the tasks of {application}")
        *workers, other = (file.read_text() for file in files)
        assert other == "CUDA_VISIBLE_DEVICES: \n"
        seen = [
            re.fullmatch(r"GPU 0: Stand-in \(UUID: (.*)\)\nCUDA_VISIBLE_DEVICES: unset\n", text)[1] for text in workers
        ]
        assert sorted(seen) == sorted(gpu_node.GPUS.values())

        tracking_url = launcher.report(application).tracking_url.rstrip("/")

        def usages():
            document = read(f"{tracking_url}/pages/ytf/status.json")
            gpus = [(task["usage"] or {}).get("gpus") for task in document["tasks"]]
            return gpus == [1, 1, None] and document

        document = until(usages, 60, what="the answers of nvidia-smi")
        assert [task["usage"]["gpu_uuids"] for task in document["tasks"]] == [*seen, None] and not document["alerts"]
        assigned = read(f"http://{hadoop.settings.address('nm-web')}/ws/v1/node/resources/yarn.io%2Fgpu")[
            "assignedGpuDevices"
        ]
        by_container = {entry["containerId"]: gpu_node.GPUS[entry["minorNumber"]] for entry in assigned}
        assert by_container == {task["container_id"]: task["usage"]["gpu_uuids"] for task in document["tasks"][:2]}
        (tmp_path / "go").touch()
        report = launcher.wait(application, timeout=120)
        assert report.reason is Reason.SUCCEEDED
        counted = re.search(
            r"(\d+) MB-seconds, (\d+) vcore-seconds.*? (\d+) yarn\.io/gpu-seconds",
            read_text(f"{launcher.cluster.resourcemanagers[0]}/cluster/app/{application}"),
        )
        costs = (report.memory_seconds, report.vcore_seconds, report.gpu_seconds)
        assert costs == tuple(map(int, counted.groups())) and report.gpu_seconds > 0

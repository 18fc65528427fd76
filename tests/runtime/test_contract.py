"""The job file and the environment that user programs see."""

import json

import pytest

from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import (
    TaskId,
    cluster_spec,
    dump_job,
    hosts_variable,
    load_job,
    task_environment,
)
from tf_yarn_ops.submit.application import build_runtime_job

SPEC = JobSpec(
    command="python ${DTF_TASK_SCRIPT}",
    tasks={
        "chief": TaskSpec(),
        "worker": TaskSpec(instances=2, env={"K": "of workers"}),
        "ps": TaskSpec(),
        "evaluator": TaskSpec(hold_port=False),
        "my-job": TaskSpec(command="own"),
    },
    env={"K": "of all", "L": "é\n"},
    script="/home/me/mnist.py",
    input="hdfs://nn/in",
    output="/out",
    environment=Environment.parse("conda:///opt/tf"),
)
JOB = build_runtime_job(SPEC)._replace(user="me")
CLUSTER = cluster_spec(JOB, {task: f"h{n}:{2000 + n}" for n, task in enumerate(JOB.tasks())})


def environment(task, address="h1:2001", container=None):
    return task_environment(
        JOB,
        TaskId.parse(task),
        CLUSTER,
        container or {"PATH": "/bin", "HOME": "/h"},
        application_id="application_1_1",
        round_number=3,
        address=address,
        folder="/job",
    )


def test_the_job_file_survives_the_journey():
    assert load_job(dump_job(JOB)).types == JOB.types
    assert load_job(dump_job(JOB)).tasks() == JOB.tasks()
    assert load_job(dump_job(JOB)).types["worker"].env["L"] == "é\n"


def test_a_job_file_of_another_version_is_refused():
    with pytest.raises(ValueError, match="version 2, this runtime reads 1"):
        load_job(dump_job(JOB._replace(version=2)))


def test_hosts_are_listed_in_the_order_of_the_task_index():
    assert CLUSTER["worker"] == ["h1:2001", "h2:2002"]
    assert "evaluator" not in CLUSTER


def test_a_worker_sees_the_seeds_and_tensorflows_variables():
    env = environment("worker:1", "h2:2002")
    assert json.loads(env["TF_CONFIG"]) == {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}}
    assert json.loads(env["CLUSTER_SPEC"]) == CLUSTER
    expected = {
        "DTF_TASK_JOB_NAME": "worker",
        "DTF_TASK_INDEX": "1",
        "DTF_WORKER_HOSTS": "h1:2001,h2:2002",
        "DTF_PS_HOSTS": "h3:2003",
        "DTF_CHIEF_HOSTS": "h0:2000",
        "DTF_MY_JOB_HOSTS": "h5:2005",
        "DTF_TASK_SCRIPT": "mnist.py",
        "DTF_INPUT_PATH": "hdfs://nn/in",
        "DTF_OUTPUT_PATH": "/out",
        "DTF_OUT_PATH": "/out",
        "DTF_TASK_PROGRAM": "python ${DTF_TASK_SCRIPT}",
        "JOB_NAME": "worker",
        "TASK_INDEX": "1",
        "TASK_NUM": "2",
        "YTF_APPLICATION_ID": "application_1_1",
        "YTF_ROUND": "3",
        "YTF_RESULT_FILE": "/job/.ytf.result.json",
        "YTF_METRICS_FILE": "/job/.ytf.metrics.jsonl",
        "YTF_HOST": "h2",
        "YTF_PORT": "2002",
        "TF_GRPC_REUSE_PORT": "true",
        "PATH": "/opt/tf/bin:/bin",
        "PYTHONPATH": "/job/.ytf.zip/program:/job",
        "HOME": "/h",
        "K": "of workers",
        "L": "é\n",
    }
    assert {name: env.get(name) for name in expected} == expected
    assert "DTF_EVALUATOR_HOSTS" not in env and "DTF_DOCKER_IMAGE" not in env


def test_docker_image_reaches_the_program():
    spec = JobSpec(command="x", tasks={"worker": TaskSpec()}, environment=Environment.parse("docker://tf:2.16.1"))
    job = load_job(dump_job(build_runtime_job(spec)))
    env = task_environment(
        job,
        TaskId("worker", 0),
        {"worker": ["h:1"]},
        {"JAVA_HOME": "/", "HADOOP_CONF_DIR": "/not in/the image", "OTHER": "/not in/the image"},
        application_id="a",
        round_number=1,
        address="h:1",
        folder="/w",
    )
    assert env["DTF_DOCKER_IMAGE"] == "tf:2.16.1"
    assert (env["JAVA_HOME"], env["OTHER"]) == ("/", "/not in/the image")
    assert "HADOOP_CONF_DIR" not in env, "the node has the folder, and the image lacks it"


def test_what_was_not_given_is_not_set():
    job = build_runtime_job(JobSpec(command="x", tasks={"worker": TaskSpec()}))
    env = task_environment(
        job,
        TaskId("worker", 0),
        {"worker": ["h:1"]},
        {},
        application_id="a",
        round_number=1,
        address="h:1",
        folder="/w",
    )
    assert not {"DTF_TASK_SCRIPT", "DTF_INPUT_PATH", "DTF_OUTPUT_PATH", "DTF_OUT_PATH", "DTF_DOCKER_IMAGE"} & set(env)


def test_the_client_gets_the_jobs_variables_without_a_place_in_the_cluster():
    env = environment("client:0", "")
    assert (env["DTF_TASK_JOB_NAME"], env["DTF_TASK_INDEX"]) == ("client", "0")
    assert env["DTF_WORKER_HOSTS"] == "h1:2001,h2:2002"
    assert not {"YTF_PORT", "YTF_HOST", "TF_GRPC_REUSE_PORT"} & set(env)


HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize(
    ("name", "values", "seen"),
    [
        ("ps:0", {}, HIDDEN),
        ("worker:0", {}, {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}),  # as YARN gives it
        ("worker:1", {}, HIDDEN),
        ("client:0", {}, {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}),
        ("ps:0", {"env": {"CUDA_VISIBLE_DEVICES": "3"}}, {**HIDDEN, "CUDA_VISIBLE_DEVICES": "3"}),
        ("ps:0", {"node_label": "gpu"}, {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}),  # the cluster may not count its GPUs
    ],
)
def test_tasks_without_gpus_see_none_and_others_what_yarn_gave(name, values, seen):
    worker = TaskSpec(instances=2, gpus=1, indices={1: {"gpus": 0}})
    job = load_job(
        dump_job(build_runtime_job(JobSpec(command="x", tasks={"worker": worker, "ps": TaskSpec()}, **values)))
    )
    env = task_environment(
        job,
        TaskId.parse(name),
        {},
        {"NVIDIA_VISIBLE_DEVICES": "GPU-a"},
        application_id="a",
        round_number=1,
        address="h:1",
        folder="/w",
    )
    assert {key: value for key, value in env.items() if key.endswith("_VISIBLE_DEVICES")} == seen


def test_program_that_does_not_share_its_port_lacks_the_variable():
    assert "TF_GRPC_REUSE_PORT" not in environment("evaluator:0")


@pytest.mark.parametrize(
    "name, variable", [("ps", "DTF_PS_HOSTS"), ("my-job_2", "DTF_MY_JOB_2_HOSTS"), ("Worker", "DTF_WORKER_HOSTS")]
)
def test_host_variables_are_upper_case_with_underscores(name, variable):
    assert hosts_variable(name) == variable

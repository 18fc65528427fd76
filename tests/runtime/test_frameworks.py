"""The table of frameworks: the variables of a job's tasks, their roles and their ports."""

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import (
    TaskId,
    cluster_spec,
    dump_job,
    load_job,
    process_environments,
    task_environment,
)
from tf_yarn_ops.runtime.common.frameworks import FRAMEWORKS
from tf_yarn_ops.submit.application import build_runtime_job

TASKS = {"worker": TaskSpec(instances=2), "chief": TaskSpec(), "side": TaskSpec(in_cluster=False)}
PYTORCH = {
    "MASTER_ADDR": "h0", "MASTER_PORT": "2000", "RANK": "2", "WORLD_SIZE": "3", "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "2", "GROUP_WORLD_SIZE": "3", "ROLE_NAME": "worker", "ROLE_RANK": "1",
    "ROLE_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "application_1_1", "TORCHELASTIC_RESTART_COUNT": "1",
    "TORCHELASTIC_USE_AGENT_STORE": "False", "WORLD": "3", "INIT_METHOD": "tcp://h0:2000"}  # fmt: skip
JAX = {"JAX_COORDINATOR_ADDRESS": "h0:2000", "JAX_PROCESS_ID": "2", "JAX_NUM_PROCESSES": "3"}
HOROVOD = {
    "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "h0",
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "2000", "HOROVOD_HOSTNAME": "worker-1", "HOROVOD_RANK": "2", "HOROVOD_SIZE": "3",
    "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1", "HOROVOD_CROSS_RANK": "2", "HOROVOD_CROSS_SIZE": "3"}  # fmt: skip
TENSORFLOW = {"TF_CONFIG": '{"cluster":{"worker":["h1:2001","h2:2002"],"chief":["h0:2000"]},"task":{"type":"worker","index":1}}',
              "TF_GRPC_REUSE_PORT": "true", "DTENSOR_CLIENT_ID": "2", "DTENSOR_NUM_CLIENTS": "3", "DTENSOR_JOB_NAME": "worker",
              "DTENSOR_JOBS": "h0:2000,h1:2001,h2:2002"}  # fmt: skip
EXPECTED = {"tensorflow": TENSORFLOW, "pytorch": PYTORCH, "jax": JAX, "horovod": HOROVOD, "none": {}}


#: What differs for the second of two processes in each task, and what all of several processes have.
SECOND = {
    "pytorch": {
        "RANK": "5", "WORLD_SIZE": "6", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4", "WORLD": "6"},
    "jax": {"JAX_PROCESS_ID": "5", "JAX_NUM_PROCESSES": "6"},
    "horovod": {"HOROVOD_RANK": "5", "HOROVOD_SIZE": "6", "HOROVOD_LOCAL_RANK": "1", "HOROVOD_LOCAL_SIZE": "2"},
    "none": {}}  # fmt: skip
SEVERAL = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


def environment(spec, task, container=None):
    """Return the job that an agent reads, and the environment of one of its tasks."""
    job = load_job(dump_job(build_runtime_job(spec)))
    ports = {
        TaskId("worker", 0): "h1:2001",
        TaskId("worker", 1): "h2:2002",
        TaskId("chief", 0): "h0:2000",
        TaskId("ps", 0): "h3:2003",
    }
    env = task_environment(
        job,
        TaskId.parse(task),
        cluster_spec(job, ports),
        container or {},
        application_id="application_1_1",
        round_number=2,
        address="h2:2002",
        folder="/f",
    )
    return job, env


def variables(framework, task, tasks=TASKS):
    """Return the variables of a task that tasks of other frameworks do not have."""
    return ours_of(environment(JobSpec(command="x", tasks=tasks, framework=framework), task)[1])


def ours_of(env):
    ours = {name for expected in EXPECTED.values() for name in expected}
    return {name: value for name, value in env.items() if name in ours}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_framework_gets_its_variables_and_no_others(framework):
    assert variables(framework, "worker:1") == EXPECTED[framework]


@pytest.mark.parametrize("framework", SECOND)
def test_each_process_of_a_task_gets_its_own_variables(framework):
    several = JobSpec(command="x", tasks=TASKS, framework=framework, procs_per_task=2)
    first, second = process_environments(*environment(several, "worker:1"))
    assert ours_of(second) == {**EXPECTED[framework], **SECOND[framework], **SEVERAL}
    assert (second["YTF_RESULT_FILE"], second["YTF_METRICS_FILE"], second["OMP_NUM_THREADS"]) == (
        "/f/.ytf.result.json.1", "/f/.ytf.metrics.jsonl.1", "1")  # fmt: skip
    differing = {name for name in second if first.get(name) != second[name]}
    ranks = {"RANK", "ROLE_RANK", "JAX_PROCESS_ID", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK"} & {*second}
    assert differing == {"LOCAL_RANK", "YTF_RESULT_FILE", "YTF_METRICS_FILE", *ranks}
    assert process_environments(*environment(several, "side:0")) == []


@pytest.mark.parametrize(
    "framework, container, gpus, seen",
    [
        ("jax", {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c,GPU-d"}, 4, ["GPU-a,GPU-b", "GPU-c,GPU-d"]),  # --local
        ("none", {}, 2, ["0", "1"]),  # YARN hides those of others
        ("pytorch", {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, 2, ["GPU-a,GPU-b"] * 2),  # LOCAL_RANK selects
        ("jax", {}, 0, [""] * 2),
        ("jax", {"CUDA_VISIBLE_DEVICES": ""}, 4, [""] * 2),  # --env hides them
    ],
)
def test_processes_of_a_task_divide_its_gpus(framework, container, gpus, seen):
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(gpus=gpus)}, framework=framework, procs_per_task=2)
    found = process_environments(*environment(spec, "worker:0", container))
    assert [env["CUDA_VISIBLE_DEVICES"] for env in found] == seen


def test_rank_0_is_the_chief_else_the_first_worker():
    assert [variables("jax", task)["JAX_PROCESS_ID"] for task in ("chief:0", "worker:0", "worker:1")] == ["0", "1", "2"]
    alone = {"eval": TaskSpec(in_cluster=False), "worker": TaskSpec(instances=2)}
    assert variables("pytorch", "worker:0", alone)["INIT_METHOD"] == "tcp://h1:2001"


@pytest.mark.parametrize("tasks", [{"chief": 1}, {"worker": 2, "chief": 1, "ps": 1}])
def test_one_task_and_parameter_servers_are_no_clients_of_dtensor(tasks):
    assert set(variables("tensorflow", "chief:0", tasks)) == {"TF_CONFIG", "TF_GRPC_REUSE_PORT"}


@pytest.mark.parametrize("framework, given", [("tensorflow", {"TF_CONFIG", "TF_GRPC_REUSE_PORT"}), ("pytorch", set())])
def test_task_outside_the_cluster_spec_has_no_rank(framework, given):
    assert set(variables(framework, "side:0")) == given


@pytest.mark.parametrize(
    "framework, awaited, held",
    [
        ("tensorflow", False, True),
        ("none", False, False),
        ("pytorch", True, False),
        ("jax", True, True),
        ("horovod", True, False),
    ],
)
def test_framework_rules_success_and_the_reserved_port(framework, awaited, held):
    spec = JobSpec(command="x", tasks={"worker": 1, "ps": 1}, framework=framework)
    plan = build_runtime_job(spec).types["ps"]
    assert (plan.awaited, plan.hold_port) == (awaited, held)
    own = JobSpec(command="x", tasks={"worker": TaskSpec(hold_port=not held)}, framework=framework)
    assert build_runtime_job(own).types["worker"].hold_port is not held


def test_unknown_framework_is_rejected():
    with pytest.raises(SpecInvalid, match=r"framework: 'pytorh' is not one of .* \(did you mean 'pytorch'\?\)"):
        JobSpec(command="x", tasks={"worker": 1}, framework="pytorh")

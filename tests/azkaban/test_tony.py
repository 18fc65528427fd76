"""Jobs of TonY as jobs of this type."""

import pytest

from support.azkaban_keys import RUN, faults_of, read
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.tony import translate
from tf_yarn_ops.job.spec import JobSpec

TONY = {
    "type": "TensorFlowJob", "executes": "mnist.py", "src_dir": "src", "task_params": "--steps 10 --name 'a b'",
    "python_binary_path": "/opt/py/bin/python", "worker_env.E1": "e1", "worker_env.E2": "a,b=c",
    "azkaban.input.dataset": "a,b", "azkaban.output.dataset": "/out", "tony.worker.instances": "2",
    "tony.worker.memory": "3g", "tony.worker.gpus": "1", "tony.worker.vcores": "4", "tony.worker.node-label": "gpu",
    "tony.ps.instances": "1", "tony.ps.command": "serve", "tony.evaluator.instances": "0",
    "tony.yarn.queue": "ml", "tony.application.name": "mnist", "tony.application.tags": "one,two",
    "tony.application.timeout": "7200000", "tony.application.node-label": "fast",
    "tony.containers.envs": "A=1,B=2=3,C", "tony.execution.envs": "D=4", "tony.am.memory": "1g", "tony.am.vcores": "2",
    "tony.other.namenodes": "hdfs://a,hdfs://b", "tony.container.allocation.timeout": "60000",
    "tony.container.registration.timeout": "-1", "tony.task.heartbeat-interval-ms": "2000",
    "tony.task.max-missed-heartbeats": "10", "tony.am.startup-timeout": "90000",
    "tony.task.executor.execution-timeout-ms": "3600000", "tony.application.framework": "tensorflow",
    "tony.worker.resources": "hdfs:///a.txt,hdfs:///b.txt::c.txt", "tony.containers.resources": "e.zip::e#archive",
    "hdfs_classpath": "/libs/x.jar,hdfs://nn/y.jar", "tony.worker.depends-on": "prepare", "tony.prepare.instances": "1",
}  # fmt: skip


def test_a_job_of_tony_is_the_same_job(project):
    assert read(TONY, project) == JobSpec.from_dict({
        "command": "/opt/py/bin/python mnist.py --steps 10 --name 'a b'", "environment": "python:///opt/py/bin/python",
        "tasks": {
            "worker": {"instances": 2, "memory": "3g", "gpus": 1, "vcores": 4, "node_label": "gpu", "after": "prepare"},
            "ps": {"memory": "2g", "command": "serve"},
            "prepare": {"memory": "2g"},
        },
        "env": {"E1": "e1", "E2": "a,b=c", "AZKABAN_INPUT_DATASET": "a;b", "AZKABAN_OUTPUT_DATASET": "/out",
                "A": "1", "B": "2=3", "C": "", "D": "4"},
        "files": {"mnist.py": "src/mnist.py", "models": "src/models", "a.txt": "hdfs:///a.txt",
                  "c.txt": "hdfs:///b.txt", "x.jar": "hdfs:///libs/x.jar", "y.jar": "hdfs://nn/y.jar"},
        "archives": {"e": "e.zip"}, "queue": "ml", "name": "mnist", "tags": ["one", "two"], "node_label": "fast",
        "am_memory": "1g", "am_vcores": 2, "file_systems": ["hdfs://a", "hdfs://b"],
        "deadlines": {"total": 7200, "allocation": 60, "registration": 0, "heartbeat": 20, "queue": 90,
                      "execution": 3600},
    })  # fmt: skip
    assert translate(TONY).ignored == []


def test_tonys_virtual_environment_is_unpacked_as_venv(project):
    job = read({"executes": "mnist.py", "python_venv": "venv.zip", "python_binary_path": "bin/python",
                "tony.worker.instances": "1"}, project)  # fmt: skip
    assert job.command == "chmod -R u+x venv && venv/bin/python mnist.py"
    assert job.archives == {"venv": "venv.zip"} and job.environment is None
    assert job.files == {"mnist.py": "src/mnist.py", "models": "src/models"}, "src is src_dir's default"


SOURCES = {"mnist.py": "src/mnist.py", "models": "src/models"}


@pytest.mark.parametrize("name", ["tony.worker.command", "tony.containers.command"])
def test_the_sources_of_tony_lie_beside_every_command(name, project):
    job = read({name: "python3 mnist.py", "tony.worker.instances": "1"}, project)
    assert job.files == SOURCES
    assert read({name: "python3 mnist.py", "tony.worker.instances": "1"}, project / "src").files == {}


def test_tonys_parameters_belong_to_executes(project):
    job, request = read_azkaban_job(
        {"tony.worker.command": "serve", "tony.worker.instances": "1", "task_params": "--x 1"}, project
    )
    assert (job.command, job.tasks["worker"].command) == (None, "serve")
    assert request.warnings == ["these keys of TonY have no effect here: task_params (they need executes)"]


def test_executes_is_what_runs(project):
    job, request = read_azkaban_job({"tony.containers.command": "python3 a.py", "executes": "mnist.py", "task_params": "-v",
                                     "tony.worker.instances": "1"}, project)  # fmt: skip
    assert job.command == "mnist.py -v"
    assert request.warnings == [
        "these keys of TonY have no effect here: tony.containers.command (executes runs instead)"
    ]


@pytest.mark.parametrize("name", ["tony.worker.command", "tony.containers.command"])
def test_every_command_of_tony_can_run_what_the_virtual_environment_holds(name, project):
    job = read({name: "venv/bin/python mnist.py", "python_venv": "venv.zip", "tony.worker.instances": "1"}, project)
    assert (job.tasks["worker"].command or job.command) == "chmod -R u+x venv && venv/bin/python mnist.py"
    own = {name.replace("tony.containers.", "tf.").replace("tony.", "tf."): "venv/bin/python mnist.py"}
    job = read(
        {name: "venv/bin/python mnist.py", "python_venv": "venv.zip", "tony.worker.instances": "1", **own}, project
    )
    assert (job.tasks["worker"].command or job.command) == "venv/bin/python mnist.py", "they agree"


def test_tonys_quotes_round_a_command_are_azkabans(project):
    job = read({"executes": "'python3 a.py'", "tony.worker.instances": "1"}, project / "src")
    assert job.command == "python3 a.py" and job.files == {}


@pytest.mark.parametrize(
    ("beats", "deadline"),
    [
        ({"heartbeat-interval-ms": "2000"}, 50),
        ({"max-missed-heartbeats": "40"}, 40),
        ({"heartbeat-interval-ms": "1"}, 5),
    ],
)
def test_tonys_heartbeats_are_one_deadline(beats, deadline, project):
    keys = {f"tony.task.{name}": text for name, text in beats.items()}
    assert read({"executes": "x", "tony.worker.instances": "1", **keys}, project).deadlines.heartbeat == deadline


@pytest.mark.parametrize("wrong", ["tony.task.heartbeat-interval-ms", "tony.task.max-missed-heartbeats"])
@pytest.mark.parametrize("other", [{}, {"tony.task.heartbeat-interval-ms": "1000"}])
def test_wrong_heartbeat_of_tony_is_a_fault_of_its_own_key(wrong, other, project):
    job = {"executes": "x", "tony.worker.instances": "1", **other, wrong: "many"}
    assert [fault.partition(": ")[:3:2] for fault in faults_of(job, project)] == [
        (wrong, "'many' is not a number of seconds of at least 0")
    ]


def test_tonys_roles_keep_their_part(project):
    job = read({"executes": "x", "tony.chief.instances": "1", "tony.worker.instances": "2", "tony.logger.instances": "1",
                "tony.helper.instances": "1", "tony.application.untracked.jobtypes": "helper,ps",
                "tony.application.sidecar.jobtypes": "logger, tensorboard",
                "tony.application.stop-on-failure-jobtypes": "worker"}, project)  # fmt: skip
    assert job.success == "chief"
    parts = {name: (task.awaited, task.fatal) for name, task in job.tasks.items()}
    assert parts == {"chief": (None, None), "worker": (None, True), "logger": (False, False), "helper": (False, None)}


def test_tonys_tensorboard_and_docker(project):
    job = read({"executes": "x", "tony.worker.instances": "1", "tony.application.tensorboard-log-dir": "/logs",
                "tony.tensorboard.memory": "3g", "tony.docker.enabled": "true", "tony.docker.containers.image": "tf:2",
                "tony.docker.worker.image": "tf:3", "python_binary_path": "/usr/bin/python3"}, project)  # fmt: skip
    assert str(job.tasks["worker"].environment) == "docker://tf:3"
    assert (job.output, job.tensorboard.memory, str(job.environment)) == ("/logs", 3072, "docker://tf:2")
    off = read({"executes": "x", "tony.worker.instances": "1", "tony.docker.containers.image": "tf:2"}, project)
    assert off.environment is None


def test_tonys_interpreter_is_an_environment_like_any(project):
    tony = {"executes": "a.py", "tony.worker.instances": "1", "python_binary_path": "/opt/py"}
    site = {"tf.environment": "venv:///site"}
    assert str(read(tony, project, defaults=site).environment) == "python:///opt/py"
    assert str(read(tony, project, defaults={"tf.docker_image": "i"}).environment) == "python:///opt/py"
    assert str(read({**tony, "tf.docker_image": "i"}, project, defaults=site).environment) == "docker://i"
    assert faults_of({**tony, "tf.environment": "venv:///mine"}, project) == [
        "python_binary_path: 'python:///opt/py' is not what tf.environment says, 'venv:///mine'; give one of them"
    ]


def test_the_memory_of_all_tasks_holds_before_tonys_default(project):
    tony = {"executes": "a.py", "tony.worker.instances": "1", "tony.ps.instances": "1", "tony.ps.memory": "3g"}
    for job in (
        read({**tony, "tf.task_memory": "4g"}, project),
        read(tony, project, defaults={"tf.task_memory": "4g"}),
    ):
        assert {name: task.memory for name, task in job.tasks.items()} == {"worker": 4096, "ps": 3072}


@pytest.mark.parametrize("own", [{"tf.helper.instances": "1"}, {"tf.cluster_requirement": "worker:1, helper:1"}])
def test_tonys_lists_of_roles_name_our_roles_too(own, project):
    job = read({"executes": "x", "tony.worker.instances": "1", **own,
                "tony.application.sidecar.jobtypes": "helper"}, project)  # fmt: skip
    assert (job.tasks["helper"].awaited, job.tasks["helper"].fatal) == (False, False)


@pytest.mark.parametrize(
    "lost, warning",
    [
        ({"python_binary_path": "bin/python", "tony.worker.command": "x"}, "python_binary_path (it needs executes)"),
        (
            {"tony.docker.enabled": "true", "executes": "x"},
            "tony.docker.enabled (there is no tony.docker.containers.image)",
        ),
        (
            {
                "executes": "x",
                "tony.history.location": "/h",
                "tony.task.executor.jvm.opts": "-Xmx1g",
                "tony.application.security.enabled": "false",
            },
            "tony.history.location, tony.task.executor.jvm.opts, tony.application.security.enabled",
        ),
    ],
)
def test_nothing_of_tony_is_lost_in_silence(lost, warning, project):
    _, request = read_azkaban_job({"tony.worker.instances": "1", **lost}, project)
    assert request.warnings == [f"these keys of TonY have no effect here: {warning}"]


def test_key_of_tony_that_is_not_served_is_a_fault(project):
    (project / "helper.yaml").write_text("tasks: {helper: 1}")
    unserved = {"tony.application.training-stage": "worker", "tony.application.prepare-stage": "ps", "tony.am.gpus": "1",
                "tony.application.placement-spec": "x", "tony.docker.am.image": "x", "tony.worker.max-instances": "4",
                "tony.containers.resources": "a.rar#archive", "tony.application.sidecar.jobtypes": "helper, tensorboard"}  # fmt: skip
    found = faults_of({"executes": "x", "tf.spec": "helper.yaml", "tony.worker.instances": "1", **unserved}, project)
    assert {fault.partition(":")[0] for fault in found} == {*unserved}
    assert (
        "tony.application.prepare-stage: this key of TonY has no counterpart here; the job would not run as it does there: "
        "remove the key"
    ) in found
    assert any(": set this of helper in tf.spec;" in fault for fault in found)
    assert not any("did you mean" in fault for fault in found), "a key that TonY has is not misspelt"


@pytest.mark.parametrize("given, framework", [("PyTorch", "pytorch"), ("standalone", "none"), ("horovod", "horovod")])
def test_framework_of_tony_is_ours(given, framework, project):
    job = read({"executes": "x", "tony.worker.instances": "1", "tony.application.framework": given}, project)
    assert job.framework == framework


def test_framework_of_tony_that_is_not_served_is_a_fault(project):
    assert faults_of(
        {"executes": "x", "tony.worker.instances": "1", "tony.application.framework": "mxnet"}, project
    ) == ["tony.application.framework: 'mxnet' is not one of tensorflow, pytorch, jax, horovod, none"]


def test_alias_and_own_key_that_agree_are_no_fault(project):
    job = read(
        {
            **RUN,
            "executes": "run",
            "tf.worker.memory": "2048",
            "tony.worker.memory": "2g",
            "tony.worker.instances": "1",
            "tf.total_timeout": "60",
            "tony.application.timeout": "60000",
        },
        project,
    )
    assert (job.tasks["worker"].memory, job.deadlines.total) == (2048, 60)

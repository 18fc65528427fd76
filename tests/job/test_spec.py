"""`JobSpec`: complete and valid once it exists."""

import dataclasses

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import Deadlines, Environment, Resources, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


def job(**values):
    return JobSpec(**{"tasks": {"worker": TaskSpec(instances=2)}, "command": "python train.py", **values})


def faults_of(**values):
    with pytest.raises(SpecInvalid) as error:
        job(**values)
    return list(map(str, error.value.faults))


def test_defaults_are_the_seeds():
    spec = job()
    assert (spec.name, spec.queue, spec.success) == ("TensorFlow", "default", "all_workers")
    assert spec.tasks["worker"].resources_of(1) == Resources(memory=8192, vcores=1)


def test_is_frozen_and_copies_what_it_is_given():
    env = {"A": "1"}
    spec = job(env=env)
    env["A"] = "2"
    assert spec.env == {"A": "1"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "other"


@pytest.mark.parametrize("spelling", ["chief", "chiefworker", "master"])
def test_chief_has_three_spellings(spelling):
    assert list(job(tasks={spelling: TaskSpec()}).tasks) == ["chief"]


def test_a_task_has_the_resources_of_its_index():
    task = TaskSpec(instances=2, memory=1024, indices={1: Resources(memory=4096, vcores=2)})
    assert (task.resources_of(0).memory, task.resources_of(1).memory, task.resources_of(1).vcores) == (1024, 4096, 2)


def test_roles_come_from_the_table_unless_the_task_sets_them():
    server = TaskSpec(command=" ytf-server ")
    tasks = {
        "ps": 1,
        "evaluator": 1,
        "anything": 1,
        "worker": server,
        "server": TaskSpec(command="ytf-server", awaited=True),
    }
    job = JobSpec(tasks=tasks, command="x")
    assert {name: tuple(job.role_of(name)) for name in tasks} == {
        "ps": (True, False, True),
        "evaluator": (False, True, True),
        "anything": (True, True, True),
        "worker": (True, False, True),
        "server": (True, True, True),
    }
    tasks = {"chief": TaskSpec(command="x"), "worker": 1, "evaluator": TaskSpec(command="x", fatal=False)}
    job = JobSpec(tasks=tasks, command="ytf-server", deadlines={"evaluator_grace": 60})
    assert {name: tuple(job.role_of(name)) for name in tasks} == {
        "chief": (True, True, True),
        "worker": (True, False, True),
        "evaluator": (False, False, False),
    }


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"command": " "}, ["command: the command is empty"]),
        ({"command": None}, ["command: missing; worker would have nothing to run: give the job a command, or each of these types its own"]),
        ({"command": "x\0y"}, ["command: 'x\\x00y' contains a NUL character, which can't be passed to a process"]),
        ({"tasks": {"worker": 2**64}}, [f"tasks: {2**64} tasks make a TF_CONFIG of more than 120 KiB; give fewer"]),
        ({"command": "x" * 130000}, ["command: the command is longer than 120 KiB; put it into a script"]),
        ({"tasks": {}}, ["tasks: there are none; give at least one task type, for example worker:1"]),
        ({"command": "ytf-server"}, ["tasks: the job would never end, because worker run until the job ends; add a chief or a worker"]),
        ({"tasks": {"ps": TaskSpec()}}, ["tasks: the job would never end, because ps run until the job ends; add a chief or a worker"]),
        ({"tasks": {"wörker": TaskSpec()}},
         ["tasks.wörker: 'wörker' is not a task type; use letters, digits, '-' and '_', a letter first"]),
        ({"tasks": {"master": TaskSpec(), "chief": TaskSpec()}},
         ["tasks.chief: the chief is given twice; chiefworker and master are other names of chief"]),
        ({"tasks": {"worker": TaskSpec(), "tensorboard": TaskSpec()}},
         ["tasks.tensorboard: tensorboard can't be a task type; the option tensorboard adds it"]),
        ({"tasks": {"worker": TaskSpec(instances=9000)}},
         ["tasks: 9000 tasks make a TF_CONFIG of more than 120 KiB; give fewer"]),
        ({"success": "cheif"}, ["success: 'cheif' is not one of all_workers, chief (did you mean 'chief'?)"]),
        ({"deadlines": {"success_grace": 60}},
         ["deadlines.success_grace: needs success: chief; with all_workers the job ends when the last awaited task has "
          "ended"]),
        ({"success": "chief"}, ["success: chief needs a task of type chief"]),
        ({"tasks": {"worker": {"max_restarts": 2, "max_container_losses": 1, "environment": "docker://a"}},
          "output": "/"},
         ["tasks.worker.max_restarts: 2 needs restart to be task or cluster, not never",
          "output: YARN can't mount '/' into a Docker container: no comma and no colon in the path, and not the whole "
          "disk"]),
        ({"tensorboard": TensorBoard()}, ["tensorboard: needs output, the folder that TensorBoard reads"]),
        ({"tasks": {"worker": TaskSpec(gpus=1, resources={"yarn.io/fpga": 1}), "ps": TaskSpec(resources={"a": 1})}},
         ["tasks: ask for yarn.io/gpu, yarn.io/fpga, a; Skein's application master requests at most 2 resources besides "
          "memory and vcores"]),
        ({"tasks": {"worker": {"resources": {"yarn.io/gpu": 1, "x y": 1, "a": 0, "b": 1.5, "memory-mb": 1}}}},
         ["tasks.worker.resources.yarn.io/gpu: yarn.io/gpu has an option of its own, task_gpus",
          "tasks.worker.resources.x y: 'x y' is not the name of a resource in YARN, such as yarn.io/fpga or "
          "example.com/accelerator",
          "tasks.worker.resources.a: 0 is not a whole number of at least 1",
          "tasks.worker.resources.b: 1.5 is not a whole number of at least 1",
          "tasks.worker.resources.memory-mb: memory-mb has an option of its own, task_memory"]),
        ({"tasks": {"worker": {"after": "prepar"}, "prepare": {"after": ["prepare"]}, "ps": 1, "x": {"after": ["ps", "y"]},
                    "y": {"after": "x"}}},
         ["tasks.worker.after: there is no task type 'prepar' in the request, which has worker, prepare, ps, x, y (did "
          "you mean 'prepare'?)", "tasks.prepare.after: prepare would wait for itself",
          "tasks.x.after: ps can't come first: its tasks must end by themselves (awaited), matter (fatal) and stay "
          "outside the cluster spec (in_cluster: false)", "tasks.x.after: x would wait for itself", "tasks.y.after: y would wait for itself"]),
        ({"tasks": {"worker": {"after": "master"}, "chief": 1}, "success": "chief"},
         ["tasks.worker.after: success: chief ends the job before these tasks start; leave it out"]),
        ({"tags": ["a"] * 7}, ["tags: 7 given, at most 6 allowed"]),
        ({"procs_per_task": 65}, [
            "procs_per_task: 65 given, at most 64 allowed",
            "procs_per_task: TensorFlow has one process in each task: TF_CONFIG names no others. Give framework of pytorch, "
            "jax, horovod, none, or one process"]),
        ({"procs_per_task": 2, "framework": "jax", "tasks": {
            "worker": {"instances": 2, "gpus": 4, "indices": {1: {"gpus": 3}}}, "side": {"gpus": 1, "in_cluster": False}}},
         ["procs_per_task: 2 processes can't share the 3 GPUs of worker:1 equally; give a number that divides 3"]),
        ({"procs_per_task": 2, "framework": "jax", "tasks": {
            "worker": {"instances": 2**60, "gpus": 2, "indices": {2**50: {"gpus": 3}}}}},
         [f"tasks: {2**60} tasks make a TF_CONFIG of more than 120 KiB; give fewer",
          f"procs_per_task: 2 processes can't share the 3 GPUs of worker:{2**50} equally; give a number that divides 3"]),
        ({"procs_per_task": 65, "report_log_tail": 9000, "deadlines": {"heartbeat": 1, "queue": "soon"},
          "restart": {"max_restarts": 1, "backoff": -1, "retry_exit_codes": [3], "fatal_exit_codes": [3]},
          "tasks": {"worker": {"vcores": 0, "indices": {1: {}}}}},
         ["tasks.worker.vcores: 0 is not a whole number of at least 1",
          "tasks.worker.indices.1: 1 is out of range; there are tasks 0 to 0",
          "restart.backoff: -1 is not a number of seconds of at least 0",
          "restart.max_restarts: 1 needs restart.mode to be task or cluster, not never",
          "restart.retry_exit_codes: restart.fatal_exit_codes names 3 too; give each code in one of the two lists",
          "deadlines.queue: 'soon' is not a number of seconds of at least 0",
          "deadlines.heartbeat: 1 is too short; give at least 5 seconds, or 0 for no limit",
          "procs_per_task: 65 given, at most 64 allowed",
          "procs_per_task: TensorFlow has one process in each task: TF_CONFIG names no others. Give framework of pytorch, "
          "jax, horovod, none, or one process",
          "report_log_tail: 9000 is more than 8192 characters"]),
        ({"tags": ["ü", ""]}, ["tags: 'ü' is not ASCII of 1 to 100 characters",
                               "tags: '' is not ASCII of 1 to 100 characters"]),
        ({"report_log_tail": 9000}, ["report_log_tail: 9000 is more than 8192 characters"]),
        ({"archives": {"data": "data.rar"}}, ["archives.data: 'data.rar' does not end with .tar.gz or .tgz or .zip"]),
        ({"files": {"train.py": "a.py"}, "script": "b/train.py"}, [
            "script: 'train.py' is also the name of files.train.py; give one of them another name"]),
        ({"files": {"a/b": "x"}}, [
            "files.a/b: 'a/b' can't be a file name in the container: no '/' in it, and no '.skein' or '.ytf' first"]),
        ({"files": {"tmp": "x", "container_tokens": "x"}}, [
            "files.tmp: 'tmp' is a name of YARN's own in the working directory; give the file another: NAME=PATH",
            "files.container_tokens: 'container_tokens' is a name of YARN's own in the working directory; give the file "
            "another: NAME=PATH"]),
        ({"script": "/x/.ytf.zip"}, [
            "script: '.ytf.zip' can't be a file name in the container: no '/' in it, and no '.skein' or '.ytf' first"]),
        ({"files": {"n" * 256: "x"}}, [
            f"files.{'n' * 256}: the file name is longer than 255 bytes, or not UTF-8; give the file another: NAME=PATH"]),
        ({"environment": "venv:///tf", "docker": {"runtime": "nvidia", "tmpfs": ["/dev/shm"]}}, [
            "docker.runtime: needs an image: environment docker://IMAGE",
            "docker.tmpfs: needs an image: environment docker://IMAGE"]),
        ({"files": {"a": "hdfs:///x/$(y)"}, "environment": "docker://x", "input": "/a`b", "user": "CORP\\ann"}, [
            "files.a: YARN can't link 'hdfs:///x/$(y)' on the nodes; rename it: no double quote, $, backtick, backslash, "
            "{{ or control character in its path, no colon in its last part, and at most 240 bytes of UTF-8 there",
            *(f"{path}: {text!r} would be a part of YARN's launch script, where bash expands it; give one without double "
              "quote, $, backtick, backslash, {{ and control characters"
              for path, text in (("user", "CORP\\ann"), ("input", "/a`b")))]),
        *(({"environment": "docker://x", name: path}, [
            f"{name}: YARN can't mount {mounted!r} into a Docker container: no comma and no colon in the path, and not the "
            "whole disk"])
          for name, path, mounted in (("input", "/data/a,b", "/data/a,b"), ("output", "file:///a:b", "/a:b"),
                                      ("input", "/a:b/*.csv", "/a:b"), ("output", "/", "/"))),
        ({"files": {"x": ""}}, ["files.x: the file has no source; give a path or a URI"]),
        ({"env": {"1A": "x"}}, [
            "env.1A: '1A' is not the name of an environment variable; use letters, digits and _, no digit first"]),
        ({"env": {"YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "bridge"}}, [
            "env.YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK: YARN reads this variable before a task has its own; give "
            "docker_image, docker_runtime, docker_tmpfs or docker_delayed_removal. The network is always host"]),
        ({"env": {"TF_CONFIG": "x"}}, ["env.TF_CONFIG: tf_yarn_ops sets this variable for the tasks; use another name"]),
        ({"env": {"DTF_TASK_INDEX": "x"}},
         ["env.DTF_TASK_INDEX: tf_yarn_ops sets this variable for the tasks; use another name"]),
        ({"env": {"A": "x" * 130000}}, ["env.A: the value is longer than 120 KiB, more than Linux passes to a process"]),
        ({"priority": -1, "am_vcores": 0, "queue": 3}, [
            "queue: 3 is not a text", "priority: -1 is not a whole number of at least 0",
            "am_vcores: 0 is not a whole number of at least 1"]),
    ],
)  # fmt: skip
def test_faults_of_a_job_are_all_named(values, messages):
    assert faults_of(**values) == messages


def test_faults_of_the_whole_come_together():
    assert len(faults_of(tasks={"ps": TaskSpec()}, success="chief", tensorboard=TensorBoard(), tags=["ü"])) == 4


@pytest.mark.parametrize("number", [10**5000, "9" * 5000, 10**20], ids=["int", "text", "21"])
@pytest.mark.parametrize("values", [
    lambda number: {"priority": number}, lambda number: {"am_memory": number}, lambda number: {"deadlines": {"queue": number}},
    lambda number: {"tasks": {"worker": {"instances": number}}},
    lambda number: {"restart": {"retry_exit_codes": [number]}},
], ids=["count", "memory", "seconds", "instances", "codes"])  # fmt: skip
def test_a_number_that_python_does_not_convert_is_a_fault(values, number):
    [fault] = faults_of(**values(number))
    assert fault.endswith(": the number has too many digits")


def test_index_out_of_range():
    with pytest.raises(SpecInvalid, match=r"indices\.2: 2 is out of range; there are tasks 0 to 1"):
        TaskSpec(instances=2, indices={2: Resources()})


NESTED = {
    "tasks": {"worker": {"instances": "2", "memory": "8 GiB", "indices": {"0": {"vcores": 2}}}, "ps": 1, "master": None},
    "deadlines": {"queue": 5}, "restart": {"mode": "task"}, "acls": {"view_users": "ann"},
    "environment": "venv:///x", "tensorboard": True, "output": "/o",
}  # fmt: skip


def test_nested_values_are_converted():
    spec = job(**NESTED)
    assert list(spec.tasks) == ["worker", "ps", "chief"] and all(
        isinstance(task, TaskSpec) for task in spec.tasks.values()
    )
    assert spec.tasks["worker"].resources_of(0) == Resources(memory=8192, vcores=2)
    assert spec.deadlines == Deadlines(queue=5) and spec.restart == RestartPolicy("task")
    assert spec.environment == Environment("venv", "/x") and spec.tensorboard == TensorBoard()
    assert spec.acls.view_users == ("ann",)
    assert JobSpec.from_dict(spec.to_dict()) == spec == dataclasses.replace(spec)


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        (
            {"tasks": {"worker": {"memory": "x", "instances": 0, "colour": 1}}},
            ["tasks.worker.colour", "tasks.worker.instances", "tasks.worker.memory"],
        ),
        (
            {"tasks": {"worker": {"memory": "x", "indices": {0: {"gpus": -1}, 1: 3}}}},
            ["tasks.worker.memory", "tasks.worker.indices.0.gpus", "tasks.worker.indices.1"],
        ),
        ({"tasks": {"worker": "many"}}, ["tasks.worker"]),
        ({"tasks": ["worker"]}, ["tasks"]),
        (
            {"deadlines": {"queue": -1, "heartbeat": "x"}, "restart": {"mode": "no"}, "acls": {"view_users": 3}},
            ["restart.mode", "deadlines.queue", "deadlines.heartbeat", "acls.view_users"],
        ),
        ({"deadlines": 5, "restart": "task", "acls": "ann"}, ["restart", "deadlines", "acls"]),
        ({"restart": {"max_restarts": 2}}, ["restart.max_restarts"]),
        ({"environment": 3, "tensorboard": "yes"}, ["environment", "tensorboard"]),
        ({"environment": "venv://x", "tensorboard": {"memory": 0}}, ["environment", "tensorboard.memory"]),
        ({"files": {"a/b": "x", "c": "", 3: "y"}}, ["files.a/b", "files.c", "files.3"]),
        ({"env": {"1A": "x", "TF_CONFIG": "y", "B": None}}, ["env.1A", "env.TF_CONFIG", "env.B"]),
        ({"queue": 3, "tags": ["x"] * 8, "success": "chief", "command": None}, ["queue", "command", "success", "tags"]),
    ],
)
def test_every_fault_has_the_path_of_its_value(values, paths):
    with pytest.raises(SpecInvalid) as error:
        job(**values)
    assert [fault.path for fault in error.value.faults] == paths


@pytest.mark.parametrize(
    ("scheme", "location"), [("magic", "/x"), ("venv", "x"), ("python", ""), ("archive", "x.rar"), (1, "x")]
)
def test_an_environment_that_can_not_be(scheme, location):
    with pytest.raises(SpecInvalid):
        Environment(scheme, location)

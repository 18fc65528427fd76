"""`JobSpec`: complete and valid once it exists."""

import dataclasses

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import Resources, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


def job(**values):
    return JobSpec(**{"tasks": {"worker": TaskSpec(instances=2)}, "command": "python train.py", **values})


def faults_of(**values):
    with pytest.raises(SpecInvalid) as error:
        job(**values)
    return list(error.value.faults)


def test_defaults_are_the_seeds():
    spec = job()
    assert (spec.name, spec.queue, spec.success) == ("TensorFlow", "default", "all_workers")
    assert spec.tasks["worker"].resources(1) == Resources(memory=8192, vcores=1)


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
    assert (task.resources(0).memory, task.resources(1).memory, task.resources(1).vcores) == (1024, 4096, 2)


def test_roles_come_from_the_table_unless_the_task_says_otherwise():
    assert TaskSpec().role("ps") == (True, False, True)
    assert TaskSpec().role("evaluator") == (False, True, True)
    assert TaskSpec().role("anything") == (True, True, True)
    assert TaskSpec(fatal=False).role("evaluator") == (False, True, False)


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"command": " "}, ["command: the command is empty"]),
        ({"command": None}, ["tasks: worker has no command, neither its own nor the job's"]),
        ({"command": "x\0y"}, ["command: 'x\\x00y' holds a NUL character, which no process can be given"]),
        ({"command": "x" * 130000}, ["command: the command is longer than 120 KiB; put it into a script"]),
        ({"tasks": {}}, ["tasks: there are none; give at least one task type, for example worker:1"]),
        ({"tasks": {"ps": TaskSpec()}}, ["tasks: nothing ends the job: ps run for ever; add a chief or a worker"]),
        ({"tasks": {"wörker": TaskSpec()}},
         ["tasks: 'wörker' is not a task type; use letters, digits, '-' and '_', a letter first"]),
        ({"tasks": {"master": TaskSpec(), "chief": TaskSpec()}},
         ["tasks: chief is named twice; chiefworker and master are other spellings of it"]),
        ({"tasks": {"worker": TaskSpec(), "tensorboard": TaskSpec()}},
         ["tasks: tensorboard is added by the option tensorboard, it can't be requested as a type"]),
        ({"tasks": {"worker": TaskSpec(instances=9000)}},
         ["tasks: 9000 tasks make a TF_CONFIG of more than 120 KiB"]),
        ({"success": "cheif"}, ["success: 'cheif' is not one of all_workers, chief (did you mean 'chief'?)"]),
        ({"success": "chief"}, ["success: chief needs a task of type chief"]),
        ({"tensorboard": TensorBoard()}, ["tensorboard: needs output, the folder that TensorBoard reads"]),
        ({"tags": ["a"] * 8}, ["tags: 8 given, at most 7 allowed"]),
        ({"tags": ["ü", ""]}, ["tags: 'ü' is not ASCII of 1 to 100 characters",
                               "tags: '' is not ASCII of 1 to 100 characters"]),
        ({"report_log_tail": 9000}, ["report_log_tail: 9000 is more than 8192 characters"]),
        ({"archives": {"data": "data.rar"}}, ["archives: 'data.rar' is not one of .tar.gz, .tgz, .zip"]),
        ({"files": {"train.py": "a.py"}, "script": "b/train.py"}, ["files: 'train.py' is the name of two files"]),
        ({"files": {"a/b": "x"}}, ["files: 'a/b' can't be a file's name in the container: no '/', no '.skein' or "
                                   "'.ytf' first"]),
        ({"files": {"x": ""}}, ["files: 'x' has no source"]),
        ({"env": {"1A": "x"}}, ["env: '1A' is not the name of an environment variable"]),
        ({"env": {"TF_CONFIG": "x"}}, ["env: TF_CONFIG would be overwritten: the tasks get it from tf_yarn_ops"]),
        ({"env": {"DTF_TASK_INDEX": "x"}},
         ["env: DTF_TASK_INDEX would be overwritten: the tasks get it from tf_yarn_ops"]),
        ({"env": {"A": "x" * 130000}}, ["env: A is longer than 120 KiB, more than Linux hands to a process"]),
        ({"priority": -1, "am_vcores": 0, "queue": 3}, [
            "queue: 3 is not a text", "priority: -1 is not a whole number of at least 0",
            "am_vcores: 0 is not a whole number of at least 1"]),
    ],
)  # fmt: skip
def test_faults_of_a_job_are_all_named(values, messages):
    assert faults_of(**values) == messages


def test_faults_of_the_whole_come_together():
    assert len(faults_of(tasks={"ps": TaskSpec()}, success="chief", tensorboard=TensorBoard(), tags=["ü"])) == 4


def test_index_out_of_range():
    with pytest.raises(SpecInvalid, match="indices: 2 is out of range; there are tasks 0 to 1"):
        TaskSpec(instances=2, indices={2: Resources()})

"""From options to a job: the same function for every door, with the exact words for what can't be one."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.request import OPTION_NAMES, build_job, find_job_warnings
from tf_yarn_ops.job.spec import JobSpec


@pytest.mark.parametrize(
    ("options", "document"),
    [
        ({"cluster_requirement": "ps:2,worker:4"},
         {"tasks": {"ps": {"instances": 2}, "worker": {"instances": 4}}}),
        ({"cluster_requirement": "ps:1,worker:2", "task_vcores": ["2", "worker:4", "worker[1]:8"]},
         {"tasks": {"ps": {"vcores": 2}, "worker": {"instances": 2, "vcores": 4, "indices": {1: {"vcores": 8}}}}}),
        ({"cluster_requirement": "worker:2", "task_memory": "4096,worker[0]:8 GiB", "task_gpus": {"worker": 1}},
         {"tasks": {"worker": {"instances": 2, "memory": 4096, "gpus": 1, "indices": {0: {"memory": 8192}}}}}),
        ({"cluster_requirement": "worker:1", "tensorboard": True, "output": "/o", "tensorboard_memory": "4g"},
         {"tasks": {"worker": {}}, "output": "/o", "tensorboard": {"memory": 4096}}),
        ({"cluster_requirement": "worker:1", "docker_image": "tf:2"},
         {"tasks": {"worker": {}}, "environment": "docker://tf:2"}),
        ({"cluster_requirement": "chief:1,worker:1", "command": ["worker=a=b"], "node_label": ["worker:gpu", "fast"]},
         {"tasks": {"chief": {}, "worker": {"command": "a=b", "node_label": "gpu"}}, "node_label": "fast"}),
        ({"cluster_requirement": "worker:1", "env": ["A=b=c", "E="], "file": ["/x/data.csv", "b=c/d"], "archive": ["e.zip"]},
         {"tasks": {"worker": {}}, "env": {"A": "b=c", "E": ""}, "files": {"data.csv": "/x/data.csv", "b": "c/d"},
          "archives": {"e.zip": "e.zip"}}),
        ({"cluster_requirement": "worker:1", "restart": "task", "max_restarts": "5", "fatal_exit_codes": "3,4"},
         {"tasks": {"worker": {}}, "restart": {"mode": "task", "max_restarts": 5, "fatal_exit_codes": [3, 4]}}),
        ({"cluster_requirement": "worker:1", "queue_timeout": 9, "stop_grace": "1.5", "tag": ["a", "b"]},
         {"tasks": {"worker": {}}, "deadlines": {"queue": 9.0, "stop_grace": 1.5}, "tags": ["a", "b"]}),
    ],
)  # fmt: skip
def test_options_make_a_job(options, document):
    job = build_job({"task_command": "x", **options})
    assert job == JobSpec.from_dict({"command": "x", **document})


FILE = {
    "command": "from the file", "queue": "low", "env": {"A": "1", "B": "2"},
    "tasks": {"worker": {"instances": 3, "vcores": 2, "memory": 1024, "indices": {"1": {"vcores": 4, "memory": 2048}}},
              "ps": 1},
    "deadlines": {"heartbeat": 30},
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, lambda job: (job.queue, job.tasks["worker"].resources_of(1).vcores) == ("low", 4)),
        ({"queue": "high", "task_command": "own"}, lambda job: (job.queue, job.command) == ("high", "own")),
        ({"env": "B=3"}, lambda job: job.env == {"A": "1", "B": "3"}),
        ({"cluster_requirement": "worker:2"}, lambda job: list(job.tasks) == ["worker"]
         and job.tasks["worker"].vcores == 2 and job.tasks["worker"].instances == 2),
        ({"task_vcores": "8"}, lambda job: {job.tasks["worker"].resources_of(i).vcores for i in range(3)} == {8}
         and job.tasks["ps"].vcores == 8 and job.tasks["worker"].resources_of(1).memory == 2048),
        ({"task_vcores": "worker[2]:8"}, lambda job: [job.tasks["worker"].resources_of(i).vcores for i in range(3)] == [2, 4, 8]),
        ({"total_timeout": 5}, lambda job: (job.deadlines.heartbeat, job.deadlines.total) == (30, 5)),
    ],
)  # fmt: skip
def test_options_override_a_file(options, seen):
    before = json.dumps(FILE)
    assert seen(build_job(options, FILE))
    assert json.dumps(FILE) == before


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({}, ["cluster_requirement: missing; say which tasks the job has, for example ps:2,worker:4"]),
        ({"cluster_requirement": "worker:1", "task_command": ""}, ["task_command: the command is empty"]),
        ({"cluster_requirement": "worker:1", "task_memroy": 3}, ["task_memroy: unknown option (did you mean 'task_memory'?)"]),
        ({"cluster_requirement": "worker:1", "heartbeat_timeout": 3},
         ["heartbeat_timeout: 3 is too short; give at least 5 seconds, or 0 for no limit"]),
        ({"cluster_requirement": "worker:1", "restart": "often"},
         ["restart: 'often' is not one of never, task, cluster"]),
        ({"cluster_requirement": "worker:1", "env": ["A", "B=1", "B=2"]},
         ["env, item 1: expected NAME=VALUE", "env 'B': given twice; give it once"]),
        ({"cluster_requirement": "worker:1", "success": True}, ["success: True is not a text"]),
        ({"cluster_requirement": "worker:1", "retry_exit_codes": "1²"}, ["retry_exit_codes: '1²' is not a whole number of at least 1"]),
        ({"cluster_requirement": "worker:1", "task_memory": "worker[²]:4g"},
         ["task_memory 'worker[²]:4g': index '²' is out of range; worker has 0 to 0"]),
        ({"cluster_requirement": "worker:1", "environment": "hdfs://[x/env.zip"},
         ["environment: 'hdfs://[x/env.zip' is not an environment; give python:///path/to/python3, venv:///folder, "
          "conda:///folder, docker://image, requirements://requirements.txt, or an archive (.tar.gz, .tgz, .zip)"]),
        ({"cluster_requirement": "worker:1", "file": ["a=hdfs://[x/a"], "script": "hdfs://[x/b"},
         ["file.a: 'hdfs://[x/a' is neither a path nor a URI: Invalid IPv6 URL",
          "script: 'hdfs://[x/b' is neither a path nor a URI: Invalid IPv6 URL"]),
        ({"cluster_requirement": "worker:1", "command": ["wroker=x"]},
         ["command: there is no task type 'wroker' in the request, which has worker (did you mean 'worker'?)"]),
        ({"cluster_requirement": "wroker:1,PS:1,worker2:1,gateway:1"},
         ["tasks.wroker: task type 'wroker' looks like a misspelt 'worker'; correct it, or name it in custom_type if it is meant",
          "tasks.PS: task type 'PS' looks like a misspelt 'ps'; correct it, or name it in custom_type if it is meant"]),
        ({"cluster_requirement": "wroker:1,PS:1", "custom_type": ["PS"]},
         ["tasks.wroker: task type 'wroker' looks like a misspelt 'worker'; correct it, or name it in custom_type if it is meant"]),
        ({"cluster_requirement": "worker:1", "docker_image": "x", "environment": "venv:///x"},
         ["docker_image: environment also says where the program runs; give one of them"]),
        ({"cluster_requirement": "worker:1", "tensorboard_memory": "1g"},
         ["tensorboard_memory: the request has no TensorBoard; set tensorboard too"]),
        ({"cluster_requirement": "worker:1", "tensorboard": "maybe", "tag": [["a"]], "env": {"A": ["a secret"]}},
         ["tag: a list is neither a text nor a number", "tensorboard: 'maybe' is neither true nor false",
          "env.A: a list is neither a text nor a number"]),
        ({"cluster_requirement": "worker:1", "tensorboard": True},
         ["tensorboard: needs output, the folder that TensorBoard reads"]),
        ({"cluster_requirement": "ps:0,worker:2", "task_memory": ["x", "wroker:1"], "priority": "high", "stop_grace": "-1"}, [
            "cluster_requirement, item 1 'ps:0': '0' is not a whole number of at least 1",
            "task_memory 'x': 'x' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)",
            "task_memory 'wroker:1': there is no task type 'wroker' in the request, which has ps, worker (did you mean 'worker'?)",
            "priority: 'high' is not a whole number of at least 0",
            "stop_grace: '-1' is not a number of seconds of at least 0",
        ]),
    ],
)  # fmt: skip
def test_all_faults_of_a_request_are_named_by_their_options(options, messages):
    with pytest.raises(SpecInvalid) as error:
        build_job({"task_command": "x", **options})
    assert list(map(str, error.value.faults)) == messages


@pytest.mark.parametrize(
    ("document", "options", "messages"),
    [
        ({"tasks": {"worker": {"instances": 2, "indices": {0: "16g"}}}}, {}, ["tasks.worker.indices.0: "]),
        ({"tasks": {"worker": 1}, "env": ["PASSWORD=hunter2"]}, {"env": {"A": "1"}}, ["env: a list is not a mapping"]),
        (
            {"tasks": {"worker": 1}, "env": ["PASSWORD=hunter2"]},
            {},
            ["env: a list is not a mapping of variables to texts"],
        ),
        (
            {"tasks": {"worker": 1}, "env": {"PASSWORD": "hunter2\0"}},
            {},
            ["env.PASSWORD: the value contains a NUL character"],
        ),
        ({"tasks": {"worker": 1}, "env": {"PASSWORD": None}}, {}, ["env.PASSWORD: the variable has no value; give ''"]),
        ({"tasks": {"worker": 1}, "env": {"API_KEY": "***"}}, {}, ["env.API_KEY: the value was masked by --dry_run"]),
        (
            {"tasks": {"worker": 1}, "env": {}},
            {"env": ["PASSWORD=hunter2", "PASSWORD=hunter3"]},
            ["env 'PASSWORD': given twice"],
        ),
        (
            {"tasks": [{"worker": {"env": {"PASSWORD": "hunter2"}}}]},
            {},
            ["tasks: a list is not a mapping of task types"],
        ),
        (
            {"tasks": {"worker": [{"env": {"PASSWORD": "hunter2"}}]}},
            {},
            ["tasks.worker: a list is not a mapping of keys"],
        ),
        ({"tasks": {"worker": 1}, "deadlines": "x"}, {"queue_timeout": 60}, ["deadlines: a str is not a mapping"]),
        (
            {"tasks": {"chief": {"memory": "1g"}, "master": {"memory": "2g"}}},
            {},
            ["tasks.chief: the chief is given twice"],
        ),
        ({"tasks": {"worker": 0}}, {}, ["tasks.worker.instances: 0"]),
        (
            {"tasks": {"worker": "hunter2"}},
            {"cluster_requirement": "worker:2"},
            ["tasks.worker: a str is not a mapping"],
        ),
        ({"tasks": ["hunter2"]}, {"cluster_requirement": "worker:2"}, ["tasks: a list is not a mapping"]),
        (
            {"tasks": {"worker": {"instances": 2, "indices": {"0": "hunter2"}}}},
            {"task_memory": "worker[0]:2g"},
            ["tasks.worker.indices.0: a str is not a mapping"],
        ),
        (
            {"tasks": {"worker": {"instances": 2, "indices": "hunter2"}}},
            {"task_memory": "worker[0]:2g"},
            ["tasks.worker.indices: a str is not a mapping"],
        ),
    ],
)
def test_nothing_of_a_document_is_lost_and_no_variable_is_shown(document, options, messages):
    with pytest.raises(SpecInvalid) as error:
        build_job({"task_command": "x", **options}, document)
    assert len(error.value.faults) == len(messages), error.value.faults
    for fault, message in zip(map(str, error.value.faults), messages, strict=True):
        assert fault.startswith(message) and "hunter" not in fault


def test_numbers_may_come_as_texts_and_flags_as_yaml_writes_them():
    """A rendered template of Airflow is a text."""
    spec = build_job(
        {"task_command": "x", "task_memory": "worker[3]:8g"},
        {"tasks": {"worker": {"instances": "4"}}, "env": {"FLAG": True, "N": 3}},
    )
    assert spec.tasks["worker"].instances == 4 and spec.tasks["worker"].resources_of(3).memory == 8192
    assert spec.env == {"FLAG": "true", "N": "3"}


def test_pattern_with_brackets_is_a_valid_path():
    assert (
        find_job_warnings(
            build_job({"task_command": "x", "cluster_requirement": "worker:1", "input": "hdfs://data[0-9]/x"})
        )
        == []
    )


@pytest.mark.parametrize(
    "command, warned",
    [
        ("python ", True),
        ("python $DTF_TASK_SCRIPT", False),
        ("python ${DTF_TASK_SCRIPT}", False),
        ("python train.py --fast", False),
    ],
)
def test_script_that_no_command_names_is_doubted(command, warned):
    doubts = find_job_warnings(
        build_job({"task_command": command, "cluster_requirement": "worker:1", "script": "jobs/train.py"})
    )
    assert [doubt.startswith("script: no command names 'train.py' or DTF_TASK_SCRIPT") for doubt in doubts] == [
        True
    ] * warned


@pytest.mark.parametrize(
    "options, doubts",
    [
        ({}, ["script: missing, although a command names DTF_TASK_SCRIPT, which is empty without it"]),
        ({"script": "train.py"}, []),
    ],
)
def test_command_that_names_no_given_script_is_doubted(options, doubts):
    job = {"task_command": "python ${DTF_TASK_SCRIPT}", "cluster_requirement": "worker:1", **options}
    assert find_job_warnings(build_job(job)) == doubts


def test_memory_without_unit_that_looks_like_gib_is_doubted():
    job = build_job({"task_command": "x", "cluster_requirement": "worker:2,ps:1", "task_memory": ["worker:4", "ps:64"]})
    assert find_job_warnings(job) == ["task_memory: worker has 4 MiB, in which no Python starts; for GiB write 4g"]


@pytest.mark.parametrize(
    "options, doubted",
    [
        ({}, True),
        ({"success": "chief"}, False),
        ({"command": ["worker=ytf-server", "ps=ytf-server"]}, False),
        ({"cluster_requirement": "chief:1,worker:2"}, False),
        ({"cluster_requirement": "worker:2,ps:1"}, False),
    ],
)
def test_workers_beside_chief_and_ps_may_only_serve(options, doubted):
    job = build_job({"task_command": "x", "cluster_requirement": "chief:1,worker:2,ps:1"} | options)
    assert [doubt.partition(":")[0] for doubt in find_job_warnings(job)] == ["success"] * doubted


def test_workers_declared_to_end_raise_no_warning():
    tasks = {"chief": 1, "worker": {"instances": 2, "awaited": True}, "ps": 1}
    assert find_job_warnings(build_job({"task_command": "x"}, {"tasks": tasks})) == []


def test_cluster_requirement_may_be_a_mapping():
    job = build_job({"task_command": "x", "cluster_requirement": {"ps": 1, "worker": "4"}})
    assert {name: task.instances for name, task in job.tasks.items()} == {"ps": 1, "worker": 4}


@pytest.mark.parametrize(
    "given, held",
    [
        (None, (None, None)),
        ("false", (False, False)),
        ("worker=false", (None, False)),
        (["false", "ps=true"], (True, False)),
        (False, (False, False)),
        ({"ps": False}, (False, None)),
    ],
)
def test_hold_port_is_for_all_tasks_or_those_of_a_type(given, held):
    job = build_job({"task_command": "x", "cluster_requirement": "ps:1,worker:1", "hold_port": given})
    assert (job.tasks["ps"].hold_port, job.tasks["worker"].hold_port) == held


@pytest.mark.parametrize(
    "given, says",
    [("no", "hold_port 'no': expected true, false or TYPE=false"), ("wroker=false", "did you mean 'worker'")],
)
def test_invalid_hold_port_is_rejected(given, says):
    with pytest.raises(SpecInvalid) as error:
        build_job({"task_command": "x", "cluster_requirement": "worker:1", "hold_port": given})
    assert says in str(error.value)


def test_command_of_one_task_type_may_name_the_script():
    job = build_job(
        {
            "task_command": "serve",
            "cluster_requirement": "ps:1,worker:1",
            "script": "train.py",
            "command": ["worker=python train.py"],
        }
    )
    assert find_job_warnings(job) == []


#: What a person, or a template, may write for an option.
GIVEN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(
        ["worker:1", "ps:1,worker:2", "worker[0]:8g", "master:1,chief:1", "A=1", "=", "venv:///x", "task", "a/b", "9" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["worker", "A", "", "a/b"]), inner, max_size=2),
    max_leaves=4)  # fmt: skip
TASKS = st.sampled_from([None, 3, ["worker"], {"worker": 2}, {"worker": {"indices": {"0": {"vcores": 2}}}}, {"worker": "2"},
                         {"master": 1, "chief": {"indices": 3}}, {"worker": {"indices": {"x": None}}}])  # fmt: skip


@examples(400)
@given(st.dictionaries(st.sampled_from(OPTION_NAMES), GIVEN, max_size=4), TASKS, st.booleans())
def test_any_options_over_any_document_are_a_job_or_have_faults_with_paths(options, tasks, plain):
    base = {"task_command": "x", "cluster_requirement": "worker:2"} if plain else {"task_command": "x"}
    document = None if tasks is None else {"tasks": tasks}
    try:
        assert isinstance(build_job({**base, **options}, document), JobSpec)
    except SpecInvalid as error:
        assert error.faults and all(fault.path and str(fault).startswith(fault.path) for fault in error.faults)


@pytest.mark.parametrize("given", [["a=1", "ps:b/c=2"], {"a": 1, "ps:b/c": "2"}])
def test_resource_is_for_all_tasks_or_those_of_a_type(given):
    job = build_job({"task_command": "x", "cluster_requirement": "ps:1,worker:1", "resource": given})
    assert (job.tasks["ps"].resources, job.tasks["worker"].resources) == ({"a": 1, "b/c": 2}, {"a": 1})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a", "expected [TYPE:]NAME=AMOUNT"),
        ("wroker:a=1", "did you mean 'worker'"),
        ("a=x", "'x' is not a whole number"),
    ],
)
def test_invalid_resource_is_rejected(given, says):
    with pytest.raises(SpecInvalid, match=re.escape(says)):
        build_job({"task_command": "x", "cluster_requirement": "worker:1", "resource": given})

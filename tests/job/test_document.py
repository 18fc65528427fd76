"""Documents to jobs and back: round trips for any job, the exact words for what can't be read."""

import json
import os
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples, jobs
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.document import read_document
from tf_yarn_ops.job.parts import Resources, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


@examples(50)
@given(jobs())
def test_from_dict_reads_what_to_dict_gives(job):
    document = job.to_dict()
    assert JobSpec.from_dict(document) == job
    assert JobSpec.from_dict(json.loads(json.dumps(document))) == job
    assert JobSpec(**document) == job, "nested values are converted"


@examples(50)
@given(jobs())
def test_from_yaml_reads_what_to_yaml_gives(job):
    assert JobSpec.from_yaml(job.to_yaml()) == job


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(
        ["8 GiB", "venv:///x", "task", "chief", "9" * 5000, "hdfs://[x", 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=3) | st.integers(0, 3) | st.sampled_from(["worker", "memory", "indices", "mode", "queue", "A"]),
        inner, max_size=3),
    max_leaves=8)  # fmt: skip
TASK = st.dictionaries(st.sampled_from([field.name for field in fields(TaskSpec)]), PLAIN, max_size=3)
DOCUMENTS = st.dictionaries(
    st.sampled_from([field.name for field in fields(JobSpec)]), PLAIN, max_size=4
) | st.fixed_dictionaries(
    {
        "tasks": st.dictionaries(
            st.sampled_from(["worker", "master", "chief", "ps", "tensorboard", "1"]), TASK, max_size=3
        )
    }
)


@pytest.mark.slow
@examples(300)
@given(DOCUMENTS)
def test_any_document_is_a_job_or_has_faults_with_paths(document):
    try:
        job = JobSpec.from_dict({"command": "x", **document})
    except SpecInvalid as error:
        assert error.faults and all(fault.path and str(fault).startswith(fault.path) for fault in error.faults)
    else:
        assert JobSpec.from_yaml(job.to_yaml()) == job
    try:
        JobSpec(**document)
    except SpecInvalid as error:
        assert error.faults and all(fault.path for fault in error.faults)


def test_defaults_are_left_out():
    assert JobSpec.from_dict({"tasks": {"worker": 2}, "command": "x"}).to_dict() == {
        "tasks": {"worker": {"instances": 2}}, "command": "x"}  # fmt: skip


def test_reads_what_people_write():
    job = JobSpec.from_yaml("""
command: python train.py
tasks:
  master:
  ps: 2
  worker: {instances: 4, memory: 8 GiB, indices: {0: {vcores: 4}}}
tensorboard: true
output: /out
environment: venv:///opt/tf
restart: {mode: task}
deadlines: {heartbeat: 30}
""")
    assert list(job.tasks) == ["chief", "ps", "worker"]
    assert job.tasks["ps"].instances == 2
    assert job.tasks["worker"].resources_of(0) == Resources(memory=8192, vcores=4)
    assert job.tensorboard == TensorBoard()
    assert str(job.environment) == "venv:///opt/tf"
    assert (job.restart.max_restarts, job.deadlines.heartbeat) == (3, 30)


def faults_of(document):
    with pytest.raises(SpecInvalid) as error:
        JobSpec.from_dict(document)
    return list(map(str, error.value.faults))


WORKER = {"tasks": {"worker": 1}, "command": "x"}


@pytest.mark.parametrize(
    ("document", "messages"),
    [
        (3, ["3 is not a mapping of keys to values"]),
        ({}, ["tasks: there are none; give at least one task type, for example worker:1"]),
        ({"tasks": 3, "command": "x"}, ["tasks: 3 is not a mapping of task types to their settings"]),
        ({"tasks": {"worker": "2"}, "command": "x"}, ["tasks.worker: '2' is a text; write 2 without quotes"]),
        ({**WORKER, "restart": {"mode": "tsk"}}, ["restart.mode: 'tsk' is not one of never, task, cluster (did you mean 'task'?)"]),
        ({**WORKER, "restart": "task"}, ["restart: 'task' is not a mapping of keys to values"]),
        ({**WORKER, "environment": "x"},
         ["environment: 'x' is not an environment; give python:///path/to/python3, venv:///folder, conda:///folder, "
          "docker://image, requirements://requirements.txt, or an archive (.tar.gz, .tgz, .zip)"]),
        ({"tasks": {"master": 1, "chief": 1}, "command": "x"}, ["tasks.chief: the chief is given twice; chiefworker and master are other names of chief"]),
        ({"tasks": {"worker": {"indices": {0: {"memory": "x"}}}}, "command": "x"},
         ["tasks.worker.indices.0.memory: 'x' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)"]),
        ({**WORKER, "tensorboard": {"memory": 0}, "output": "/o"},
         ["tensorboard.memory: 0 is too little memory; give at least 1 MiB"]),
    ],
)  # fmt: skip
def test_faults_of_a_document_are_named_by_their_keys(document, messages):
    assert faults_of(document) == messages


@pytest.mark.parametrize(
    ("document", "beginning"),
    [
        ({**WORKER, "queu": "x"}, "queu: unknown key (did you mean 'queue'?); known: tasks, custom_types, "),
        ({"tasks": {"worker": {"memroy": 1}}, "command": "x"},
         "tasks.worker.memroy: unknown key (did you mean 'memory'?)"),
        ({**WORKER, "deadlines": {"heart": 9}}, "deadlines.heart: unknown key (did you mean 'heartbeat'?)"),
        ({**WORKER, 3: "x"}, "3: unknown key; known: "),
    ],
)  # fmt: skip
def test_unknown_keys_are_refused_with_the_nearest_name(document, beginning):
    (fault,) = faults_of(document)
    assert fault.startswith(beginning)


def test_all_faults_of_a_document_come_together():
    faults = faults_of({"tasks": {"ps": {"memory": "x"}}, "queu": 1, "deadlines": {"heartbeat": 1}, "success": "x"})
    assert len(faults) >= 4


def test_document_that_is_not_yaml_is_refused():
    with pytest.raises(SpecInvalid, match="not YAML, line 1, column 5: expected the node content"):
        JobSpec.from_yaml("a: [")
    with pytest.raises(SpecInvalid, match="a number has more than 400 characters, line 1, column 11"):
        JobSpec.from_yaml(f"priority: {'9' * 5000}")
    with pytest.raises(SpecInvalid, match=r"not YAML, line 2, column \d+: ") as raised:
        JobSpec.from_yaml('env:\n  API_KEY: "hunter2" tail\n')
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "beginning"),
    [
        (None, "spec: 'job.yaml' can't be read: No such file"),
        (b"\xff", "spec: 'job.yaml' can't be read: byte "),
        (b"tasks: {", "spec: 'job.yaml' can't be read: not YAML, line 1, column 9: "),
        (b"- 1", "spec: 'job.yaml' is not a mapping of keys to values; ytf-submit --dry_run prints one"),
        (b"", "spec: 'job.yaml' is not a mapping of keys to values; ytf-submit --dry_run prints one"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_job_is_named(tmp_path, content, beginning):
    if content is not None:
        (tmp_path / "job.yaml").write_bytes(content)
    with pytest.raises(SpecInvalid) as error:
        read_document("job.yaml", tmp_path)
    assert str(error.value.faults[0]).startswith(beginning)
    with pytest.raises(SpecInvalid, match=r"^tf\.spec: "):
        read_document("job.yaml", tmp_path, key="tf.spec")
    with pytest.raises(SpecInvalid, match=r"^spec: '\.' can't be read: it is a folder; name a file$"):
        read_document(".", tmp_path)


def test_the_first_document_of_a_dry_run_is_the_job(tmp_path):
    (tmp_path / "job.yaml").write_text("name: digits\n---\nname: skein\n")
    assert read_document("job.yaml", tmp_path) == {"name": "digits"}


def test_relative_paths_begin_in_the_folder_of_the_file(tmp_path, monkeypatch):
    job = """
        {command: x, script: t.py, environment: "requirements://r.txt", docker: {client_config: c.json, runtime: r},
         files: {a: a.csv, b: /b, c: "hdfs:///c", d: ~/d, e: "${nameNode}/e", f: ""}, archives: {z: z.zip},
         tasks: {worker: 1, ps: {environment: e.zip}}}
    """
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "job.yaml").write_text(job)
    expected = {
        "command": "x",
        "script": "conf/t.py",
        "environment": "requirements://conf/r.txt",
        "docker": {"client_config": "conf/c.json", "runtime": "r"},
        "files": {"a": "conf/a.csv", "b": "/b", "c": "hdfs:///c", "d": "~/d", "e": "${nameNode}/e", "f": ""},
        "archives": {"z": "conf/z.zip"},
        "tasks": {"worker": 1, "ps": {"environment": "conf/e.zip"}},
    }
    assert read_document("conf/job.yaml", tmp_path) == expected
    monkeypatch.setenv("HOME", str(tmp_path))
    at_home = read_document("~/conf/job.yaml")
    assert (at_home["script"], at_home["environment"]) == ("~/conf/t.py", "requirements://~/conf/r.txt")
    rendered = read_document("conf/job.yaml", tmp_path, render=lambda document: {**document, "script": "/elsewhere.py"})
    assert rendered["script"] == "/elsewhere.py"
    monkeypatch.chdir(tmp_path / "conf")
    assert read_document("job.yaml")["script"] == "t.py"
    reader, writer = os.pipe()
    with open(reader), open(writer, "w") as pipe:
        pipe.write("{command: x, script: t.py}")
        pipe.close()
        assert read_document(f"/dev/fd/{reader}")["script"] == "t.py"

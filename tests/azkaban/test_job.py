"""A job from the properties of Azkaban."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.azkaban_keys import ONE, RUN, faults_of, read
from support.doc_tables import tables
from support.hostile import HOSTILE, request_is_plain
from support.strategies import examples
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.keys import ALL_KEYS
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec

JOBS = [
    ({"tf.worker.instances": "2", "tf.command": "run"}, {"command": "run", "tasks": {"worker": 2}}),
    ({"tf.cluster_requirement": "ps:1, worker:2", "tf.command": "run"},
     {"command": "run", "tasks": {"ps": 1, "worker": 2}}),
    ({**RUN, "tf.ps.instances": "0", "tf.ps.memory": "1g"}, {"command": "run", "tasks": {"worker": 1}}),
    ({**RUN, "tf.chiefworker.instances": "1", "tf.chiefworker.memory": "3g"},
     {"command": "run", "tasks": {"worker": 1, "chief": {"memory": 3072}}}),
    ({"tf.worker.instances": "2", "tf.command": "run", "tf.task_memory": "1g", "tf.worker.memory": " 2g ",
      "tf.worker.1.memory": "3 GiB", "tf.worker.vcores": "2", "tf.worker.0.gpus": "1"},
     {"command": "run", "tasks": {"worker": {"instances": 2, "memory": 2048, "vcores": 2, "indices": {
         0: {"gpus": 1}, 1: {"memory": 3072}}}}}),
    ({"tf.worker.instances": "1", "tf.worker.command": "own", "tf.worker.node_label": "gpu", "tf.node_label": "fast",
      "tf.worker.env.A": "1", "tf.worker.awaited": "True", "tf.worker.fatal": "no", "tf.worker.in_cluster": "false"},
     {"tasks": {"worker": {"command": "own", "node_label": "gpu", "env": {"A": "1"}, "awaited": True, "fatal": False,
                           "in_cluster": False}}, "node_label": "fast"}),
    ({**RUN, "tf.input": "/in", "tf.output": "/out", "tf.tensorboard": "true", "tf.tensorboard_memory": "4g",
      "tf.tensorboard_linger": "60"},
     {"command": "run", "tasks": {"worker": 1}, "input": "/in", "output": "/out",
      "tensorboard": {"memory": 4096, "linger": 60}}),
    ({**RUN, "tf.restart": "task", "tf.worker.environment": "venv:///gpu", "tf.worker.max_restarts": "2",
      "tf.worker.max_container_losses": "0", "tf.worker.resources.yarn.io/fpga": "1",
      "tf.worker.after": "a, b", "tf.a.instances": "1", "tf.b.instances": "1"},
     {"command": "run", "restart": {"mode": "task"}, "tasks": {"worker": {
         "instances": 1, "environment": "venv:///gpu", "max_restarts": 2, "max_container_losses": 0,
         "resources": {"yarn.io/fpga": 1}, "after": ["a", "b"]}, "a": 1, "b": 1}}),
    ({**RUN, "tf.restart": "cluster", "tf.max_restarts": "5", "tf.retry_exit_codes": "1, 2", "tf.fatal_exit_codes": "3",
      "tf.max_container_losses": "9", "tf.restart_backoff": "2", "tf.allocation_retries": "4", "tf.memory_growth": "1.5"},
     {"command": "run", "tasks": {"worker": 1}, "restart": {
         "mode": "cluster", "max_restarts": 5, "retry_exit_codes": [1, 2], "fatal_exit_codes": [3],
         "max_container_losses": 9, "backoff": 2, "allocation_retries": 4,
         "memory_growth": 1.5}}),
    ({**RUN, **{f"tf.{name}_timeout": "9" for name in ("queue", "allocation", "registration", "heartbeat", "execution",
                                                       "total")}, "tf.stop_grace": "1.5", "tf.evaluator_grace": "60"},
     {"command": "run", "tasks": {"worker": 1}, "deadlines": {
         "queue": 9, "allocation": 9, "registration": 9, "heartbeat": 9, "execution": 9, "total": 9,
         "stop_grace": 1.5, "evaluator_grace": 60}}),
    ({**RUN, "tf.files.2": "b=/x/a", "tf.files.1": "train.py", "tf.archives.1": "e.zip", "tf.script": "train.py"},
     ["files: 'train.py'"]),
    ({**RUN, "tf.files.10": "c=/x", "tf.files.9": "train.py", "tf.archives.1": "e=hdfs:///e.zip",
      "tf.environment": "venv:///v", "tf.queue": "q", "tf.priority": "3", "tf.tags": "a, b", "tf.name": "n m",
      "tf.file_systems": "hdfs://a,hdfs://b", "tf.custom_types": "wroker, PS", "tf.am_memory": "2g", "tf.am_vcores": "2", "tf.report_log_tail": "0"},
     {"command": "run", "tasks": {"worker": 1}, "files": {"train.py": "train.py", "c": "/x"},
      "archives": {"e": "hdfs:///e.zip"}, "environment": "venv:///v", "queue": "q", "priority": 3, "tags": ["a", "b"],
      "name": "n m", "file_systems": ["hdfs://a", "hdfs://b"], "custom_types": ["wroker", "PS"], "am_memory": 2048, "am_vcores": 2,
      "report_log_tail": 0}),
    ({**RUN, "tf.docker_image": "tf:2", "azkaban.job.id": "train"},
     {"command": "run", "tasks": {"worker": 1}, "environment": "docker://tf:2", "name": "train"}),
    ({**RUN, "azkaban.job.id": "train", "azkaban.flow.flowid": "nightly", "azkaban.flow.projectname": "My Ads"},
     {"command": "run", "tasks": {"worker": 1}, "name": "My Ads.nightly.train"}),
    ({**RUN, "tf.queue": "", "tf.output": "", "tf.env.EMPTY": ""},
     {"command": "run", "tasks": {"worker": 1}, "env": {"EMPTY": ""}}),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "document"), JOBS, ids=range(len(JOBS)))
def test_properties_make_a_job(properties, document, project):
    if isinstance(document, list):
        assert document[0].split(": ")[1] in faults_of(properties, project)[0]
        return
    assert read(properties, project) == JobSpec.from_dict(document)


def test_a_document_of_the_project_is_overridden(project):
    (project / "job.yaml").write_text(
        "command: from the file\nqueue: low\ntasks: {worker: {instances: 3, vcores: 2}, ps: 1}\n"
    )
    job = read(
        {"tf.spec": "job.yaml", "tf.queue": "high", "tf.worker.instances": "2", "tf.worker.memory": "1g"}, project
    )
    assert (job.command, job.queue, job.tasks["ps"].instances) == ("from the file", "high", 1)
    assert (job.tasks["worker"].instances, job.tasks["worker"].vcores, job.tasks["worker"].memory) == (2, 2, 1024)
    only = read({"tf.spec": "job.yaml", "tf.cluster_requirement": "worker:1"}, project)
    assert list(only.tasks) == ["worker"] and only.tasks["worker"].vcores == 2


def test_azkabans_own_keys_are_passed_over(project):
    others = {
        "type": "tensorflow-yarn",
        "retries": "3",
        "azkaban.flow.execid": "1",
        "user.to.proxy": "ann",
        "env.PATH": "/bin",
        "command": "python",
        "tfx.queue": "x",
        "working.dir": "/",
    }
    assert read({**RUN, **others}, project) == read(RUN, project)


def test_outputs_of_an_upstream_training_are_not_input(project):
    said = {"tf.result.reason": "SUCCEEDED", "tf.result.metrics.tf.command": "rm", "tf.result.anything": "x"}
    assert read({**RUN, **said}, project) == read(RUN, project)


FAULTS = [
    ({}, "tf.<type>.instances: missing; say which tasks the job has, for example tf.worker.instances=4"),
    (ONE, "tf.command: missing; worker would have nothing to run: give the job a command, or each of these types its own"),
    ({**ONE, "tf.args": "x"}, "tf.args: there is no tf.command or tf.entry_point that takes the arguments"),
    ({**RUN, "tf.entry_point": "train.py"}, "tf.command: tf.entry_point also says what runs; give one of them"),
    ({**ONE, "tf.entry_point": "nope.py"},
     "tf.entry_point: there is no file 'nope.py' in the project, nor in tf.source, tf.files or tf.archives"),
    ({**RUN, "tf.source": "nope"}, "tf.source: there is no folder 'nope' in the project"),
    ({**RUN, "tf.que": "x"}, "tf.que: unknown key (did you mean 'tf.queue'?)"),
    ({**RUN, "tf.args.\u00b2": "x"}, "tf.args.\u00b2: unknown key (did you mean 'tf.args.1'?)"),
    ({**RUN, "tf.worker.memroy": "x"}, "tf.worker.memroy: unknown key (did you mean 'tf.worker.memory'?)"),
    ({**RUN, "tf.wroker.memory": "1g"},
     "tf.wroker.memory: there is no task type 'wroker' in the job, which has worker (did you mean 'tf.worker.memory'?)"),
    ({"tf.wroker.instances": "2", "tf.command": "x"},
     "tf.wroker.instances: task type 'wroker' looks like a misspelt 'worker'; correct it, or name it in tf.custom_types if it is "
     "meant"),
    ({**RUN, "tf.worker.7.memory": "1g"}, "tf.worker.7.memory: index '7' is out of range; worker has 0 to 0"),
    ({**RUN, "tf.worker.memory": "8q"},
     "tf.worker.memory: '8q' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)"),
    ({**RUN, "tf.worker.vcores": "0"}, "tf.worker.vcores: '0' is not a whole number of at least 1"),
    ({**RUN, "tf.worker.memory": "1g,2g"}, "tf.worker.memory: '1g,2g' is not a single amount"),
    ({"tf.worker.instances": "many", "tf.command": "x"}, "tf.worker.instances: 'many' is not a whole number of at least 0"),
    ({**RUN, "tf.cluster_requirement": "worker:2"}, "tf.worker.instances: 1, but another key says 2; give the number once"),
    ({"tf.command": "x", "tf.cluster_requirement": "worker"},
     "tf.cluster_requirement, item 1 'worker': expected task_type:instances, for example ps:2,worker:4"),
    ({"tf.ps.instances": "1", "tf.command": "x"},
     "tf.<type>.instances: the job would never end, because ps run until the job ends; add a chief or a worker"),
    ({**RUN, "tf.env.instances": "1", "tf.files.instances": "2"},
     "tf.files.instances: 'files' can't be a task type here, because tf.files is the beginning of other keys"),
    ({**RUN, "tf.queue_timeout": "soon"}, "tf.queue_timeout: 'soon' is not a number of seconds of at least 0"),
    ({**RUN, "tf.success": "chef"}, "tf.success: 'chef' is not one of all_workers, chief (did you mean 'chief'?)"),
    ({**RUN, "tf.success": "chief"}, "tf.success: chief needs a task of type chief"),
    ({**RUN, "tf.restart": "always", "tf.max_restarts": "3"},
     "tf.restart: 'always' is not one of never, task, cluster"),
    ({**RUN, "tf.retry_exit_codes": "1,x"}, "tf.retry_exit_codes: 'x' is not a whole number of at least 1"),
    ({**RUN, "tf.tensorboard": "maybe"}, "tf.tensorboard: 'maybe' is neither true nor false"),
    ({**RUN, "tf.tensorboard": "true"}, "tf.tensorboard: needs tf.output, the folder that TensorBoard reads"),
    ({**RUN, "tf.tensorboard_memory": "1g"},
     "tf.tensorboard_memory: the request has no TensorBoard; set tf.tensorboard too"),
    ({**RUN, "tf.dry_run": "perhaps"}, "tf.dry_run: 'perhaps' is neither true nor false"),
    ({**RUN, "tf.environment": "conda"},
     "tf.environment: 'conda' is not an environment; give python:///path/to/python3, venv:///folder, conda:///folder, "
     "docker://image, requirements://requirements.txt, or an archive (.tar.gz, .tgz, .zip)"),
    ({**RUN, "tf.environment": "venv:///v", "tf.docker_image": "x"},
     "tf.docker_image: tf.environment also says where the program runs; give one of them"),
    ({**RUN, "tf.env.1x": "a"},
     "tf.env.1x: '1x' is not the name of an environment variable; use letters, digits and _, no digit first"),
    ({**RUN, "tf.env.TF_CONFIG": "a"}, "tf.env.TF_CONFIG: tf_yarn_ops sets this variable for the tasks; use another name"),
    ({**RUN, "tf.worker.env.1x": "a"},
     "tf.worker.env.1x: '1x' is not the name of an environment variable; use letters, digits and _, no digit first"),
    ({**RUN, "tf.files.3": "="}, "tf.files.3: expected NAME=PATH or PATH"),
    ({**RUN, "tf.archives.1": "x.rar"}, "tf.archives.1: 'x.rar' does not end with .tar.gz or .tgz or .zip"),
    ({**RUN, "tf.tags": "a,b,c,d,e,f,g,h"}, "tf.tags: 8 given, at most 6 allowed"),
    ({**RUN, "tf.tags": "ü"}, "tf.tags: 'ü' is not ASCII of 1 to 100 characters"),
    ({**RUN, "tf.priority": "-1"}, "tf.priority: '-1' is not a whole number of at least 0"),
    ({**RUN, "tf.user": "root"},
     "tf.user: a job can't choose its user; where the site allows it, user.to.proxy does"),
    ({**RUN, "tf.input": "/gr\xc3\xbc\xc3\x9fe"},
     "tf.input: '/gr\xc3\xbc\xc3\\x9fe' is UTF-8 that Azkaban has read as ISO-8859-1; in a .job write "
     "/gr\\u00fc\\u00dfe for '/grüße'"),
    ({**RUN, "tf.env.A": "\ud83d"}, "tf.env.A: the value of A holds half of a character; a character beyond FFFF takes two escapes"),
    ({**RUN, "tf.env.A": "\0"}, "tf.env.A: the value of A contains a NUL character, which can't be passed to a process"),
    ({**RUN, "tf.queue": "a", "tony.yarn.queue": "b"}, "tony.yarn.queue: 'b' is not what tf.queue says, 'a'; give one of them"),
    ({**RUN, "tf.env.PASS": "hunter2", "worker_env.PASS": "hunter3"},
     "worker_env.PASS: its PASS is not what tf.env.PASS says; give one of them"),
    ({**RUN, "tony.containers.envs": "PASS=hunter2", "tony.execution.envs": "PASS=hunter3"},
     "tony.execution.envs: its PASS is not what tony.containers.envs says; give one of them"),
    ({**RUN, "tf.worker.env.PASS": "hunter2\xc3\xa4"},
     "tf.worker.env.PASS: the value of PASS is UTF-8 that Azkaban has read as ISO-8859-1; in a .job write letters beyond "
     "ASCII as \\uXXXX"),
    ({**RUN, "tf.input": "\ud83d"}, "tf.input: '\\ud83d' holds half of a character; a character beyond FFFF takes two escapes"),
    ({**RUN, "tf.input": "\0"}, "tf.input: '\\x00' contains a NUL character, which can't be passed to a process"),
    ({**RUN, "tf.docker_image": "a\0b"}, "tf.docker_image: 'a\\x00b' contains a NUL character, which can't be passed to a process"),
    ({**RUN, "executes": "other"}, "executes: 'other' is not what tf.command says, 'run'; give one of them"),
    ({**ONE, "executes": "x", "tony.ps.instances": "1", "tony.ps.memory": "lots"},
     "tony.ps.memory: 'lots' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)"),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "fault"), FAULTS, ids=[fault.partition(":")[0] + str(number) for number, (_, fault)
                                                               in enumerate(FAULTS)])  # fmt: skip
def test_a_fault_is_named_by_its_key(properties, fault, project):
    assert faults_of(properties, project) == [fault]


def test_a_broken_mapping_of_a_spec_is_named_and_not_shown(project):
    (project / "env.yaml").write_text("tasks: {worker: {env: [PASSWORD=hunter2]}, ps: {env: }}\n")
    found = faults_of({"tf.command": "run", "tf.spec": "env.yaml", "tf.worker.env.A": "1", "tf.ps.env.A": "1"}, project)
    assert found and all("worker.env" in fault and "hunter2" not in fault for fault in found)
    (project / "none.yaml").write_text("tasks: {worker: 2, ps: 0}\n")
    assert set(read({"tf.command": "run", "tf.spec": "none.yaml"}, project).tasks) == {"worker"}


def test_a_fault_of_a_spec_is_named_by_its_path_in_the_file(project):
    (project / "job.yaml").write_text("queue: 3\nrestart: {max_restarts: -1}\ntasks: {worker: {memory: x}}\n")
    assert faults_of({"tf.command": "run", "tf.spec": "job.yaml", "tf.restart": "task"}, project) == [
        "tf.spec: tasks.worker.memory: 'x' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)",
        "tf.spec: queue: 3 is not a text",
        "tf.spec: restart.max_restarts: -1 is not a whole number of at least 0",
    ]


def test_a_missing_or_broken_file_of_the_project_is_named(project):
    (project / "list.yaml").write_text("- 1\n")
    assert faults_of({**RUN, "tf.spec": "list.yaml"}, project) == [
        "tf.spec: 'list.yaml' is not a mapping of keys to values; ytf-submit --dry_run prints one"
    ]
    (project / "bytes").write_bytes(b"\xff")
    (fault,) = faults_of({**RUN, "tf.spec": "bytes"}, project)
    assert fault.startswith("tf.spec: 'bytes' can't be read: byte ")
    (project / "tasks.yaml").write_text("tasks: [worker]\n")
    assert faults_of({**RUN, "tf.spec": "tasks.yaml"}, project) == [
        "tf.spec: tasks: a list is not a mapping of task types to their settings"
    ]
    (project / "loop").symlink_to("loop")
    (fault,) = faults_of({**RUN, "tf.spec": "loop"}, project, root=project)
    assert fault.startswith("tf.spec: 'loop' can't be read: Too many levels")


def test_all_faults_come_at_once(project):
    wrong = {"tf.wroker.memory": "1", "tf.worker.memory": "x", "tf.que": "x", "tf.queue_timeout": "x", "tf.success": "x",
             "tf.tensorboard": "x", "tf.env.1x": "", "tf.worker.3.gpus": "1", "tf.priority": "x", "tf.tags": "ü",
             "tf.restart": "x", "tf.am_memory": "x", "tf.input": "\xc3\xa9", "tf.files.1": "=", "tf.user": "x",
             "tf.dry_run": "x", "tf.entry_point": "nope.py", "tony.yarn.queue": "q", "tf.queue": "p"}  # fmt: skip
    found = faults_of({**ONE, **wrong}, project)
    assert {fault.partition(":")[0] for fault in found} == {*wrong} - {"tf.queue"}


NAMES_OF_KEYS = sorted({
    name.replace("<type>", kind).replace("<index>", "0").replace("<n>", "1").replace("<NAME>", "A")
    for key in ALL_KEYS for name in (key.name, *tables.tony_names(key.name)) for kind in ("worker", "ps", "master")})  # fmt: skip

TEXTS = st.text(max_size=6) | st.sampled_from([
    "0", "1", "8g", "1,2", "worker:1", "ps:1,worker:2", "true", "task", "chief", "venv:///x", "hdfs://[x", "a/b", "A=1", "=",
    "train.py", "wrong.yaml", "x.zip", "9" * 5000])  # fmt: skip


@pytest.mark.slow
@examples(300)
@given(st.dictionaries(st.sampled_from(NAMES_OF_KEYS), TEXTS, max_size=6), st.booleans())
def test_any_values_are_a_job_or_have_faults_by_keys(project, properties, plain):
    (project / "wrong.yaml").write_text("tasks: {worker: {memory: x, env: [1]}, ps: {indices: {0: 3}}}\nqueue: 3\n")
    keys = {*properties, *ONE, "tf.command", "tf.spec", "tf.<type>.instances", "tf.output", "tf.tensorboard"}
    try:
        read_azkaban_job({**(RUN if plain else {}), **properties}, project)
    except SpecInvalid as error:
        assert {fault.path.partition(": ")[0] for fault in error.faults} <= keys and str(error)


@pytest.mark.slow
@pytest.mark.parametrize("form", [
    {"tf.files.1": "{}=/x/a"}, {"tf.files.1": "x=hdfs:///x/{}"}, {"tf.archives.1": "{}=/x/a.zip"}, {"tf.script": "/x/{}"},
    {"tf.docker_image": "{}"}, {"tf.docker_image": "tf", "tf.input": "/{}"}, {"tf.env.A": "{}"}, {"tf.tags": "{}"},
])  # fmt: skip
def test_no_property_reaches_a_script_of_yarn(project, form):
    for text in HOSTILE:
        request_is_plain(
            lambda text=text: read({**RUN, **{key: value.replace("{}", text) for key, value in form.items()}}, project)
        )

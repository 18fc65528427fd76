"""From the keys of a .job to a job: the table, TonY's names, byte-for-byte values, and every fault by its key."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.doc_tables import tables
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.keys import ALL_KEYS, find_key
from tf_yarn_ops.azkaban.limits import Limits
from tf_yarn_ops.azkaban.tony import translate
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.declaration import AZKABAN
from tf_yarn_ops.job.options import options_of
from tf_yarn_ops.job.request import OPTION_NAMES
from tf_yarn_ops.job.spec import JobSpec

ONE = {"tf.worker.instances": "1"}
RUN = {**ONE, "tf.command": "run"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "mnist.py").write_text("")
    (tmp_path / "src" / "models" / "cnn.py").write_text("")
    (tmp_path / "src" / ".git").mkdir()
    return tmp_path


def read(properties, folder, **settings):
    return read_azkaban_job(properties, folder, **settings)[0]


def faults_of(properties, folder, **settings):
    with pytest.raises(SpecInvalid) as caught:
        read_azkaban_job(properties, folder, **settings)
    return list(map(str, caught.value.faults))


# --- the table ----------------------------------------------------------------------------------
def test_every_key_is_found_by_its_own_name():
    for key in ALL_KEYS:
        name = (key.name.replace("<type>", "worker").replace("<index>", "0").replace("<n>", "1").replace("<NAME>", "A"))
        assert find_key(name).key is key, name


def test_every_option_of_a_request_has_a_key():
    mapped = {key.option.name for key in ALL_KEYS}
    assert set(OPTION_NAMES) - mapped == {"user"}  # a job can't choose its user
    assert mapped >= {*options_of(AZKABAN)}


def test_variables_come_before_task_types():
    assert find_key("tf.env.command").places == {"NAME": "command"}
    assert find_key("tf.worker.env.a.b").places == {"type": "worker", "NAME": "a.b"}


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
    ({**RUN, "tf.restart": "cluster", "tf.max_restarts": "5", "tf.retry_exit_codes": "1, 2", "tf.fatal_exit_codes": "3",
      "tf.max_container_losses": "9", "tf.restart_backoff": "2", "tf.allocation_retries": "4"},
     {"command": "run", "tasks": {"worker": 1}, "restart": {
         "mode": "cluster", "max_restarts": 5, "retry_exit_codes": [1, 2], "fatal_exit_codes": [3],
         "max_container_losses": 9, "backoff": 2, "allocation_retries": 4}}),
    ({**RUN, **{f"tf.{name}_timeout": "9" for name in ("queue", "allocation", "registration", "heartbeat", "execution",
                                                       "total")}, "tf.stop_grace": "1.5"},
     {"command": "run", "tasks": {"worker": 1}, "deadlines": {
         "queue": 9, "allocation": 9, "registration": 9, "heartbeat": 9, "execution": 9, "total": 9,
         "stop_grace": 1.5}}),
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
    (project / "job.yaml").write_text("command: from the file\nqueue: low\ntasks: {worker: {instances: 3, vcores: 2}, ps: 1}\n")
    job = read({"tf.spec": "job.yaml", "tf.queue": "high", "tf.worker.instances": "2", "tf.worker.memory": "1g"}, project)
    assert (job.command, job.queue, job.tasks["ps"].instances) == ("from the file", "high", 1)
    assert (job.tasks["worker"].instances, job.tasks["worker"].vcores, job.tasks["worker"].memory) == (2, 2, 1024)
    only = read({"tf.spec": "job.yaml", "tf.cluster_requirement": "worker:1"}, project)
    assert list(only.tasks) == ["worker"] and only.tasks["worker"].vcores == 2


def test_azkabans_own_keys_are_passed_over(project):
    others = {"type": "tensorflow-yarn", "retries": "3", "azkaban.flow.execid": "1", "user.to.proxy": "ann",
              "env.PATH": "/bin", "command": "python", "tfx.queue": "x", "working.dir": "/"}
    assert read({**RUN, **others}, project) == read(RUN, project)


def test_outputs_of_an_upstream_training_are_not_input(project):
    said = {"tf.result.reason": "SUCCEEDED", "tf.result.metrics.tf.command": "rm", "tf.result.anything": "x"}
    assert read({**RUN, **said}, project) == read(RUN, project)


# --- the program --------------------------------------------------------------------------------
PROGRAMS = [
    ({"tf.entry_point": "train.py"}, "python3 train.py", {"script": "train.py"}),
    ({"tf.entry_point": "./train.py", "tf.python": "/opt/my env/python"}, "'/opt/my env/python' train.py",
     {"script": "./train.py"}),
    ({"tf.entry_point": "/opt/train.py"}, "python3 /opt/train.py", {}),
    ({"tf.entry_point": "src/mnist.py", "tf.files.1": "src"}, "python3 src/mnist.py", {"files": {"src": "src"}}),
    ({"tf.entry_point": "mnist.py", "tf.source": "src"}, "python3 mnist.py",
     {"files": {"mnist.py": "src/mnist.py", "models": "src/models"}}),
    ({"tf.entry_point": "train.py", "tf.script": "src/mnist.py"}, "python3 train.py",
     {"script": "src/mnist.py", "files": {"train.py": "train.py"}}),
    ({"tf.entry_point": "train.py", "tf.args": "--x $Y", "tf.args.2": "c", "tf.args.10": "d", "tf.args.1": "a b"},
     "python3 train.py --x $Y 'a b' c d", {"script": "train.py"}),
    ({"tf.command": "run  this", "tf.args.1": ""}, "run  this ''", {}),
    ({"tf.command": "cd x\nrun  this\n", "tf.args": "--epochs 3\r\n", "tf.args.1": "a"}, "cd x\nrun  this --epochs 3 a", {}),
    ({"tf.command": "run", "tf.source": "hdfs:///code.zip"}, "cp -R tf_source/. . && run",
     {"archives": {"tf_source": "hdfs:///code.zip"}}),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "command", "document"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_what_runs_and_what_travels(properties, command, document, project):
    assert read({**ONE, **properties}, project) == JobSpec.from_dict(
        {"command": command, "tasks": {"worker": 1}, **document})


def test_arguments_of_a_file_are_read_by_bash(project):
    (project / "args").write_text("--date $(echo today)  # a comment\n'two\nlines'\n# nothing\n--last \"$HOME_OF\"")
    job = read({**ONE, "tf.command": "printf '[%s]'", "tf.args.file": "args", "tf.args.1": "x"}, project)
    run = subprocess.run(["bash", "-c", job.command], env={"HOME_OF": "a b"}, capture_output=True, text=True, check=True)
    assert run.stdout == "[x][--date][today][two\nlines][--last][a b]"


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5))
def test_arguments_and_variables_arrive_byte_for_byte(tmp_path_factory, texts):
    from tf_yarn_ops.azkaban.properties import format_properties, parse_properties, repair_mojibake

    texts = [text for text in texts if repair_mojibake(text) is None]
    given_ = {f"tf.args.{number}": text for number, text in enumerate(texts)}
    given_ |= {f"tf.env.V{number}": text for number, text in enumerate(texts)}
    job = read(parse_properties(format_properties({**ONE, **given_, "tf.command": "printf '%s\\0' x"})), tmp_path_factory)
    run = subprocess.run(["bash", "-c", job.command], capture_output=True, check=True)
    assert run.stdout.decode().split("\0")[1:-1] == texts
    assert list(job.env.values()) == texts


NASTY = "blank  \"double\" 'single' $HOME ${X} $(id) `id` , ; \\ \nline\ttab ü 漢字 🙂 # ! = :"


def test_paths_and_commands_keep_every_byte(project):
    job = read({**ONE, "tf.command": NASTY, "tf.input": NASTY, "tf.output": f" {NASTY} ", "tf.name": NASTY}, project)
    assert (job.command, job.input, job.output, job.name) == (NASTY, NASTY, f" {NASTY} ", NASTY)


# --- faults -------------------------------------------------------------------------------------
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
     "docker://image, or an archive (.tar.gz, .tgz, .zip)"),
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
        "tf.spec: restart.max_restarts: -1 is not a whole number of at least 0"]


def test_a_missing_or_broken_file_of_the_project_is_named(project):
    (project / "list.yaml").write_text("- 1\n")
    (project / "bytes").write_bytes(b"\xff")
    found = faults_of({**RUN, "tf.spec": "list.yaml", "tf.args.file": "bytes"}, project)
    assert found[0] == "tf.spec: 'list.yaml' is not a mapping of keys to values; ytf-submit --dry_run prints one"
    assert found[1].startswith("tf.args.file: 'bytes' can't be read: 'utf-8' codec") and len(found) == 2
    (project / "tasks.yaml").write_text("tasks: [worker]\n")
    assert faults_of({**RUN, "tf.spec": "tasks.yaml"}, project) == [
        "tf.spec: tasks: a list is not a mapping of task types to their settings"]
    found = faults_of({**RUN, "tf.spec": "nope", "tf.args.file": "nope"}, project)
    assert [fault.partition(":")[0] for fault in found] == ["tf.spec", "tf.args.file"]


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
@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(NAMES_OF_KEYS), TEXTS, max_size=6), st.booleans())
def test_any_values_are_a_job_or_have_faults_by_keys(project, properties, plain):
    (project / "wrong.yaml").write_text("tasks: {worker: {memory: x, env: [1]}, ps: {indices: {0: 3}}}\nqueue: 3\n")
    keys = {*properties, *ONE, "tf.command", "tf.spec", "tf.<type>.instances", "tf.output", "tf.tensorboard"}
    try:
        read_azkaban_job({**(RUN if plain else {}), **properties}, project)
    except SpecInvalid as error:
        assert {fault.path.partition(": ")[0] for fault in error.faults} <= keys and str(error)


# --- TonY ---------------------------------------------------------------------------------------
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
    "hdfs_classpath": "/libs/x.jar,hdfs://nn/y.jar",
}  # fmt: skip


def test_a_job_of_tony_is_the_same_job(project):
    assert read(TONY, project) == JobSpec.from_dict({
        "command": "/opt/py/bin/python mnist.py --steps 10 --name 'a b'", "environment": "python:///opt/py/bin/python",
        "tasks": {
            "worker": {"instances": 2, "memory": "3g", "gpus": 1, "vcores": 4, "node_label": "gpu"},
            "ps": {"memory": "2g", "command": "serve"},
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
    assert translate(TONY).warning == ""


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
    job, request = read_azkaban_job({"tony.worker.command": "serve", "tony.worker.instances": "1", "task_params": "--x 1"}, project)
    assert (job.command, job.tasks["worker"].command) == (None, "serve")
    assert request.warnings == ["these keys of TonY have no effect here: task_params (they need executes)"]


def test_executes_is_what_runs(project):
    job, request = read_azkaban_job({"tony.containers.command": "python3 a.py", "executes": "mnist.py", "task_params": "-v",
                                     "tony.worker.instances": "1"}, project)  # fmt: skip
    assert job.command == "mnist.py -v"
    assert request.warnings == ["these keys of TonY have no effect here: tony.containers.command (executes runs instead)"]


@pytest.mark.parametrize("name", ["tony.worker.command", "tony.containers.command"])
def test_every_command_of_tony_can_run_what_the_virtual_environment_holds(name, project):
    job = read({name: "venv/bin/python mnist.py", "python_venv": "venv.zip", "tony.worker.instances": "1"}, project)
    assert (job.tasks["worker"].command or job.command) == "chmod -R u+x venv && venv/bin/python mnist.py"
    own = {name.replace("tony.containers.", "tf.").replace("tony.", "tf."): "venv/bin/python mnist.py"}
    job = read({name: "venv/bin/python mnist.py", "python_venv": "venv.zip", "tony.worker.instances": "1", **own}, project)
    assert (job.tasks["worker"].command or job.command) == "venv/bin/python mnist.py", "they agree"


def test_tonys_quotes_round_a_command_are_azkabans(project):
    job = read({"executes": "'python3 a.py'", "tony.worker.instances": "1"}, project / "src")
    assert job.command == "python3 a.py" and job.files == {}


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
                "python_binary_path": "/usr/bin/python3"}, project)  # fmt: skip
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
        "python_binary_path: 'python:///opt/py' is not what tf.environment says, 'venv:///mine'; give one of them"]


def test_the_memory_of_all_tasks_holds_before_tonys_default(project):
    tony = {"executes": "a.py", "tony.worker.instances": "1", "tony.ps.instances": "1", "tony.ps.memory": "3g"}
    for job in (read({**tony, "tf.task_memory": "4g"}, project), read(tony, project, defaults={"tf.task_memory": "4g"})):
        assert {name: task.memory for name, task in job.tasks.items()} == {"worker": 4096, "ps": 3072}


@pytest.mark.parametrize("own", [{"tf.helper.instances": "1"}, {"tf.cluster_requirement": "worker:1, helper:1"}])
def test_tonys_lists_of_roles_name_our_roles_too(own, project):
    job = read({"executes": "x", "tony.worker.instances": "1", **own,
                "tony.application.sidecar.jobtypes": "helper"}, project)  # fmt: skip
    assert (job.tasks["helper"].awaited, job.tasks["helper"].fatal) == (False, False)


@pytest.mark.parametrize("lost, warning", [
    ({"python_binary_path": "bin/python", "tony.worker.command": "x"}, "python_binary_path (it needs executes)"),
    ({"tony.docker.enabled": "true", "executes": "x"}, "tony.docker.enabled (there is no tony.docker.containers.image)"),
    ({"executes": "x", "tony.history.location": "/h", "tony.task.executor.jvm.opts": "-Xmx1g",
      "tony.application.security.enabled": "false"},
     "tony.history.location, tony.task.executor.jvm.opts, tony.application.security.enabled"),
])
def test_nothing_of_tony_is_lost_in_silence(lost, warning, project):
    _, request = read_azkaban_job({"tony.worker.instances": "1", **lost}, project)
    assert request.warnings == [f"these keys of TonY have no effect here: {warning}"]


def test_key_of_tony_that_is_not_served_is_a_fault(project):
    (project / "helper.yaml").write_text("tasks: {helper: 1}")
    unserved = {"tony.worker.depends-on": "ps", "tony.application.prepare-stage": "ps", "tony.am.gpus": "1",
                "tony.application.placement-spec": "x", "tony.docker.worker.image": "x", "tony.worker.max-instances": "4",
                "tony.containers.resources": "a.rar#archive", "tony.application.sidecar.jobtypes": "helper, tensorboard"}  # fmt: skip
    found = faults_of({"executes": "x", "tf.spec": "helper.yaml", "tony.worker.instances": "1", **unserved}, project)
    assert {fault.partition(":")[0] for fault in found} == {*unserved}
    assert ("tony.worker.depends-on: this key of TonY has no counterpart here; the job would not run as it does there: "
            "remove the key") in found
    assert any(": set this of helper in tf.spec;" in fault for fault in found)


@pytest.mark.parametrize("given, framework", [("PyTorch", "pytorch"), ("standalone", "none"), ("horovod", "horovod")])
def test_framework_of_tony_is_ours(given, framework, project):
    job = read({"executes": "x", "tony.worker.instances": "1", "tony.application.framework": given}, project)
    assert job.framework == framework


def test_framework_of_tony_that_is_not_served_is_a_fault(project):
    assert faults_of({"executes": "x", "tony.worker.instances": "1", "tony.application.framework": "mxnet"}, project) == [
        "tony.application.framework: 'mxnet' is not one of tensorflow, pytorch, jax, horovod, none"]


def test_alias_and_own_key_that_agree_are_no_fault(project):
    job = read({**RUN, "executes": "run", "tf.worker.memory": "2048", "tony.worker.memory": "2g",
                "tony.worker.instances": "1", "tf.total_timeout": "60", "tony.application.timeout": "60000"}, project)
    assert (job.tasks["worker"].memory, job.deadlines.total) == (2048, 60)


# --- the site -----------------------------------------------------------------------------------
def test_the_sites_defaults_fill_gaps_only(project):
    defaults = Limits(defaults={"tf.queue": "batch", "tf.environment": "venv:///v", "tf.strict_placement": True}).defaults
    job, request = read_azkaban_job(RUN, project, defaults)
    assert (job.queue, str(job.environment), request.strict_placement) == ("batch", "venv:///v", True)
    assert read({**RUN, "tf.queue": "mine"}, project, defaults=defaults).queue == "mine"
    assert read({**RUN, "tony.yarn.queue": "mine"}, project, defaults=defaults).queue == "mine"
    assert str(read({**RUN, "tf.docker_image": "i"}, project, defaults=defaults).environment) == "docker://i"


LIMITS = [
    ({"queues": ["batch"]}, "tf.queue: 'default' is not one of the queues that this site allows: batch"),
    ({"tasks": 2}, "tf.<type>.instances: 3 tasks; this site allows 2"),
    ({"memory": "4g"}, "tf.worker.memory: 8192 MiB; this site allows 4096 MiB for a container"),
    ({"vcores": 1}, "tf.worker.vcores: 2; this site allows 1 for a container"),
    ({"gpus": 0}, "tf.worker.gpus: 1; this site allows 0 for a container"),
    ({"total_memory": "8g"}, "tf.<type>.memory: 18432 MiB together; this site allows 8192 MiB for a job"),
    ({"total_vcores": 4}, "tf.<type>.vcores: 6 together; this site allows 4 for a job"),
    ({"total_gpus": 1}, "tf.<type>.gpus: 2 together; this site allows 1 for a job"),
    ({"total_timeout": 3600}, "tf.total_timeout: 604800 s; this site allows 3600"),
]


@pytest.mark.parametrize(("limits", "fault"), LIMITS, ids=[next(iter(limits)) for limits, _ in LIMITS])
def test_the_sites_limits_hold(limits, fault, project):
    job = read({"tf.command": "x", "tf.worker.instances": "2", "tf.worker.vcores": "2", "tf.worker.gpus": "1",
                "tf.ps.instances": "1", "tf.ps.memory": "1g"}, project)  # fmt: skip
    with pytest.raises(SpecInvalid) as caught:
        Limits(**limits).check_job(job)
    assert list(map(str, caught.value.faults)) == [fault]
    Limits(queues=("default",), tasks=3, memory="8g", vcores=2, gpus=1, total_memory="18g", total_vcores=6, total_gpus=2,
           total_timeout=604800).check_job(job)


def test_no_container_is_beyond_the_limits(project):
    job = read({**RUN, "tf.worker.memory": "1g", "tf.am_memory": "200g", "tf.am_vcores": "9", "tf.tensorboard": "true",
                "tf.output": "/x", "tf.tensorboard_memory": "300g", "tf.tensorboard_vcores": "64"}, project)
    with pytest.raises(SpecInvalid) as caught:
        Limits(tasks=1, memory="2g", total_memory="4g", vcores=2, total_vcores=2).check_job(job)
    assert [str(fault).partition(";")[0] for fault in caught.value.faults] == [
        "tf.<type>.instances: 2 tasks", "tf.tensorboard_memory: 307200 MiB", "tf.am_memory: 204800 MiB",
        "tf.<type>.memory: 513024 MiB together", "tf.tensorboard_vcores: 64", "tf.am_vcores: 9",
        "tf.<type>.vcores: 74 together"]
    Limits(tasks=2, memory="300g", total_memory="501g", vcores=64, total_vcores=74, gpus=0, total_gpus=0).check_job(job)


@pytest.mark.parametrize(("allowed", "properties", "user"), [
    (False, {"user.to.proxy": "ann"}, None), (True, {"user.to.proxy": "ann"}, "ann"), (True, {}, None),
    (("ann",), {"user.to.proxy": "ann"}, "ann"), (("ann",), {"user.to.proxy": "bob"}, SpecInvalid)])
def test_user_to_proxy_counts_only_where_the_site_allows_it(allowed, properties, user):
    limits = Limits(user_to_proxy=allowed)
    if user is SpecInvalid:
        with pytest.raises(SpecInvalid, match="does not let jobs run as 'bob'"):
            limits.user(properties)
    else:
        assert limits.user(properties) == user

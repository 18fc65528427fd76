"""Requests of ``ytf oozie package``: every fault at once, and what the fields of a job may use."""

import contextlib
from datetime import datetime, timezone

import pytest
import yaml

from support.hostile import HOSTILE, request_is_plain
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.oozie.documents import shell_element
from tf_yarn_ops.oozie.request import read_oozie_request
from tf_yarn_ops.validation import this_machine

NOW = datetime(2026, 11, 21, 10, 7, tzinfo=timezone.utc)
JOB = """\
name: digits
command: python3 train.py "${dataIn}" ${HOME}
tasks: {worker: 2}
files: {train.py: train.py}
output: hdfs:///models/${nominalStamp}
env: {RATE: "${rate}"}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return tmp_path


def read(place, text=JOB, **options):
    (place / "job.yaml").write_text(text)
    return read_oozie_request("job.yaml", options, NOW)


def faults_of(place, text=JOB, **options):
    with pytest.raises(SpecInvalid) as caught:
        read(place, text, **options)
    return [str(fault) for fault in caught.value.faults]


def test_a_request_is_the_job_its_files_and_the_application(place):
    request = read(place, schedule="0 2 * * *", data=["hdfs:///clicks/${YEAR}-${MONTH}-${DAY}"], property=["rate=0.1"])
    assert request.trainings[0].document["files"] == {"train.py": "files/files/train.py"}
    assert request.trainings[0].sources == {"files/files/train.py": place / "train.py"}
    assert (request.name, request.warnings) == ("digits", ())
    assert request.properties == {"rate": "0.1"}


def test_every_fault_is_reported_at_once(place):
    text = (
        JOB.replace("nominalStamp", "nominalStmp")
        .replace("{worker: 2}", "{worker: 0}")
        .replace("train.py: train.py", "train.py: nowhere.py")
    )
    assert faults_of(
        place,
        text,
        schedule="0 2 * *",
        data=["clicks/${YER}", "x-y=hdfs:///a", "hdfs:///b"],
        timeout="5",
        execution="LASTONLY",
        concurrency="0",
        retry_max="-1",
        property=["user=1", "x", "rate=1"],
        data_instances="1",
        sla_start="5m",
        launcher_memory="much",
        include=["job.yaml", "nowhere"],
        workflow="nowhere.xml",
    ) == [
        "schedule: '0 2 * *' has 4 fields; give five: minute, hour, day of month, month, day of week, such as '0 2 * * *'",
        "data_instances: '1' is not a range of instances; give 0 for the newest, -1 for the one before, or -6:0",
        "timeout: '5' is not a time; give a number and m, h or d, such as 30m or 6h",
        "concurrency: '0' is not a whole number of at least 1",
        "execution: 'LASTONLY' is not one of FIFO, LIFO, LAST_ONLY, NONE (did you mean 'LAST_ONLY'?)",
        "property: 'user' is a name of Oozie's or ours; choose another one",
        "property: 'x' is not NAME=VALUE",
        "retry_max: '-1' is not a whole number of at least 0",
        "launcher_memory: 'much' is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)",
        "sla_start: needs sla_end",
        "data: 'dataIn' is given twice; name each with NAME=PATH",
        "data: 'clicks/${YER}' is not an absolute path or a URI such as hdfs:///clicks/${YEAR}-${MONTH}-${DAY}",
        "data 'clicks/${YER}': unknown variable ${YER} (did you mean 'YEAR'?); a URI may use YEAR, MONTH, DAY, HOUR, MINUTE, "
        "nameNode, rate",
        "data: 'x-y=hdfs:///a' is not an absolute path or a URI such as hdfs:///clicks/${YEAR}-${MONTH}-${DAY}",
        "output: ${nominalStmp} has no value (did you mean 'nominalStamp'?); known: workflowId, workflowName, workflowRun, "
        "user, nominalTime, nominalDate, nominalStamp, actualTime, actionId, coordinatorName, dataIn, rate; --property "
        "NAME=VALUE adds one",
        "tasks.worker.instances: 0 is not a whole number of at least 1",
        "workflow: 'nowhere.xml' can't be read: No such file or directory",
        "include: 'job.yaml' is also the name of another file of the application; give it another name",
        "include: there is no file nowhere on this machine",
    ]


@pytest.mark.parametrize(("text", "options", "fault"), [
    (JOB, {}, "output: ${nominalStamp} has a value in a coordinator only; give --schedule or --frequency"),
    (JOB.replace("Stamp", "Time"), {"frequency": "1d"},
     "output: ${nominalTime} has a colon, which HDFS allows in no path; use ${nominalStamp} or ${nominalDate}"),
    ("command: x\ntasks: {worker: 1}\nenvironment: docker://tf\ndocker: {client_config: config.json}\n", {},
     "docker.client_config: 'config.json' can't travel with the application, whose files others may read in HDFS; leave "
     "it out, and let the engines of the nodes log in"),
    ("command: x\ntasks: {worker: 1}\nuser: ann\n", {}, "user: the user of the workflow submits the job; leave this away"),
    ("command: x\ntasks: {worker: 1}\nscript: train-${user}.py\n", {},
     "script: 'train-${user}.py' is a file of this machine, packed now, when ${user} has no value; name a file in HDFS"),
    ("command: x\ntasks: {worker: 1}\nfiles: {a: nowhere.py}\n", {}, "files.a: there is no nowhere.py on this machine"),
    ("command: x\ntasks: {worker: 1}\n", {"data": ["hdfs:///x"], "execution": "FIFO"},
     "data: needs schedule or frequency: only a coordinator has it"),
    ("command: x\ntasks: {worker: 1}\n", {"done_flag": ""}, "done_flag: needs data"),
    ("command: x\ntasks: {worker: 1}\n", {"name": "a ${b}"}, "name: 'a ${b}' holds ${, which Oozie would evaluate; write "
                                                             "the name as it is"),
    ("command: x\ntasks: {worker: 1}\nname: this & that\n", {},
     "name: 'this & that' has < or &; Oozie puts the value into its XML as it is, so write it without them"),
    ("command: x\ntasks: {worker: 1}\n", {"property": ["a=\x01"]}, "property a: '\\x01' has a character that XML can't hold"),
    ("command: x\ntasks: {worker: 1}\n", {"schedule": "0 2 * * *", "data": ["/m/${MINUTE}"]},
     "data '${nameNode}/m/${MINUTE}': the URI has ${MINUTE} and the schedule is cron; say with data_frequency how often the data comes"),
    ("command: x\ntasks: {worker: 1}\n", {"name": "x" * 256},
     "name: the name has 256 characters, and Oozie's database holds 255; give a shorter one with --name"),
    ("command: x\ntasks: {worker: 1}\n", {"python": ""},
     "python: '' is not an interpreter; give a path such as /opt/tf/bin/python"),
    ("command: x\ntasks: {worker: 1}\n", {"property": ["rate="]}, "property 'rate=': '' is not a value; omit it"),
    ("command: x\ntasks: {worker: 1}\n", {"frequency": "1d", "data": ["a=/x"], "done_flag": "a b/${c}"},
     "done_flag: 'a b/${c}' is not the name of a file; give one such as _SUCCESS, or '' for the folder itself"),
    ("command: x\ntassks: {worker: 1}\n", {}, "tasks: there are none; give at least one task type, for example worker:1"),
    ("command: x\ntasks: {worker: 1}\n", {"frequency": "1d", "data": ["a=/x"], "output_data": ["a=/y"]},
     "output_data: 'a' is given twice; name each with NAME=PATH"),
    ("command: x\ntasks: {worker: 1}\n", {"frequency": "1d", "data": ["a=/x"], "property": ["a=1"]},
     "data: 'a' is given twice; name each with NAME=PATH"),
    ("[]", {}, "job: 'job.yaml' is not a mapping of keys to values; ytf-submit --dry_run prints one"),
])  # fmt: skip
def test_a_fault_names_its_value(place, text, options, fault):
    assert fault in [
        found.replace(f" ({this_machine('a relative file')})", "") for found in faults_of(place, text, **options)
    ]


def test_faults_of_listed_jobs_name_the_job(place):
    (place / "wide.yaml").write_text("command: x\ntasks: {worker: 0}\noutput: hdfs:///a/${rat}\n")
    text = """jobs:
- {name: wide, job: wide.yaml}
- {name: deep, job: nowhere.yaml, needs: [wid]}
"""
    assert faults_of(place, text, frequency="1d", property=["rate=1"]) == [
        "deep.needs: there is no job 'wid' (did you mean 'wide'?); jobs: wide, deep",
        "wide.output: ${rat} has no value (did you mean 'rate'?); known: workflowId, workflowName, workflowRun, user, "
        "nominalTime, nominalDate, nominalStamp, actualTime, actionId, coordinatorName, rate; --property NAME=VALUE adds one",
        "wide.tasks.worker.instances: 0 is not a whole number of at least 1",
        "deep.job: 'nowhere.yaml' can't be read: No such file or directory",
    ]


def test_faulty_property_is_reported_once(place):
    assert faults_of(place, "command: x\ntasks: {worker: 1}\n", property=["a b=1"]) == [
        "property: 'a b' is not a name; use a letter, then letters, digits and _, at most 39"
    ]


def test_the_launcher_is_in_the_queue_of_the_job(place):
    text = "command: x\ntasks: {worker: 1}\nqueue: science\n"
    for options, queue in ({}, "science"), ({"launcher_queue": "oozie"}, "oozie"):
        application = read(place, text, **options)
        assert shell_element(application, application.trainings[0]).findtext(".//{*}queue") == queue


@pytest.mark.slow
@pytest.mark.parametrize("field", ["files", "archives", "sources", "script", "environment", "output", "env"])
def test_no_field_reaches_a_script_of_yarn(place, field):
    """Oozie's own launcher gets files of plain names only; the action reads the job file that was packed."""
    taken = 0
    for number, text in enumerate(HOSTILE):
        (place / "a.zip").write_bytes(b"")
        (place / text).write_text("")
        document = {"command": "true", "tasks": {"worker": 1}, "name": f"n{number}"}
        document |= {
            "files": {"files": {text: "train.py"}}, "archives": {"archives": {text: "a.zip"}},
            "sources": {"files": {"x": f"hdfs:///x/{text}"}}, "script": {"script": text},
            "environment": {"environment": f"docker://{text}"}, "env": {"env": {"A": text}},
            "output": {"environment": "docker://tf", "output": f"/{text}"},
        }[field]  # fmt: skip
        try:
            request = read(place, yaml.safe_dump(document))
        except SpecInvalid:
            continue
        taken += 1
        packed = request.trainings[0].document
        assert request_is_plain(lambda packed=packed: JobSpec.from_dict(packed))
    assert taken > 10 or field == "environment"  # few of them are names of images


def test_commands_of_the_action_are_no_text_of_the_user(place):
    request = read(place, JOB.replace("train.py: train.py", '"$(touch pwned)": train.py'), property=["rate=$(touch pwned)"],
                   schedule="0 2 * * *")  # fmt: skip
    texts = [element.text or "" for element in shell_element(request, request.trainings[0]).iter()]
    assert not [text for text in texts if "pwned" in text]


def test_a_name_that_is_too_long_is_no_file(place):
    assert faults_of(place, "{tasks: {worker: 1}, command: x}", include=["n" * 300]) == [
        f"include: there is no file {'n' * 300} on this machine"
    ]


def test_paths_of_listed_jobs_begin_in_their_own_folders(place):
    (place / "flow" / "jobs").mkdir(parents=True)
    (place / "flow" / "jobs" / "train.py").write_text("")
    (place / "flow" / "jobs" / "cpu.zip").write_text("")
    (place / "flow" / "jobs" / "model.yaml").write_text(
        "{tasks: {chiefworker: {environment: cpu.zip}}, command: x, files: {t: train.py}}"
    )
    (place / "flow" / "all.yaml").write_text("jobs: [{name: model, job: jobs/model.yaml}]")
    (training,) = read_oozie_request("flow/all.yaml", {}, NOW).trainings
    assert list(training.sources.values()) == [place / "flow" / "jobs" / name for name in ("train.py", "cpu.zip")]
    assert training.document["tasks"]["chiefworker"]["environment"] in training.sources


@pytest.mark.parametrize("key", ["files", "archives", "env"])
def test_null_in_place_of_sources_is_no_sources(key, tmp_path):
    (tmp_path / "job.yaml").write_text(f"tasks: {{worker: 1}}\ncommand: 'true'\n{key}: null\n")
    with contextlib.suppress(SpecInvalid):
        read_oozie_request(str(tmp_path / "job.yaml"), {}, datetime(2026, 11, 21, tzinfo=timezone.utc))

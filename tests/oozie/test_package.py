"""Applications as files: golden documents, Oozie's schemas, folders here and in the cluster, and the server on the wire."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import javaproperties
import pytest
import yaml

from support.fake_yarn import FakeYarn, serving
from support.http_server import Handler, running
from support.oozie_site import FETCH_SECONDS, fetch
from support.programs import ROOT, YTF
from tf_yarn_ops.cli import command_line as program
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.oozie import commands, schemas
from tf_yarn_ops.oozie.package import Place, documents_of
from tf_yarn_ops.oozie.request import read_oozie_request
from tf_yarn_ops.terminal.signals import Interruption

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 21, 10, 7, tzinfo=timezone.utc)
PLACE = Place("hdfs://nn:8020/apps/digits", "hdfs://nn:8020", "rm:8032")
JOB = "name: digits \"more\"\ncommand: python3 train.py\ntasks: {worker: 1}\nfiles: {train.py: train.py}\nqueue: science\n"
SMALL = "command: x\ntasks: {worker: 1}\n"
JOBS = """name: nightly
jobs:
- {name: features, job: job.yaml}
- {name: wide, job: small.yaml, needs: features, delete: "/models/wide/${nominalStamp}", mkdir: "${models}/${user}"}
- {name: deep, job: job.yaml, needs: [features]}
- {job: small.yaml, needs: [wide, deep]}
"""
FLOW = """<workflow-app xmlns="uri:oozie:workflow:1.0" name="mine">
    <start to="train"/>
    <!-- kept -->
    <action name="train">
        <shell xmlns="uri:oozie:shell-action:1.0"/>
        <ok to="judge"/>
        <error to="end"/>
    </action>
    <decision name="judge">
        <switch>
            <case to="end">${wf:actionData('train')['metric.accuracy'] ge 0.9}</case>
            <default to="end"/>
        </switch>
    </decision>
    <end name="end"/>
</workflow-app>
"""
REQUESTS = {
    "plain": {"property": ["rate=0.1 a=b"], "bundle": True, "python": "/opt/tf/bin/python"},
    "cron": {"schedule": "0 2 * * MON-FRI", "data": ["hdfs:///clicks/${YEAR}-${MONTH}-${DAY}"], "done_flag": "",
             "data_instances": "-6:0", "retry_max": "2", "retry_interval": "1m", "launcher_memory": "512m"},
    "frequency": {"frequency": "1d", "timezone": "Europe/Berlin", "start": "2026-12-01T02:00+01:00", "end": "2027-01-01",
                  "data": ["clicks=/clicks/dt=${YEAR}${MONTH}${DAY}", "${nameNode}/stock/${YEAR}"],
                  "output_data": ["/models/${YEAR}${MONTH}${DAY}"], "timeout": "-1", "concurrency": "2", "throttle": "3",
                  "execution": "LAST_ONLY", "sla_end": "6h", "sla_start": "30m", "sla_duration": "2h", "sla_contact": "a@b.c"},
    "jobs": {"frequency": "1d", "start": "2026-12-01", "property": ["models=hdfs:///models"], "launcher_memory": "512m"},
    "flow": {"frequency": "12h", "workflow": "flow.xml", "include": ["extra.sh"], "name": "both"},
}  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"job.yaml": JOB, "small.yaml": SMALL, "jobs.yaml": JOBS, "train.py": "print()", "flow.xml": FLOW, "extra.sh": "true\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", REQUESTS)
def test_the_documents_are_what_they_were(place, name):
    job = "jobs.yaml" if name == "jobs" else "job.yaml"
    documents = documents_of(read_oozie_request(job, REQUESTS[name], NOW), PLACE)
    text = "".join(f"# {file}\n{text}" for file, text in documents.items() if file != "launch.sh")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("ACCEPT_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text(), "if that is meant, accept it with ACCEPT_GOLDEN=1 and read the diff"
    assert javaproperties.loads(documents["job.properties"])["nameNode"] == "hdfs://nn:8020"


def test_own_workflow_holds_an_action_for_each_listed_job(place):
    (place / "jobs.yaml").write_text("jobs:\n- {name: train, job: job.yaml}\n- {name: judge, job: small.yaml}\n")
    with pytest.raises(SpecInvalid, match="it needs one action 'judge' with an empty shell"):
        read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW)
    (place / "flow.xml").write_text(re.sub("<decision.*</decision>", """<action name="judge">
        <shell xmlns="uri:oozie:shell-action:1.0"/><ok to="end"/><error to="end"/></action>""", FLOW, flags=re.DOTALL))
    workflow = documents_of(read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW), PLACE)["workflow.xml"]
    assert "<file>job-train.yaml#job.yaml</file>" in workflow and "<file>job-judge.yaml#job.yaml</file>" in workflow
    (place / "jobs.yaml").write_text("jobs: [{name: train, job: job.yaml, mkdir: /a}]")
    with pytest.raises(SpecInvalid, match=r"train\.mkdir: the workflow of --workflow says what comes before a training"):
        read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW)


@pytest.mark.parametrize(("flow", "fault"), [
    (FLOW.replace('name="train"', 'name="fit"'), "workflow: it needs one action 'train' with an empty shell"),
    (FLOW.replace("<shell ", "<shell><exec/></shell><x "), "and has 0; the workflow's own namespace is"),
    (FLOW.replace("</workflow-app>", ""), "workflow: not XML: "),
])  # fmt: skip
def test_a_flow_without_a_place_for_the_training_is_a_fault(place, flow, fault):
    (place / "flow.xml").write_text(flow)
    with pytest.raises(SpecInvalid) as caught:
        read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW)
    assert fault in str(caught.value)


def faults_of_flow(place, *changes):
    text = FLOW
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (place / "flow.xml").write_text(text)
    with pytest.raises(SpecInvalid) as caught:
        documents_of(read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW), PLACE)
    assert {fault.path for fault in caught.value.faults} == {"workflow.xml"}, caught.value
    return [fault.text for fault in caught.value.faults]


def test_flow_that_oozie_would_refuse_is_refused_before_writing(place):
    schema, other, nowhere = faults_of_flow(place, ('<default to="end"/>', '<default/><otherwise to="0"/>'))
    assert "line 12: " in schema + other and "The attribute 'to' is required but missing" in schema + other
    assert "leads to '0', and there is no such node" in nowhere


@pytest.mark.parametrize(("before", "after", "faults"), [
    ('<error to="end"/>', '<error to="ends"/>',
     ["line 7: 'train' leads to 'ends', and there is no such node (did you mean 'end'?); nodes: :start:, train, judge, end"]),
    ('<default to="end"/>', '<default to="train"/>', ["line 4: train -> judge -> train is a loop, and Oozie refuses loops"]),
    ('<ok to="judge"/>', '<ok to="end"/>', ["line 9: nothing leads to 'judge'; lead a transition to it, or delete it"]),
    ('<end name="end"/>', '<kill name="end"><message>x</message></kill><end name="end"/>',
     ["line 15: there are two nodes 'end'; names are unique in a workflow"]),
    ("wf:actionData('train')", "wf:actonData('wf:nothing(')",
     ["line 11: 'wf:actonData' is not a function of Oozie's workflows (did you mean 'wf:actionData'?)"]),
    ("ge 0.9", "ge coord:nominalTime()",
     ["line 11: 'coord:nominalTime' is not a function of Oozie's workflows"]),
], ids=["node", "loop", "unreached", "name", "function", "coordinator"])  # fmt: skip
def test_faulty_flow_is_rejected_while_packing(place, before, after, faults):
    assert faults_of_flow(place, (before, after)) == faults


def test_functions_of_a_site_are_left_to_its_server(place):
    (place / "flow.xml").write_text(FLOW.replace("ge 0.9", "ge our:limit() and not (trimmed('a') eq 'b')"))
    documents_of(read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW), PLACE)


@pytest.mark.slow
@pytest.mark.timeout(FETCH_SECONDS)
def test_the_schemas_are_those_of_oozies_client():
    with zipfile.ZipFile(next((fetch() / "jars").glob("oozie-client-*.jar"))) as archive:
        for file in (*schemas.SCHEMA_FILES.values(), "oozie-common-1.0.xsd"):
            assert archive.read(file) == (schemas.SCHEMA_FOLDER / file).read_bytes()


def test_without_the_library_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(schemas.SchemasMissing, match=r"pip install 'tf-yarn-ops\[oozie\]'"):
        schemas.parse_xml("workflow", "<a/>")


def test_an_entity_is_never_read(tmp_path):
    (tmp_path / "secret").write_text("secret")
    text = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><a>&e;</a>'
    assert "secret" not in "".join(schemas.parse_xml("workflow", text).itertext())


def run(*words, **env):
    """Call ``ytf oozie`` in this process; return what `subprocess.run` would."""
    clean = {name: value for name, value in os.environ.items()
             if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR", "OOZIE_URL")}
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, {**clean, "YTF_SITE": "", **env}, clear=True), \
            mock.patch.object(sys, "argv", ["ytf", "oozie", *words]), redirect_stdout(out), redirect_stderr(err), \
            Interruption() as interruption, pytest.raises(SystemExit) as ended:
        program.run_command(ytf, "ytf", interruption)
    return subprocess.CompletedProcess(words, ended.value.code or 0, out.getvalue(), err.getvalue())


ADDRESSES = ("--name-node", "hdfs://nn:8020", "--resource-manager", "rm:8032")


def test_a_folder_gets_the_application_and_loses_files_of_an_earlier_one(place):
    (place / "data").mkdir()
    (place / "data" / "run.sh").write_text("true")
    (place / "data" / "run.sh").chmod(0o755)
    (place / "job.yaml").write_text(JOB.replace("{train.py: train.py}", "{train.py: train.py, d: data}"))
    done = run("package", "job.yaml", "--frequency", "1d", "--out", "app", *ADDRESSES)
    assert done.returncode == 0, done.stderr
    files = {"workflow.xml", "coordinator.xml", "job.properties", "job.yaml", "launch.sh", "files.tar.gz"}
    assert {path.name for path in (place / "app").iterdir()} == files
    assert "next: ytf oozie run app" in done.stderr and done.stdout == ""
    with tarfile.open(place / "app" / "files.tar.gz") as archive:
        modes = {member.name: member.mode & 0o777 for member in archive if member.isfile()}
    assert set(modes) == {"files/train.py", "files/d/run.sh"} and modes["files/d/run.sh"] == 0o755
    document = yaml.safe_load((place / "app" / "job.yaml").read_text())
    assert document["files"] == {"train.py": "files/files/train.py", "d": "files/files/d"}

    (place / "job.yaml").write_text(JOB)
    assert run("package", "jobs.yaml", "--frequency", "1d", "--property", "models=/m", "--out", "app", *ADDRESSES).returncode == 0
    names = ("features", "wide", "deep", "small")
    assert {path.name for path in (place / "app").iterdir()} == {
        "workflow.xml", "coordinator.xml", "job.properties", "launch.sh", "files-features.tar.gz", "files-deep.tar.gz",
        *(f"job-{name}.yaml" for name in names)}
    assert run("package", "small.yaml", "--out", "app", *ADDRESSES).returncode == 0
    assert {path.name for path in (place / "app").iterdir()} == files - {"coordinator.xml", "files.tar.gz"}

    (place / "other").mkdir()
    (place / "other" / "mine").touch()
    refused = run("package", "job.yaml", "--out", "other", *ADDRESSES)
    assert (refused.returncode, [path.name for path in (place / "other").iterdir()]) == (2, ["mine"])
    assert "out: other has files, and no application of ours; give an empty or a new folder" in refused.stderr


def test_packing_without_a_cluster_takes_the_user_of_hadoop(place):
    assert "appPath=hdfs://nn:8020/user/alice/oozie/" in run("package", "job.yaml", "--dry-run", *ADDRESSES, HADOOP_USER_NAME="alice").stdout


def test_a_dry_run_writes_nothing_and_faults_come_together(place):
    shown = run("package", "job.yaml", "--dry-run", *ADDRESSES)
    assert shown.returncode == 0 and shown.stdout.startswith("# workflow.xml\n<?xml") and "# job.properties" in shown.stdout
    refused = run("package", "job.yaml", "--frequency", "often", "--name-node", "namenode", "--resource-manager", "rm:8032")
    assert "\n  - name_node: 'namenode' is not the URL of a file system; give hdfs://host:8020" in refused.stderr
    assert refused.returncode == 2 and "\n  - out: missing; give a folder of this machine" in refused.stderr
    assert "\n  - frequency: 'often' is not a frequency" in refused.stderr
    assert not {"app", "workflow.xml"} & {path.name for path in place.iterdir()}


class FakeOozie(Handler):
    """Oozie on the wire: the answers to ``POST /oozie/v2/jobs`` and to ``GET``, and what was posted."""

    answer = (201, {}, '{"id": "0000001-oozie-C"}')
    coordinators: list = []
    seen: list = []
    meanwhile: list = []  # callables, one for each start

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body.decode()))
        if "dryrun" not in self.path and self.meanwhile:
            self.meanwhile.pop()()
        status, headers, text = self.answer
        self.reply(status, {"Content-Type": "application/json", **headers}, text)

    def do_GET(self):
        self.reply(200, {"Content-Type": "application/json"}, json.dumps({"coordinatorjobs": self.coordinators}))


@contextmanager
def oozie(*answer, coordinators=(), meanwhile=()):
    handler = type("Oozie", (FakeOozie,), {"seen": [], "coordinators": coordinators, "meanwhile": [*meanwhile],
                                           **({"answer": answer} if answer else {})})
    with running(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/oozie", handler.seen


@contextmanager
def cluster(folder):
    """Serve a ResourceManager whose file system is a folder here."""
    yarn = FakeYarn()
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{folder}",
                 "yarn.resourcemanager.address": "rm:8032"}
    with serving(yarn) as url:
        yield url


def sent(request):
    return {pair.findtext("name"): pair.findtext("value") for pair in ElementTree.fromstring(request[2])}


def test_run_uploads_checks_and_starts_and_prints_the_id(place):
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie() as (server, seen):
        packed = run("package", "job.yaml", "--frequency", "1d", "--out", "app", "--app-path", "/apps/digits",
                     "--property", "rate=0.1", YTF_RESOURCEMANAGER=url)
        assert packed.returncode == 0, packed.stderr
        started = run("run", "app", "--property", "rate=0.2", "--user", "root", YTF_RESOURCEMANAGER=url, OOZIE_URL=server)
        assert (started.returncode, started.stdout) == (0, "0000001-oozie-C\n"), started.stderr
        version, = (files / "apps" / "digits").iterdir()
        assert {path.name for path in version.iterdir()} == {path.name for path in (place / "app").iterdir()}
        assert oct((version / "job.yaml").stat().st_mode)[-3:] == "640"
        where = f"viewfs://mini/apps/digits/{version.name}"
        for folder in (where, "app"):
            again = run("run", folder, "--oozie", server, YTF_RESOURCEMANAGER=url)
            assert again.returncode == 0, again.stderr
        assert f"{where} has this application already" in again.stderr

        run("package", "job.yaml", "--frequency", "1d", "--out", "app", "--app-path", "/apps/digits", YTF_RESOURCEMANAGER=url)
        assert run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
        assert len([*(files / "apps" / "digits").iterdir()]) == 2
    workflow, coordinator, start = seen[:3]
    assert "action=dryrun" in workflow[0] and "action=dryrun" in coordinator[0] and "action" not in start[0]
    assert "oozie.coord.application.path" not in sent(workflow) and sent(workflow)["nominalStamp"] == "1"
    assert start[0].startswith("/oozie/v2/jobs?user.name=") and start[1]["Content-Type"].startswith("application/xml")
    assert sent(start)["oozie.coord.application.path"] == sent(start)["appPath"] == where
    assert (sent(start)["rate"], sent(start)["resourceManager"], sent(start)["oozie.use.system.libpath"]) == ("0.2", "rm:8032", "true")
    assert "user.name" in sent(start) and sent(seen[5])["rate"] == "0.2" and sent(seen[8])["rate"] == "0.1"


def test_package_writes_into_the_cluster_itself(place):
    with cluster(place) as url, oozie() as (server, seen):
        packed = run("package", "job.yaml", "--out", "viewfs:///apps/digits", YTF_RESOURCEMANAGER=url)
        version, = (place / "apps" / "digits").iterdir()
        where = f"viewfs://mini/apps/digits/{version.name}"
        assert packed.returncode == 0 and f"next: ytf oozie run {where}\n" in packed.stderr, packed.stderr
        assert run("run", where, "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
    assert "action=start" in seen[1][0] and sent(seen[1])["oozie.wf.application.path"] == where


def coordinator(start, end):
    return {"coordJobId": "0000009-oozie-C", "startTime": start, "endTime": end}


@pytest.mark.parametrize(("others", "options", "code"), [
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Thu, 31 Dec 2099 00:00:00 GMT")], [], 2),
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Thu, 31 Dec 2099 00:00:00 GMT")], ["--again"], 0),
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Tue, 01 Dec 2026 02:00:00 GMT")], [], 0),
], ids=["same time", "asked for", "ends before"])  # fmt: skip
def test_second_coordinator_for_the_same_time_is_rejected(place, others, options, code):
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie(coordinators=others) as (server, seen):
        run("package", "job.yaml", "--frequency", "1d", "--start", "2026-12-01T02:00Z", "--out", "app", YTF_RESOURCEMANAGER=url)
        done = run("run", "app", *options, "--oozie", server, YTF_RESOURCEMANAGER=url)
    assert done.returncode == code, done.stderr
    if code:
        assert "0000009-oozie-C is a coordinator 'digits \"more\"' for the same time" in done.stderr
        assert not seen and not [*files.iterdir()]


def test_second_call_while_a_coordinator_starts_is_refused(place):
    files, calls = place / "hdfs", []
    files.mkdir()

    def call(*options):
        env = {**os.environ, "YTF_SITE": "", "PYTHONPATH": str(ROOT), "YTF_RESOURCEMANAGER": url}
        calls.append(subprocess.run([*YTF, "oozie", "run", "app", *options, "--oozie", server], env=env, text=True, cwd=place,
                                    capture_output=True, timeout=100))

    with cluster(files) as url, oozie(meanwhile=[call]) as (server, seen):
        run("package", "job.yaml", "--frequency", "1d", "--out", "app", "--app-path", "/apps/digits", YTF_RESOURCEMANAGER=url)
        assert run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
        claim = files / "apps" / "digits" / ".starting"
        assert len(seen) == 3 and calls[0].returncode == 2 and not claim.exists()
        assert re.search(r"/apps/digits/.starting: process \d+ on \S+ is starting this coordinator", calls[0].stderr), calls[0].stderr
        # A process that was killed leaves its claim.
        claim.write_text("process 1 on gone")
        call()
        call("--again")
        assert [done.returncode for done in calls] == [2, 2, 0] and not claim.exists(), calls


def test_unknown_property_is_rejected(place):
    (place / "flow.xml").write_text(FLOW.replace("ge 0.9", "ge limit"))
    run("package", "job.yaml", "--workflow", "flow.xml", "--property", "rate=1", "--out", "app", *ADDRESSES)
    done = run("run", "app", "--property", "limit=0.9", "--property", "oozie.launcher.max.attempts=1", "--property", "rat=2",
               "--oozie", "http://nowhere")
    assert done.returncode == 2 and done.stderr.splitlines()[0].endswith(
        "property 'rat': unknown key (did you mean 'rate'?); known: nameNode, resourceManager, appPath, "
        "oozie.wf.application.path, oozie.use.system.libpath, rate"), done.stderr


@pytest.mark.parametrize(("answer", "code", "message"), [
    ((400, {"oozie-error-code": "E1021", "oozie-error-message": "E1021: no such zone"}, ""), 3,
     "Oozie refuses the application (E1021): E1021: no such zone"),
    ((401, {}, ""), 3, "Oozie refuses the application (401): HTTP 401"),
    ((404, {}, "<html>nothing here</html>"), 4, "answers, but has no Oozie: its address ends with /oozie"),
    ((500, {}, "<html>broken</html>"), 4, "/oozie answers 500: broken"),
    ((200, {}, "<html>login</html>"), 4, "/oozie answers, but not as an Oozie server: login"),
])  # fmt: skip
def test_answer_of_oozie_is_reported(place, answer, code, message):
    with cluster(place) as url, oozie(*answer) as (server, _):
        run("package", "job.yaml", "--out", "app", YTF_RESOURCEMANAGER=url)
        done = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
        assert (done.returncode, done.stdout) == (code, "") and message in done.stderr, done.stderr
        assert code == 3 or done.stderr.endswith("\nnext: curl $OOZIE_URL/v1/admin/status\n")
        # A refused application is deleted again.
        assert [*place.glob("user/*/oozie/*/*")] == [] or code == 4


def test_run_names_what_is_missing(place):
    (place / "empty").mkdir()
    done = run("run", "empty", "--property", "x")
    assert done.returncode == 2 and done.stderr.splitlines()[1:4] == [
        "  - oozie: missing; give the address of the Oozie server, http://host:11000/oozie, or set OOZIE_URL",
        "  - property: 'x' is not NAME=VALUE", "  - there is no job.properties in empty; ytf oozie package writes one"]


LAUNCH = ROOT / "tf_yarn_ops" / "oozie" / "launch.sh"


def launch(folder, python, **env):
    return subprocess.run(["bash", str(LAUNCH), python], cwd=folder, capture_output=True, text=True, timeout=120,
                          env={"PATH": "/usr/bin:/bin", **env})


def test_node_without_interpreter_or_package_names_the_option(tmp_path):
    none = launch(tmp_path, "/nowhere/python")
    assert none.returncode == 2 and "has no interpreter '/nowhere/python'; pack the application again with --python" in none.stderr
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/bash\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    lacks = launch(tmp_path, str(bare))
    assert lacks.returncode == 2 and "ModuleNotFoundError" in lacks.stderr
    assert "--python /opt/tf/bin/python, or with --bundle, so that the package travels" in lacks.stderr
    assert none.stdout == lacks.stdout == ""
    kept = javaproperties.loads("hadoopJobs:" + (tmp_path / "externalChildIDs").read_text())
    assert (kept["reason"], kept["message"]) == ("SPEC_INVALID", lacks.stderr.splitlines()[-1])


def test_the_log_of_the_check_never_stands_among_the_outputs(tmp_path):
    loud = tmp_path / "python"
    loud.write_text('#!/bin/bash\n[ "$1" = -c ] && echo noise || echo "action $*"\n')
    loud.chmod(0o755)
    ran = launch(tmp_path, str(loud))
    assert (ran.stdout, ran.stderr) == ("action -m tf_yarn_ops.oozie.action\n", "noise\n")


@pytest.mark.slow
def test_a_bundle_runs_the_action_on_an_interpreter_without_the_package(place):
    packed = run("package", "job.yaml", "--out", "app", "--bundle", *ADDRESSES)
    assert packed.returncode == 0 and (place / "app" / "ytf.pex").stat().st_size > 10 << 20, packed.stderr
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    asked = launch(place / "app", str(base), HOME="/nowhere")
    assert asked.returncode == 2 and "only Oozie starts this program" in asked.stderr, asked.stderr
    assert "reason=SPEC_INVALID\n" in asked.stdout
    with zipfile.ZipFile(io.BytesIO((place / "app" / "ytf.pex").read_bytes())) as bundle:
        assert {"tf_yarn_ops/oozie/launch.sh", "tf_yarn_ops/oozie/schemas/NOTICE"} <= set(bundle.namelist())


def test_the_guide_names_each_option():
    guide = (ROOT / "docs" / "guides" / "oozie.md").read_text(encoding="utf-8")
    common = {"--resourcemanager", "--verbose", "-v"}
    options = {name for command in commands.oozie.commands.values() for parameter in command.params
               for name in parameter.opts if name.startswith("-")}
    assert {name for name in options - common if not re.search(rf"{name}\b(?!-)", guide)} == set()

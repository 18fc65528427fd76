"""Submissions through Skein's Java client: its processes are real, the JVM is a program that speaks Skein's protocol."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from support.fake_yarn import STAMP, FakeYarn, application, serving, verdict_text
from support.waiting import until
from tf_yarn_ops.errors import Cancelled, ClusterUnreachable, KerberosRefused, ResourcesImpossible, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import SecurityFacts, current_user, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.submit import skein_java as skeinsubmitter

pytestmark = pytest.mark.slow

USER = current_user({})
ME = Identity("digits", 1, 2, "airflow")
ID, SECOND = (f"application_{STAMP}_000{number}" for number in (1, 2))
#: Skein's driver: tells its port, answers ping and submit; YARN learns of a submission by REST.
DRIVER = """\
import json, os, socket, struct, sys, threading, time, urllib.request
from concurrent import futures
seen = {seen!r}
left = {left!r}
if left:
    print("22/11/26 14:00:00 INFO skein.Driver: Uploading application resources to file:" + left, flush=True)
    os.makedirs(left)
    open(left + "/.skein.pem", "w").close()
with open(seen + ".part", "w") as file:
    json.dump({{"pid": os.getpid(), "environ": dict(os.environ)}}, file)
os.rename(seen + ".part", seen)
if {hangs}:
    time.sleep(120)
import grpc
from skein import proto
from skein.proto import skein_pb2_grpc as wire
class Driver(wire.DriverServicer):
    def ping(self, request, context):
        return proto.Empty()
    def submit(self, request, context):
        number = json.load(urllib.request.urlopen(urllib.request.Request(
            {url!r} + "/ws/v1/cluster/apps/new-application?user.name=x", data=b"", method="POST")))["application-id"]
        body = {{"application-id": number, "application-tags": {{"tag": list(request.tags)}},
                "application-name": request.name, "queue": request.queue}}
        urllib.request.urlopen(urllib.request.Request({url!r} + "/ws/v1/cluster/apps?user.name={user}",
            data=json.dumps(body).encode(), headers={{"Content-Type": "application/json"}}, method="POST"))
        if {dies}:
            os._exit(9)
        return proto.Application(id=number)
server = grpc.server(futures.ThreadPoolExecutor(2))
wire.add_DriverServicer_to_server(Driver(), server)
certificate, key = (os.environ[name].encode() for name in ("SKEIN_CERTIFICATE", "SKEIN_KEY"))
credentials = grpc.ssl_server_credentials([(key, certificate)], certificate, True)
port = server.add_secure_port("127.0.0.1:0", credentials)
server.start()
with socket.create_connection(("127.0.0.1", int(os.environ["SKEIN_CALLBACK_PORT"]))) as callback:
    callback.sendall(struct.pack("!i", port))
sys.stdin.read()
os._exit(0)
"""


class Place:
    """A fake YARN and a folder with what stands for ``yarn`` and ``java``."""

    def __init__(self, folder, yarn, url):
        self.folder, self.yarn, self.url, self.seen = folder, yarn, url, folder / "seen.json"
        self.environ = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}
        (folder / "bin").mkdir()
        self.program("yarn", "#!/bin/sh\necho /none\n")

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def launcher(self, user=USER, hangs=False, dies=False, left="", **environ):
        driver = DRIVER.format(seen=str(self.seen), hangs=hangs, dies=dies, left=str(left), url=self.url, user=user)
        self.program("java", f"#!{sys.executable}\n{driver}")
        cluster = discover(self.url, {"HOME": "/nowhere", "HADOOP_USER_NAME": USER})
        return Launcher(cluster, submit_with="skein", environ={**self.environ, **environ})

    def driver(self):
        """Return what the driver saw, once it has started."""
        until(self.seen.exists, 60)
        return json.loads(self.seen.read_text())


@pytest.fixture
def place(tmp_path):
    yarn = FakeYarn()
    with serving(yarn) as url:
        yield Place(tmp_path, yarn, url)


def job():
    return JobSpec(tasks={"worker": TaskSpec(instances=1, memory=512)}, command="true", name="digits")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def in_thread(call, *words):
    """Run a call in a thread; gives the thread and a list that gets what it raises or returns."""
    result = []

    def run():
        try:
            result.append(call(*words))
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, result


def test_resource_that_skeins_client_can_not_request_is_refused(place):
    tasks = {"worker": TaskSpec(memory=512, resources={"example.com/chip": 1})}
    with pytest.raises(SubmissionRejected, match=r"can.t request example\.com/chip: .*; give submit_with rest"):
        place.launcher().submit(replace(job(), tasks=tasks))


def test_skeins_answer_is_the_id_and_its_environment_names_nobody_else(place):
    launcher = place.launcher(HADOOP_PROXY_USER="ceo", HADOOP_TOKEN_FILE_LOCATION="/x", PYTHONPATH="/evil")
    assert launcher.ensure(job(), ME).application_id == ID
    assert set(ME.tags) <= set(place.yarn.apps[ID]["applicationTags"].split(","))
    seen = place.driver()
    assert seen["environ"]["HADOOP_USER_NAME"] == USER
    assert not [name for name in seen["environ"] if name.startswith(("PYTHON", "HADOOP_PROXY", "HADOOP_TOKEN"))]
    until(lambda: not alive(seen["pid"]))


@pytest.mark.parametrize(
    ("child", "error"),
    [
        (
            "print('refused Call From h/1.2.3.4 to rm:8032 failed on connection exception: Connection refused')",
            ClusterUnreachable,
        ),
        ("print('refused Cannot create directory /x. Name node is in safe mode.')", ClusterUnreachable),
        ("print('refused Operation category READ is not supported in state standby')", ClusterUnreachable),
        ("print('refused java.net.UnknownHostException: rm')", ClusterUnreachable),
        ("print('refused java.io.IOException: Broken pipe')", ClusterUnreachable),
        ("print('broken Unable to connect to driver')", ClusterUnreachable),
        ("print('refused User ann cannot submit applications to queue root.low')", SubmissionRejected),
        ("print('refused File does not exist: hdfs://n/x')", SubmissionRejected),
        ("import os; os.kill(os.getpid(), 9)", ClusterUnreachable),
        ("import sys; sys.exit('java.net.ConnectException: Connection refused')", ClusterUnreachable),
        ("import sys; sys.exit('no such class')", SubmissionRejected),
    ],
)
def test_absent_cluster_is_not_a_refusal(place, monkeypatch, child, error):
    """What may succeed in a moment is retryable; a scheduler gives up for good what is refused."""
    monkeypatch.setattr(skeinsubmitter, "_START", child)
    monkeypatch.setattr(skeinsubmitter, "_ORPHAN_SECONDS", 0.1)
    with pytest.raises(error) as raised:
        place.launcher().submit(job())
    assert raised.value.reason.retryable is (error is ClusterUnreachable)


class Alarm(BaseException):
    """As Airflow's time limit is."""


@pytest.mark.parametrize(
    "error", [Alarm("time is up"), KeyboardInterrupt(), ClusterUnreachable("no answer in time")], ids=repr
)
@pytest.mark.parametrize("identity", [ME, None], ids=["identity", "no identity"])
def test_submission_without_an_id_is_taken_back(place, monkeypatch, identity, error):
    def write(self, spec, folder, tags):
        asked.append(tuple(tags))

    def run(self, folder):
        self._uncertain = True
        place.yarn.add(application(1, "RUNNING", user=USER, applicationTags=",".join(asked[-1])))
        raise error

    asked = []
    monkeypatch.setattr(skeinsubmitter.SkeinJavaSubmitter, "_write", write)
    monkeypatch.setattr(skeinsubmitter.SkeinJavaSubmitter, "_run", run)
    launcher = place.launcher()
    with pytest.raises(type(error)):
        launcher.ensure(job(), identity) if identity else launcher.submit(job())
    assert place.yarn.apps[ID]["state"] == "KILLED"


@pytest.mark.parametrize(
    ("child", "left"),
    [
        ("import sys; sys.exit(3)", []),
        ("import os; os.kill(os.getpid(), 9)", []),
        ("print('refused java.io.EOFException')", []),
        ("print('broken no reason given')", []),
        ("print('refused User ann cannot submit applications to queue root.low')", [ID]),
    ],
)
@pytest.mark.parametrize("identity", [ME, None], ids=["identity", "no identity"])
def test_a_client_that_ends_without_a_clear_answer_may_have_submitted(place, monkeypatch, identity, child, left):
    """What it submitted first is killed; after a refusal there is nothing to look for."""
    monkeypatch.setattr(skeinsubmitter, "_START", child)
    await_child = skeinsubmitter.SkeinJavaSubmitter._await

    def submit_and_await(self, child, log):
        place.yarn.add(application(1, "RUNNING", user=USER, applicationTags=",".join(asked[-1])))
        await_child(self, child, log)

    def write(self, spec, folder, tags):
        asked.append(tuple(tags))

    asked = []
    monkeypatch.setattr(skeinsubmitter.SkeinJavaSubmitter, "_await", submit_and_await)
    monkeypatch.setattr(skeinsubmitter.SkeinJavaSubmitter, "_write", write)
    launcher = place.launcher()
    with pytest.raises((SubmissionRejected, ClusterUnreachable)):
        launcher.ensure(job(), identity) if identity else launcher.submit(job())
    assert [name for name, found in place.yarn.apps.items() if found["state"] == "RUNNING"] == left


@pytest.mark.parametrize("identity", [ME, None], ids=["identity", "no identity"])
def test_what_the_java_client_had_submitted_before_it_died_is_killed(place, identity):
    launcher = place.launcher(dies=True)
    with pytest.raises(ClusterUnreachable, match="Unable to connect to driver"):
        launcher.ensure(job(), identity) if identity else launcher.submit(job())
    assert {name: app["state"] for name, app in place.yarn.apps.items()} == {ID: "KILLED"}


def test_machine_that_cannot_write_is_not_a_fault_of_the_request(place, monkeypatch):
    def full(self, spec, folder, tags):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(skeinsubmitter.SkeinJavaSubmitter, "_write", full)
    with pytest.raises(ClusterUnreachable, match=r"this machine can.t run Skein.s Java client: .* No space left"):
        place.launcher().submit(job())


@pytest.mark.parametrize("why", ["no ticket", "no process"])
def test_unstarted_client_spares_the_application_of_another(place, monkeypatch, why):
    """Its tags are on an application of the same training that another client submits at the same moment."""
    cluster = place.launcher().cluster
    if why == "no ticket":
        monkeypatch.setenv("KRB5CCNAME", "FILE:/none/tickets")
        cluster = replace(cluster, security=SecurityFacts(kerberos=True, negotiates=False))
    else:
        monkeypatch.setattr(sys, "executable", "/none/python")
    place.yarn.faults.append(
        lambda method, path: (
            place.yarn.add(application(1, user=USER, applicationTags=",".join(ME.tags))) and None
            if path.endswith("/scheduler")
            else None
        )
    )
    with pytest.raises((ClusterUnreachable, KerberosRefused)):
        Launcher(cluster, submit_with="skein", environ=place.environ).ensure(job(), ME)
    assert place.yarn.apps[ID]["state"] == "RUNNING"


def test_the_priority_that_skein_can_not_give_is_given_behind_it(place, caplog):
    looks = place.yarn.launch_after(ID, 6)
    assert place.launcher().submit(replace(job(), priority=3, deadlines=Deadlines(total=0))) == ID
    asked = [(method, path.rpartition("/")[2], body) for method, path, _, _, body in place.yarn.requests]
    changed = asked.index(("PUT", "priority", {"priority": 3}))
    assert (len(looks), asked[changed - 1][:2]) == (7, ("GET", ID)), "not while its master is launched"
    place.yarn.faults.append(
        lambda method, path: (403, {"Content-Type": "application/json"}, "{}") if path.endswith("/priority") else None
    )
    assert place.launcher().submit(replace(job(), priority=3)) == SECOND
    assert f"{SECOND} has no priority in YARN: " in caplog.text


def test_directories_of_those_who_are_gone_are_swept_here_too(place, tmp_path):
    place.yarn.conf |= {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}",
    }
    left = tmp_path / f"user/{USER}/.skein/application_{STAMP}_0099"
    left.mkdir(parents=True)
    place.yarn.add(application(99, "KILLED", user=USER))
    place.launcher().submit(job())
    assert not left.exists()


def test_what_yarn_would_refuse_is_refused_before_java_starts(place):
    launcher = place.launcher()
    with pytest.raises(SubmissionRejected, match=r"no queue 'defualt' \(did you mean 'default'\?\)"):
        launcher.submit(replace(job(), queue="defualt"))
    strict = Launcher(launcher.cluster, submit_with="skein", environ=place.environ, strict_placement=True)
    place.yarn.nodes = []
    with pytest.raises(ResourcesImpossible, match="no running node"):
        strict.ensure(job(), ME)
    assert not place.seen.exists()


def test_yarn_decides_where_queues_nodes_and_files_can_not_be_read(place):
    """Nothing can be swept without a file system over HTTP, and that is no reason to kill what YARN has accepted."""
    place.yarn.conf |= {"fs.defaultFS": "s3a://bucket"}
    place.yarn.faults.append(
        lambda method, path: (
            (403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "not for you"}}')
            if path.endswith(("/scheduler", "/nodes"))
            else None
        )
    )
    assert place.launcher().submit(job()) == ID
    assert place.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_cancel_ends_the_java_client(place):
    launcher = place.launcher(hangs=True)
    thread, result = in_thread(launcher.ensure, job(), ME)
    pid = place.driver()["pid"]
    launcher.cancel("told to")
    thread.join(60)
    assert [type(error) for error in result] == [Cancelled]
    assert not alive(pid)
    assert place.yarn.apps == {}


def test_retry_waits_for_lost_nodes_without_a_file_system(place, monkeypatch):
    """Claims, and runs to renew, need a file system over HTTP; a submission with Skein has neither."""
    place.yarn.conf |= {"fs.defaultFS": "s3a://bucket"}
    monkeypatch.setattr("tf_yarn_ops.launch.identity.NOTICE_SECONDS", 0.0)
    spec = replace(job(), deadlines=Deadlines(heartbeat=5, stop_grace=1))
    lost = verdict_text(JobReport(ID, reason=Reason.NODE_LOST, message="x"))
    fields = {"user": USER, "applicationTags": ",".join(ME.tags), "diagnostics": lost, "finalStatus": "FAILED"}
    began = time.time()
    place.yarn.add(application(1, "FINISHED", **fields, finishedTime=int(began * 1000)))
    later = replace(ME, attempt=ME.attempt + 1)
    assert place.launcher().ensure(spec, later).application_id == SECOND
    assert time.time() >= began + 6 - 0.5  # YARN's time comes in whole seconds


def test_what_was_submitted_the_moment_before_a_cancel_is_killed(place):
    """The request is through, the answer is not: only the tags tell which application it was."""
    launcher = place.launcher(hangs=True)
    thread, result = in_thread(launcher.ensure, job(), ME)
    place.driver()
    tags = ",".join(ME.tags)
    other = ",".join(Identity(ME.key, ME.generation, ME.attempt + 1, ME.deployment).tags)
    place.yarn.add(application(1, "ACCEPTED", user=USER, applicationTags=tags))
    place.yarn.add(application(2, "ACCEPTED", user=USER, applicationTags=other))
    launcher.cancel("told to")
    thread.join(60)
    assert [type(error) for error in result] == [Cancelled]
    assert {name: app["state"] for name, app in place.yarn.apps.items()} == {ID: "KILLED", SECOND: "ACCEPTED"}
    assert "told to" in place.yarn.apps[ID]["diagnostics"]


def test_client_that_submits_as_another_user_is_logged_once(place):
    launcher = place.launcher(user="ceo")
    with pytest.raises(
        SubmissionRejected, match=f"{ID} runs as 'ceo', not as '{USER}': the Hadoop client here submits"
    ):
        launcher.ensure(job(), ME)
    assert {name: app["state"] for name, app in place.yarn.apps.items()} == {ID: "KILLED"}


SUBMIT = (
    "import sys; from tf_yarn_ops.hadoop.cluster import discover; from tf_yarn_ops.launch.launcher import Launcher; "
    "from tf_yarn_ops.job.spec import JobSpec, TaskSpec; "
    "Launcher(discover(sys.argv[1]), submit_with='skein').submit("
    "JobSpec(tasks={'worker': TaskSpec(instances=1, memory=512)}, command='true'))"
)


@pytest.mark.parametrize(
    "number, known",
    [(signal.SIGINT, False), (signal.SIGKILL, False), (signal.SIGKILL, True)],
    ids=["Ctrl-C", "SIGKILL", "SIGKILL after YARN has accepted it"],
)
def test_an_unfinished_upload_leaves_no_key(place, tmp_path, number, known):
    """Ctrl-C reaches the whole group of processes; after SIGKILL only the Java client's parent is left."""
    place.yarn.conf |= {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}",
    }
    left, folders = tmp_path / f"user/{USER}/.skein/{ID}", tmp_path / "tmp"
    folders.mkdir()
    place.launcher(hangs=True, left=left)
    if known:
        place.yarn.add(application(1, user=USER))
    with subprocess.Popen(
        [sys.executable, "-c", SUBMIT, place.url],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        env=place.environ | {"TMPDIR": str(folders)},
    ) as client:
        try:
            pid = place.driver()["pid"]
            child = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            assert (left / ".skein.pem").exists() and list(folders.iterdir())
        finally:
            if number is signal.SIGKILL:
                client.kill()
            else:
                os.killpg(client.pid, number)
    until(lambda: not list(folders.iterdir()))
    assert left.exists() is known
    assert not alive(pid)
    until(lambda: not alive(child))
    assert set(place.yarn.apps) == ({ID} if known else set())


def test_undeletable_key_is_reported(place, tmp_path, caplog):
    left = tmp_path / f"user/{USER}/.skein/{ID}"
    launcher = place.launcher(hangs=True, left=left)
    place.yarn.faults.append(lambda method, path: (500, {}, "no") if path.endswith(ID) else None)
    thread, result = in_thread(launcher.ensure, job(), ME)
    place.driver()
    launcher.cancel("told to")
    thread.join(30)
    assert [type(error) for error in result] == [Cancelled]
    assert f"could not delete file:{left}: asking for {ID}" in caplog.text


def test_slow_deletion_is_reported_before_its_process_is_killed(place, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(skeinsubmitter, "_DELETION", 1.0)
    left, over = tmp_path / f"user/{USER}/.skein/{ID}", threading.Event()
    launcher = place.launcher(hangs=True, left=left)
    place.yarn.faults.append(lambda method, path: over.wait(60) and None if path.endswith(ID) else None)
    thread, result = in_thread(launcher.ensure, job(), ME)
    place.driver()
    launcher.cancel("told to")
    thread.join(30)
    over.set()
    assert [type(error) for error in result] == [Cancelled]
    assert f"could not delete file:{left}: the deletion did not end within 1 s" in caplog.text


def test_the_deletion_has_less_time_than_its_process():
    assert skeinsubmitter._DELETION < skeinsubmitter._GRACE


@pytest.mark.parametrize("client", [True, False], ids=["hadoop", "no hadoop"])
def test_key_outside_of_staging_url_is_deleted_by_hadoops_client(place, tmp_path, caplog, client):
    """Skein's client stages on the default file system."""
    left = tmp_path / f"user/{USER}/.skein/{ID}"
    place.launcher(hangs=True, left=left)
    place.yarn.faults.append(
        lambda method, path: (
            (200, {"Content-Type": "application/json"}, '{"boolean": false}') if path.startswith("/webhdfs/") else None
        )
    )
    if client:
        place.program("hadoop", '#!/bin/sh\nfor url; do :; done\nrm -r "${url#file:}"\n')
    cluster = discover(
        place.url,
        {"HOME": "/nowhere", "HADOOP_USER_NAME": USER},
        site=Site(staging_url="hdfs://other:8020", webhdfs=(place.url,)),
    )
    launcher = Launcher(
        cluster, submit_with="skein", environ=place.environ | {"PATH": f"{place.folder / 'bin'}:/usr/bin:/bin"}
    )
    thread, result = in_thread(launcher.ensure, job(), ME)
    place.driver()
    launcher.cancel("told to")
    thread.join(30)
    assert [type(error) for error in result] == [Cancelled]
    assert left.exists() is not client
    told = f"could not delete file:{left}: it is not on hdfs://other:8020, and there is no 'hadoop' on PATH"
    assert (told in caplog.text) is not client


@pytest.mark.parametrize(
    "said, sentence",
    [
        (
            "java.lang.NoClassDefFoundError: org/apache/hadoop/mapreduce/security/TokenCache",
            "lacks hadoop-mapreduce-client-core",
        ),
        ("java.lang.IllegalArgumentException: No rules applied to ann@X.COM", "Java finds no krb5.conf for the realm"),
        ("KrbException: Cannot locate default realm", "Java finds no krb5.conf for the realm"),
        ("ERROR: JAVA_HOME /none does not exist.", "JAVA_HOME leads to no Java"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/none/bin/java'", "JAVA_HOME leads to no Java"),
        (
            "INFO client.DefaultNoHARMFailoverProxyProvider: Connecting to ResourceManager at /0.0.0.0:8032\n"
            "INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:8032. Already tried 0 time(s)",
            "Hadoop's client does not know where",
        ),
        ("SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]", "Hadoop's client does not use Kerberos"),
    ],
)
def test_a_hidden_cause_gets_a_sentence(place, monkeypatch, said, sentence):
    monkeypatch.setattr(skeinsubmitter, "_ORPHAN_SECONDS", 0.1)
    monkeypatch.setattr(
        skeinsubmitter,
        "_START",
        f"import pathlib, sys; pathlib.Path(sys.argv[2], 'driver.log').write_text({said!r}); print('broken no reason given')",
    )
    with pytest.raises(SubmissionRejected, match=rf"could not submit \(no reason given\): .*{sentence}"):
        place.launcher().submit(job())


def test_configuration_without_a_cluster_is_reported_before_java(place, tmp_path):
    with pytest.raises(SubmissionRejected, match=r"HADOOP_CONF_DIR \S+ has no core-site.xml. Copy core-site.xml"):
        place.launcher(HADOOP_CONF_DIR=str(tmp_path)).submit(job())
    assert not place.seen.exists()

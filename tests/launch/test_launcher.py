"""The launcher against a ResourceManager on the wire and a real local file system behind a viewfs mount."""

import json
import logging
import os
import re
import signal
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest
from skein import proto

from support.fake_yarn import STAMP, amount, application
from support.place import ID, REQUESTS, USER, Place, cancel_at, job
from support.waiting import until
from tf_yarn_ops.errors import (
    Cancelled,
    ClusterUnreachable,
    ResourcesImpossible,
    SpecInvalid,
    SubmissionRejected,
    WaitTimeout,
)
from tf_yarn_ops.follow import kill as killing
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Acls, Deadlines, Environment, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.retry import pause_before
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport, compose_diagnostics

ME = Identity("a training")


@pytest.fixture
def place(yarn, tmp_path):
    return Place(yarn, tmp_path / "files")


def entries(document):
    return {item["key"]: item["value"] for item in document["entry"]}


def test_the_body_is_what_skeins_driver_would_send(place):
    place.yarn.labels = {"gpu": True}
    launcher = place.launcher()
    spec = job(queue="low", priority=3, tags=["Mine"], node_label="gpu", am_memory=2048, am_vcores=2,
               acls=Acls(view_users=["bob", "eve"], view_groups=["staff"], modify_users=["*"]))
    assert launcher.submit(spec) == ID
    body = dict(place.body())
    container = body.pop("am-container-spec")
    assert body == {
        "application-id": ID, "application-name": "digits", "application-type": "skein", "queue": "low",
        "priority": 3, "max-app-attempts": 1, "unmanaged-AM": False,
        "keep-containers-across-application-attempts": False, "resource": {"memory": 2048, "vCores": 2},
        "application-tags": {"tag": ["mine", "tfy-job"]}, "app-node-label-expression": "gpu",
    }
    environment = entries(container["environment"])
    assert environment["CLASSPATH"] == ".ytf.zip<CPS>./*<CPS>/etc/hadoop/conf<CPS>/opt/hadoop/*"
    assert (environment["SKEIN_APPLICATION_ID"], environment["HADOOP_USER_NAME"], environment["LANG"]) == (
        ID, USER, "C.UTF-8")
    assert "UseSerialGC" in environment["JDK_JAVA_OPTIONS"]
    assert container["commands"]["command"] == (
        "test -e .skein.jar || exit 86; exec {{JAVA_HOME}}/bin/java -Xmx128M -Dskein.log.level=INFO -Dskein.log.directory=<LOG_DIR> "
        f"com.anaconda.skein.ApplicationMaster viewfs://mini/user/{USER}/.skein/{ID} "
        "><LOG_DIR>/application.master.log 2>&1")
    assert entries(container["application-acls"]) == {"VIEW_APP": "bob,eve staff", "MODIFY_APP": "*"}
    resources = entries(container["local-resources"])
    assert {".skein.jar", ".skein.crt", ".skein.pem", ".skein.proto", ".ytf.zip", ".ytf.job.json"} <= set(resources)
    for resource in resources.values():
        file = place.root / resource["resource"].removeprefix("viewfs://mini/")
        assert file.stat().st_size == resource["size"]
        assert file.stat().st_mtime_ns // 1_000_000 == resource["timestamp"]
    for name in (".skein.crt", ".skein.pem", ".skein.proto", ".ytf.job.json"):
        assert resources[name]["visibility"] == "APPLICATION"


def test_job_without_identity_has_the_tag_of_our_jobs(place):
    place.launcher().submit(job())
    assert place.body()["application-tags"] == {"tag": ["tfy-job"]}


def read_proto(place):
    message = proto.ApplicationSpec()
    message.ParseFromString(next(place.staging.glob(f"{ID}/*/.skein.proto")).read_bytes())
    return message


def test_specification_has_resolved_files_and_wrapped_scripts(place, tmp_path):
    data = tmp_path / "data #1 ü.csv"
    data.write_text("1,2")
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "module.py").write_text("pass")
    tasks = {"worker": TaskSpec(instances=2), "ps": TaskSpec()}
    place.launcher().submit(job(tasks=tasks, files={"data.csv": str(data), "package": str(folder)}))
    message = read_proto(place)
    assert set(message.services) == {"worker", "ps"}
    for name, service in message.services.items():
        assert service.script == f"bash .skein.sh ><LOG_DIR>/{name}.log 2>&1"
        assert {"data.csv", "package", ".skein.sh", ".skein.crt", ".skein.pem", ".ytf.zip"} <= set(service.files)
        for file in service.files.values():
            assert (file.source.scheme, file.source.host) == ("viewfs", "mini")
            assert (place.root / file.source.file.lstrip("/")).stat().st_size == file.size
            assert file.timestamp
        script = place.root / service.files[".skein.sh"].source.file.lstrip("/")
        assert re.search(rf"agent {name} \S*SKEIN_APPLICATION_ID", script.read_text())
        assert service.env["LANG"] == "C.UTF-8"
    files = message.services["worker"].files
    assert proto.File.Type.Name(files["package"].type) == "ARCHIVE"
    assert files["package"].source.file.endswith(".tar.gz")
    assert proto.File.Visibility.Name(files["data.csv"].visibility) == "PRIVATE"
    assert message.master.security.cert_file.size and message.master.security.key_file.size
    certificate = place.root / message.master.security.cert_file.source.file.lstrip("/")
    ssl.PEM_cert_to_DER_cert(certificate.read_text())


def test_the_job_file_knows_the_ports_and_the_resourcemanager(place):
    place.launcher(Site(coordinator_ports="31000-31100")).submit(job())
    document = json.loads(next(place.staging.glob(f"{ID}/*/job.json")).read_text())
    assert document["ports"] == list(range(31016, 31032))  # by the application's number
    assert document["resourcemanagers"] == [place.url]


def test_docker_containers_see_the_folders_that_the_site_names(place):
    site = Site(docker_folders=("/opt/hadoop", "/usr/java"))
    spec = job(environment=Environment.parse("docker://image:1"), input="/data")
    place.launcher(site).submit(spec)
    env = read_proto(place).services["worker"].env
    assert env["YARN_CONTAINER_RUNTIME_DOCKER_IMAGE"] == "image:1"
    assert env["YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS"] == (
        "/opt/hadoop:/opt/hadoop:ro,/usr/java:/usr/java:ro,/data:/data:ro")


def test_options_of_the_masters_java_can_be_switched_off(place):
    place.launcher(Site(am_java_options="")).submit(job())
    assert "JDK_JAVA_OPTIONS" not in entries(place.body()["am-container-spec"]["environment"])


def test_the_id_is_known_before_anything_is_staged(place):
    seen = []

    def on_reserved(application_id):
        seen.append((application_id, place.staging.exists(), place.yarn.count("POST", "/ws/v1/cluster/apps")))

    place.launcher().submit(job(), on_reserved)
    assert seen == [(ID, False, 1)]


def test_yarns_lifetime_is_the_backstop(place):
    place.launcher().submit(job(deadlines=Deadlines(queue=100, total=1000)))
    expected = datetime.fromtimestamp(STAMP / 1000 + 100 + 1000 + 300, timezone.utc)
    assert place.yarn.apps[ID]["lifetime"] == {
        "type": "LIFETIME", "expiryTime": expected.strftime("%Y-%m-%dT%H:%M:%S.000+0000")}


@pytest.mark.slow
def test_a_lifetime_is_not_stored_while_the_master_is_launched(place):
    """The ResourceManager could lose the master's token: it fails with SIMPLE authentication is not enabled."""
    looks = place.yarn.launch_after(ID, 6)
    place.launcher().submit(job())
    asked = [(method, path.rsplit("/", 1)[-1]) for method, path, *_ in place.yarn.requests]
    assert len(looks) == 7 and asked[-2:] == [("GET", ID), ("PUT", "timeout")]


@pytest.mark.slow
def test_one_that_waits_in_the_queue_gets_its_lifetime_nevertheless(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.route.LAUNCH_WAIT", 0.3)
    place.yarn.launch_after(ID, 10**9)
    place.launcher().submit(job())
    assert "lifetime" in place.yarn.apps[ID]


@pytest.mark.slow
def test_a_cancel_while_the_master_is_launched_takes_it_back(place):
    looks, launcher = place.yarn.launch_after(ID, 10**9), place.launcher()
    canceller = threading.Thread(target=lambda: (until(lambda: len(looks) >= 5), launcher.cancel()))
    canceller.start()
    with pytest.raises(Cancelled):
        launcher.submit(job())
    canceller.join()
    assert place.yarn.apps[ID]["state"] == "KILLED"


def test_an_unlimited_job_has_no_lifetime(place):
    place.launcher().submit(job(deadlines=Deadlines(total=0)))
    assert "lifetime" not in place.yarn.apps[ID]


def test_all_missing_files_are_named_before_anything_is_asked(place, tmp_path):
    launcher = place.launcher()
    asked = len(place.yarn.requests)
    spec = job(files={"a": str(tmp_path / "a.csv")}, archives={"b": str(tmp_path / "b.zip")}, script="/none/train.py")
    with pytest.raises(SpecInvalid) as raised:
        launcher.submit(spec)
    assert len(raised.value.faults) == 3
    assert [fault.path for fault in raised.value.faults] == ["files.a", "archives.b", "script"]
    assert f"files.a: there is no {tmp_path}/a.csv on this machine" in str(raised.value)
    assert len(place.yarn.requests) == asked


def test_a_name_that_no_file_can_have_is_a_missing_file(place):
    with pytest.raises(SpecInvalid, match=r"script: there is no x+ on this machine"):
        place.launcher().submit(job(script="x" * 300))


def test_path_that_is_neither_file_nor_folder_is_a_fault(place, tmp_path):
    """A pipe, as `--file conf=<(make)` gives, can be read once, and a job's files are read twice."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecInvalid, match=r"files\.a: .*/pipe is neither a file nor a folder"):
        place.launcher().submit(job(files={"a": str(tmp_path / "pipe")}))


@pytest.mark.parametrize("queue, says", [
    ("defualt", r"no queue 'defualt' \(did you mean 'default'\?\); the cluster has closed, default, low"),
    ("closed", "queue 'closed' is STOPPED and takes no applications; these do: default, low"),
    ("root", "queue 'root' has queues below it"),
])
def test_a_queue_that_takes_nothing_is_refused_before_an_id_is_reserved(place, queue, says):
    with pytest.raises(SubmissionRejected, match=says):
        place.launcher().submit(job(queue=queue))
    assert not place.yarn.count("POST", "/")


@pytest.mark.slow
def test_queues_by_their_full_path_and_queues_that_are_made_when_named(place):
    place.launcher().submit(job(queue="root.low"))
    place.yarn.queues.append({"type": "capacitySchedulerQueueInfo", "queueName": "users", "queuePath": "root.users",
                              "state": "RUNNING", "autoCreationEligibility": "flexible"})
    for queue in ("root.users.ann", "users.ann", "root.users.team.ann"):
        place.launcher().submit(job(queue=queue))
    for queue in ("root.others.ann", "ann", "low.ann"):
        with pytest.raises(SubmissionRejected, match=f"there is no queue '{queue}'"):
            place.launcher().submit(job(queue=queue))


@pytest.mark.parametrize("values, says", [
    ({"tasks": {"worker": TaskSpec(memory=99999)}}, "worker asks for 99999 MiB.*maximum allocation is 16384 MiB"),
    ({"tasks": {"worker": TaskSpec(instances=2, indices={1: {"vcores": 99}})}}, "worker:1 asks for .* 99 vcores"),
    ({"am_memory": 20000}, "the application master asks for 20000 MiB"),
    ({"tensorboard": TensorBoard(memory=20000), "output": "/x"}, "tensorboard asks for 20000 MiB"),
    ({"tasks": {"worker": TaskSpec(gpus=3)}}, "3 GPUs; the cluster's maximum .* 2 GPUs"),
])
def test_what_is_above_the_maximum_allocation_is_impossible(place, values, says):
    if "tasks" in values and values["tasks"]["worker"].indices:
        values = JobSpec.from_dict({"command": "true", "tasks": {"worker": {"instances": 2, "indices": {1: {"vcores": 99}}}}})
    else:
        values = job(**values)
    with pytest.raises(ResourcesImpossible, match=says) as raised:
        place.launcher().submit(values)
    assert raised.value.reason.exit_code == 3
    assert not place.yarn.count("POST", "/")


def test_no_node_that_could_hold_it_is_a_warning_or_refused(place, caplog):
    place.yarn.nodes = [{"state": "RUNNING", "totalResource": amount(4096, 8)}]
    spec = job(tasks={"worker": TaskSpec(memory=512, gpus=1)})
    with pytest.raises(ResourcesImpossible, match=r"no node could hold worker, .* 1 GPUs; the largest of 1 nodes: 4096"):
        place.launcher(strict_placement=True).submit(spec)
    place.launcher().submit(spec)
    assert "no node could hold worker" in caplog.text


def test_a_refused_submission_leaves_nothing(place):
    place.yarn.faults.append(lambda method, path: (
        403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "user may not submit"}}')
                             if (method, path) == ("POST", "/ws/v1/cluster/apps") else None)
    with pytest.raises(SubmissionRejected, match="user may not submit"):
        place.launcher().submit(job())
    assert place.directories() == []


def test_yarns_late_refusal_is_a_refusal(place):
    def refuse(method, path):
        if path.endswith(ID) and ID in place.yarn.apps:
            place.yarn.apps[ID].update(state="FAILED", finalStatus="FAILED",
                                       diagnostics="Application submitted by user to unknown queue: x")

    place.yarn.faults.append(refuse)
    with pytest.raises(SubmissionRejected, match="unknown queue: x"):
        place.launcher().submit(job())
    assert place.directories() == []


def test_an_application_that_runs_as_somebody_else_is_killed(place):
    def pretend(method, path):
        if path.endswith(ID) and ID in place.yarn.apps:
            place.yarn.apps[ID]["user"] = "dr.who"

    place.yarn.faults.append(pretend)
    with pytest.raises(SubmissionRejected, match=rf"ran as 'dr.who', not as '{USER}', and was killed"):
        place.launcher().submit(job())
    assert place.yarn.apps[ID]["state"] == "KILLED"
    assert place.directories() == []


def test_a_failing_callback_ends_the_submission_before_anything_is_staged(place):
    def on_reserved(application_id):
        raise RuntimeError("database gone")

    with pytest.raises(RuntimeError, match="database gone"):
        place.launcher().submit(job(), on_reserved)
    assert place.directories() == [] and place.yarn.apps == {}


def test_a_file_system_that_refuses_leaves_nothing(place):
    place.staging.parent.mkdir(parents=True)
    place.staging.write_text("a file where the staging directory should be")
    with pytest.raises(SubmissionRejected, match="staging directory"):
        place.launcher().submit(job())
    assert place.yarn.apps == {}


def test_a_resourcemanager_that_forgets_the_submission_gets_it_again(place):
    forgotten = []

    def forget(method, path):
        if path.endswith(ID) and not forgotten:
            forgotten.append(place.yarn.apps.pop(ID))

    place.yarn.faults.append(forget)
    assert place.launcher().submit(job()) == ID
    assert place.yarn.count("POST", "/ws/v1/cluster/apps") == 3


REFUSED_LOOKS = pytest.mark.parametrize("refusal", [
    (401, {"WWW-Authenticate": "Basic"}, "Authentication required"),
    (401, {"WWW-Authenticate": "Negotiate"}, "Authentication required"),
    (403, {}, "user may not look"),
], ids=["login", "ticket", "forbidden"])


@pytest.mark.slow
@REFUSED_LOOKS
def test_a_refused_look_at_a_submitted_application_is_repeated(place, refusal):
    looks = [refusal] * 3
    place.yarn.faults.append(
        lambda method, path: looks.pop() if method == "GET" and path.endswith(ID) and looks else None)
    assert place.launcher().submit(job()) == ID
    assert place.yarn.apps[ID]["state"] == "ACCEPTED" and place.directories() == [ID] and not looks


@pytest.mark.slow
@REFUSED_LOOKS
def test_looks_that_stay_refused_are_no_refusal_of_the_application(place, monkeypatch, refusal):
    """YARN has accepted it: it needs its files, and another way to YARN would submit a second one."""
    monkeypatch.setattr("tf_yarn_ops.submit.rest._ACCEPT_TIMEOUT", 0.2)
    client = place.launcher()
    place.yarn.faults.append(lambda method, path: refusal if method == "GET" and path.endswith(ID) else None)
    with pytest.raises(ClusterUnreachable, match=f"{ID} is in an unknown state .* s after it was submitted, .*ResourceManager's log"):
        client.ensure(job(), Identity("a"))
    assert place.yarn.apps[ID]["state"] == "ACCEPTED" and place.directories() == [ID]


@pytest.mark.slow
def test_a_resourcemanager_that_answers_may_take_longer_to_accept(place, monkeypatch, caplog):
    """It renews the tokens first, and its NameNodes may be slow; seen on a loaded secured cluster for 30 s."""
    caplog.set_level("INFO", "tf_yarn_ops")
    monkeypatch.setattr("tf_yarn_ops.submit.rest._ACCEPT_TIMEOUT", 0.2)
    monkeypatch.setattr("tf_yarn_ops.submit.rest._SLOW", 0.1)
    states = ["ACCEPTED", *["SUBMITTED"] * 7]  # the pauses between these looks add up to 0.6 s

    def show(method, path):
        if method == "GET" and path.endswith(ID) and ID in place.yarn.apps and states:
            place.yarn.apps[ID]["state"] = states.pop()

    place.yarn.faults.append(show)
    assert place.launcher().submit(job()) == ID
    assert not states and place.directories() == [ID]
    assert caplog.text.count(f"{ID} is SUBMITTED") == 1


@pytest.mark.parametrize("method, start", REQUESTS)
def test_cancelled_in_each_gap_leaves_nothing(place, method, start):
    launcher = place.launcher()
    cancel_at(place, launcher, method, start)
    with pytest.raises(Cancelled):
        launcher.submit(job())
    assert [app["state"] for app in place.yarn.apps.values() if app["state"] in LIVE] == []
    assert place.directories() == []


def test_cancelled_when_the_id_becomes_known_leaves_nothing(place):
    launcher = place.launcher()
    with pytest.raises(Cancelled):
        launcher.submit(job(), lambda application_id: launcher.cancel())
    assert place.yarn.apps == {} and place.directories() == []


@pytest.mark.slow
def test_a_second_submission_writes_no_cached_file(place):
    launcher = place.launcher()
    launcher.submit(job())
    before = {path: path.stat().st_mtime_ns for path in (place.staging / "cache").rglob("*") if path.is_file()}
    assert {path.name for path in before} == {"skein.jar", "runtime.zip", "service.sh"}
    place.launcher().submit(job())
    after = {path: path.stat().st_mtime_ns for path in (place.staging / "cache").rglob("*") if path.is_file()}
    assert after == before


def finish(place, reason=Reason.SUCCEEDED, final="SUCCEEDED", state="FINISHED", **fields):
    own = JobReport(ID, reason=reason, message="so it ended", **fields)
    place.yarn.apps[ID].update(state=state, finalStatus=final, finishedTime=STAMP + 9000,
                               diagnostics=compose_diagnostics(own))


def test_wait_reports_each_change_once_and_deletes_the_directory(place):
    launcher = place.launcher()
    launcher.submit(job())
    assert place.directories() == [ID]
    changes = []
    steps = [lambda: None, lambda: place.yarn.apps[ID].update(state="RUNNING"), lambda: None, lambda: finish(place)]
    place.yarn.faults.append(lambda method, path: steps.pop(0)() if path.endswith(ID) and steps else None)
    report = launcher.wait(ID, on_change=changes.append, poll_interval=0.01)
    assert report.reason is Reason.SUCCEEDED
    assert [change.state for change in changes] == ["ACCEPTED", "RUNNING", "FINISHED"]
    assert place.directories() == []


def test_the_live_report_comes_through_the_tracking_url(place):
    live = JobReport(ID, message="1 of 2 tasks run.", tasks=(TaskReport("worker:0", "running"),))
    document = live.to_dict() | {"cluster_spec": {"worker": ["a:1", "b:2"]}}
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    launcher = place.launcher()
    assert launcher.report(ID).message == "1 of 2 tasks run."
    asked = [parameters for _, path, parameters, _, _ in place.yarn.requests if path.endswith("/status.json")]
    assert [parameters.get("only") for parameters in asked] == ["report"]  # the rest is large for many tasks
    assert launcher.cluster_spec(ID) == {"worker": ["a:1", "b:2"]}


@pytest.mark.parametrize("kind, text", [("text/html", "<html>"), ("application/json", "{"), ("application/json", "[]"),
                                        ("application/json", '{"schema": 99, "application_id": "x"}')])
def test_without_a_live_report_yarns_words_are_given(place, kind, text):
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = (kind, text)
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    report = place.launcher().report(ID)
    assert (report.state, report.tasks) == ("RUNNING", ())
    assert place.launcher().cluster_spec(ID) is None


def test_an_unknown_application_is_lost(place):
    launcher = place.launcher()
    assert launcher.report(ID).reason is Reason.LOST
    assert launcher.wait(ID, poll_interval=0.01).exit_code == 9


def test_one_answer_unknown_is_not_yet_lost(place):
    place.yarn.add(application(1, user=USER))
    answers = [(404, {"Content-Type": "application/json"}, "{}")]
    place.yarn.faults.append(lambda method, path: answers.pop() if path.endswith(ID) and answers else None)
    threading.Timer(0.2, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED


def test_a_wait_of_the_callers_own_runs_out_and_the_job_goes_on(place):
    place.yarn.add(application(1, user=USER))
    with pytest.raises(WaitTimeout, match=r"has not ended after 0.1 s \(RUNNING, .*it goes on"):
        place.launcher().wait(ID, timeout=0.1, poll_interval=0.02)
    assert place.yarn.apps[ID]["state"] == "RUNNING"


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_while_waiting_is_not_the_end_of_the_wait(place, status):
    """A ticket that was refused once, or a proxy's 403: the application runs on."""
    place.yarn.add(application(1, user=USER))
    refused = [True] * 3
    place.yarn.faults.append(lambda method, path: (status, {}, "no") if path.endswith(ID) and refused and refused.pop()
                             else None)
    threading.Timer(0.3, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED
    assert not refused


@pytest.mark.slow
def test_a_resourcemanager_that_is_away_is_waited_for(place):
    place.yarn.add(application(1, user=USER))
    away = [True] * 3
    place.yarn.faults.append(lambda method, path: (503, {}, "starting") if path.endswith(ID) and away and away.pop()
                             else None)
    threading.Timer(0.3, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_away_for_longer_than_the_site_allows_is_an_error(place):
    launcher = place.launcher(Site(unreachable_timeout=0.1))
    place.yarn.faults.append(lambda method, path: (503, {}, "gone"))
    with pytest.raises(ClusterUnreachable, match=r"waited .* s for application_"):
        launcher.wait(ID, poll_interval=0.02)


@pytest.mark.slow
def test_cancel_ends_a_wait_by_a_kill(place):
    launcher = place.launcher()
    launcher.submit(job())
    threading.Timer(0.2, launcher.cancel).start()
    with pytest.raises(Cancelled, match="was cancelled, and killed"):
        launcher.wait(ID, poll_interval=0.02)
    assert launcher.report(ID).message == "Cancelled by the client that waited for it"
    assert place.directories() == []


def raising(error):
    def on_change(report):
        raise error
    return on_change


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_ctrl_c_and_exit_kill_what_run_waits_for(place, error, caplog):
    with pytest.raises(type(error)):
        place.launcher().run(job(), on_change=raising(error))
    assert (place.yarn.apps[ID]["state"], place.directories()) == ("KILLED", [])
    assert f"killing {ID} after {type(error).__name__}" in caplog.text


def test_second_ctrl_c_leaves_the_kill_and_names_the_application(place, caplog):
    def press(method, path):
        if method == "PUT" and path.endswith("/state"):
            os.kill(os.getpid(), signal.SIGINT)
            return 503, {}, "busy"
        return None

    place.yarn.faults.append(press)
    with pytest.raises(KeyboardInterrupt):
        place.launcher().run(job(), on_change=raising(KeyboardInterrupt()))
    assert f"{ID} may still run (KeyboardInterrupt); next: ytf kill {ID}" in caplog.text


def test_ctrl_c_leaves_the_application_of_another_client(place):
    place.launcher().submit(job())
    with pytest.raises(KeyboardInterrupt):
        place.launcher().wait(ID, on_change=raising(KeyboardInterrupt()))
    assert place.yarn.apps[ID]["state"] == "ACCEPTED"


@pytest.mark.parametrize("lease, identity, leased", [(None, None, True), (0, None, False), (None, ME, False)])
def test_run_without_identity_has_a_lease_by_default(place, lease, identity, leased):
    with pytest.raises(KeyboardInterrupt):
        place.launcher().run(job(lease=lease), identity, on_change=raising(KeyboardInterrupt()))
    ends = [body["timeout"]["expiryTime"] for method, path, _, _, body in place.yarn.requests if path.endswith("/timeout")]
    assert [".777" in end for end in ends] == [leased]


@pytest.mark.parametrize("way", ["cancel", "Ctrl-C"])
@pytest.mark.timeout(120)
def test_transfer_of_a_large_file_shows_progress_and_can_be_ended(place, tmp_path, way):
    """It would take hours to read this file."""
    with open(tmp_path / "model.bin", "wb") as file:
        file.truncate(1 << 40)
    launcher, told = place.launcher(), []

    class End(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())
            launcher.cancel() if way == "cancel" else os.kill(os.getpid(), signal.SIGINT)

    transfers = logging.getLogger("tf_yarn_ops.transfers")
    transfers.addHandler(handler := End())
    transfers.setLevel(logging.INFO)
    try:
        with pytest.raises(Cancelled if way == "cancel" else KeyboardInterrupt):
            launcher.submit(job(files={"model.bin": str(tmp_path / "model.bin")}))
    finally:
        transfers.removeHandler(handler)
    assert re.fullmatch(r"reading model.bin: \d+ of 1048576 MiB", told[0])
    assert (place.yarn.apps, place.directories()) == ({}, [])


@pytest.mark.slow
def test_submission_that_ends_leaves_another_ones_transfer_alone(place, tmp_path):
    """Several threads may submit by one launcher."""
    with open(tmp_path / "model.bin", "wb") as file:
        file.truncate(1 << 29)
    launcher = place.launcher()
    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(launcher.submit, job(files={"model.bin": str(tmp_path / "model.bin")}))
        until(lambda: place.directories(), 30, what="the begin of the large submission")
        small = launcher.submit(job())
        assert not large.done(), "the small submission has to end first"
        assert large.result(120) != small


def test_yarn_keeps_why_a_job_was_cancelled(place):
    launcher = place.launcher()
    launcher.submit(job())
    launcher.cancel("the scheduler has gone")
    with pytest.raises(Cancelled):
        launcher.wait(ID, poll_interval=0.05)
    assert launcher.report(ID).message == "the scheduler has gone"
    assert "the scheduler has gone" in place.yarn.apps[ID]["diagnostics"]


def test_yarn_keeps_why_a_submission_was_taken_back(place):
    launcher = place.launcher()
    place.yarn.faults.append(lambda method, path: launcher.cancel("not wanted any more")
                             if method == "POST" and path == "/ws/v1/cluster/apps" else None)
    with pytest.raises(Cancelled):
        launcher.submit(job())
    assert "not wanted any more" in place.yarn.apps[ID]["diagnostics"]


def test_kill_says_why_waits_and_deletes(place):
    launcher = place.launcher()
    launcher.submit(job())
    report = launcher.kill(ID, "Ann wants it")
    assert (report.state, report.reason, report.message) == ("KILLED", Reason.KILLED, "Ann wants it")
    assert place.directories() == []
    assert launcher.kill(ID, "again").message == "Ann wants it"
    assert place.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1


@pytest.mark.slow
@pytest.mark.parametrize("forgets", ["the kill", "the application at the kill", "the application after the kill"])
def test_a_kill_is_repeated_where_a_restart_has_lost_it(place, monkeypatch, forgets):
    """A ResourceManager that recovers knows no application for a while, and no kill that it had not yet done."""
    monkeypatch.setattr(killing, "_ASK_AGAIN", 0.2)
    launcher = place.launcher()
    launcher.submit(job())
    yarn, looks = place.yarn, []

    def restart(method, path):
        if path.endswith("/info") and yarn.ha_state != "ACTIVE":
            looks.append(path)
            yarn.ha_state = "ACTIVE" if len(looks) > 2 else "INITIALIZING"
        elif ID in path and yarn.ha_state != "ACTIVE":
            return 404, {}, ""
        elif method == "PUT" and yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1:
            yarn.ha_state = "ACTIVE" if forgets == "the kill" else "INITIALIZING"
            return (404, {}, "") if "at the kill" in forgets else (202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}')
        return None

    yarn.faults.append(restart)
    assert launcher.kill(ID, "Ann wants it").message == "Ann wants it"
    assert yarn.apps[ID]["state"] == "KILLED" and place.directories() == []
    assert yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") >= 2 and len(looks) == (0 if forgets == "the kill" else 3)


def test_a_kill_that_may_not_take_any_time_is_sent_all_the_same(place):
    launcher = place.launcher()
    launcher.submit(job())
    place.yarn.faults.append(lambda method, path: (202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}')
                             if method == "PUT" else None)
    with pytest.raises(ClusterUnreachable, match="0 s after the kill"):
        launcher.kill(ID, timeout=0)
    assert place.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1


def test_what_yarn_has_dropped_under_a_kill_is_lost(place):
    launcher = place.launcher()
    launcher.submit(job())
    place.yarn.faults.append(lambda method, path: place.yarn.apps.pop(ID, None) and None if method == "PUT" else None)
    assert launcher.kill(ID, "Ann wants it").reason is Reason.LOST


def test_kill_of_a_reserved_id_that_yarn_does_not_know_is_a_success(place):
    launcher = place.launcher()
    launcher.staging(USER).directory(ID).make()
    assert launcher.kill(ID, "not wanted").reason is Reason.KILLED
    assert place.directories() == []


def test_refused_kill_is_reported(place):
    place.yarn.add(application(1, user="bob"))
    place.yarn.faults.append(lambda method, path: (
        403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "bob only"}}')
                             if method == "PUT" else None)
    with pytest.raises(SubmissionRejected, match=r"killing application_.*: YARN answers 403: bob only"):
        place.launcher().kill(ID, "mine")


def test_the_queue_deadline_kills_with_its_own_reason(place):
    launcher = place.launcher()
    launcher.submit(job(deadlines=Deadlines(queue=30)))
    place.yarn.apps[ID].update(launchTime=0, elapsedTime=31_000, diagnostics="AM container is pending")
    report = launcher.wait(ID, poll_interval=0.02)
    assert (report.reason, report.retryable) == (Reason.QUEUE_TIMEOUT, True)
    assert "waited in queue default for 31 s, longer than the 30 s" in report.message


#: What YARN says of an application whose master it could not launch.
NOT_LAUNCHED = "failed 1 times (local limit is =1) due to Error launching appattempt_1_0001_000001. Got exception: x"


@pytest.mark.slow
def test_refused_kill_at_the_queue_deadline_keeps_the_wait_going(place, caplog):
    launcher = place.launcher()
    launcher.submit(job(deadlines=Deadlines(queue=30)))
    place.yarn.apps[ID].update(state="ACCEPTED", elapsedTime=31_000)
    kills = []

    def refuse(method, path):
        if method == "PUT" and path.endswith("/state"):
            kills.append(path)
            if len(kills) == 3:
                place.yarn.apps[ID].update(state="FINISHED", finalStatus="SUCCEEDED")
            return 403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "not yours"}}'
        return None

    place.yarn.faults.append(refuse)
    assert launcher.wait(ID, timeout=60, poll_interval=0.01).reason is Reason.SUCCEEDED
    assert len(kills) == 3
    told = [record.getMessage() for record in caplog.records if "could not be killed" in record.getMessage()]
    assert len(told) == 1 and told[0].startswith(f"{ID} is over its queue deadline") and "not yours" in told[0]


def end_each(place, *reasons):
    """End each submitted application in turn with a reason or YARN's words, once it is asked for a second time."""
    left = list(reasons)
    seen = set()

    def fault(method, path):
        name = path.rsplit("/", 1)[-1]
        app = place.yarn.apps.get(name)
        if method == "GET" and app and app["state"] in LIVE:
            if name in seen:
                reason = left.pop(0)
                final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
                said = isinstance(reason, Reason)
                app.update(state="FINISHED" if said else "FAILED", finalStatus=final, diagnostics=compose_diagnostics(
                    JobReport(name, reason=reason, message="x")) if said else reason)
            seen.add(name)

    place.yarn.faults.append(fault)


@pytest.mark.slow
def test_a_job_that_missed_its_allocation_is_submitted_again(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.RETRY_PAUSE", 0.01)
    end_each(place, Reason.ALLOCATION_TIMEOUT, Reason.ALLOCATION_TIMEOUT, Reason.SUCCEEDED)
    ids = []
    spec = job(restart=RestartPolicy(allocation_retries=2))
    report = place.launcher().run(spec, on_reserved=ids.append, poll_interval=0.01)
    assert report.reason is Reason.SUCCEEDED
    assert len(ids) == 3


@pytest.mark.parametrize("reason, submitted", [
    (Reason.SUCCEEDED, 0), (Reason.TASK_FAILED, 0), (Reason.KILLED, 0), (Reason.ALLOCATION_TIMEOUT, 1)])
def test_only_a_job_without_training_is_submitted_after_a_known_end(place, monkeypatch, reason, submitted):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.RETRY_PAUSE", 0.01)
    end_each(place, Reason.SUCCEEDED)
    known = JobReport("application_1_0001", state="FINISHED", reason=reason)
    report = place.launcher().run(job(restart=RestartPolicy(allocation_retries=1)), after=known, poll_interval=0.01)
    assert (report.reason if submitted else report) == (Reason.SUCCEEDED if submitted else known)
    assert len(place.yarn.apps) == submitted


@pytest.mark.slow
def test_pause_before_a_retry_grows_with_jitter(place, monkeypatch, caplog):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.RETRY_PAUSE", 0.02)
    pauses = {retry: [pause_before(retry) for _ in range(200)] for retry in (1, 2, 3)}
    for retry, seconds in pauses.items():
        assert 0.01 * retry <= min(seconds) < 0.018 * retry < 0.022 * retry < max(seconds) <= 0.03 * retry
    monkeypatch.setattr("tf_yarn_ops.launch.retry.pause_before", lambda retry: retry / 100)
    end_each(place, *[Reason.ALLOCATION_TIMEOUT] * 3, Reason.SUCCEEDED)
    caplog.set_level("INFO", "tf_yarn_ops.launch.retry")
    place.launcher().run(job(restart=RestartPolicy(allocation_retries=3)), poll_interval=0.01)
    assert [record.args[1] for record in caplog.records if record.name.endswith("retry")] == [0.01, 0.02, 0.03]


@pytest.mark.slow
def test_and_not_more_often_than_allowed(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.RETRY_PAUSE", 0.01)
    end_each(place, Reason.ALLOCATION_TIMEOUT, Reason.ALLOCATION_TIMEOUT, Reason.SUCCEEDED)
    report = place.launcher().run(job(restart=RestartPolicy(allocation_retries=1)), poll_interval=0.01)
    assert report.reason is Reason.ALLOCATION_TIMEOUT
    assert len(place.yarn.apps) == 2


@pytest.mark.slow
@pytest.mark.parametrize("failures, reason", [(1, Reason.SUCCEEDED), (2, Reason.SUCCEEDED), (3, Reason.AM_FAILED)])
def test_a_job_whose_master_could_not_be_launched_is_submitted_again_twice(place, monkeypatch, failures, reason):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.LAUNCH_PAUSE", 0.01)
    end_each(place, *[NOT_LAUNCHED] * failures, Reason.SUCCEEDED)
    report = place.launcher().run(job(), poll_interval=0.01)
    assert report.reason is reason
    assert len(place.yarn.apps) == min(3, failures + 1)


def test_list_gives_the_users_applications_of_skein(place):
    place.yarn.add(application(1, user=USER, startedTime=1000))
    place.yarn.add(application(2, user=USER, startedTime=2000))
    place.yarn.add(application(3, user="bob"))
    place.yarn.add(application(4, "FINISHED", user=USER))
    place.yarn.add(application(5, user=USER, applicationType="SPARK"))
    assert [report.application_id[-1] for report in place.launcher().list()] == ["2", "1"]
    assert [report.application_id[-1] for report in place.launcher().list(states=["FINISHED"])] == ["4"]


@pytest.mark.slow
def test_closed_http_falls_back_to_skein_and_says_so(place, caplog):
    caplog.set_level("INFO")
    place.yarn.faults.append(lambda method, path: (
        403, {"Content-Type": "application/json"},
        '{"RemoteException": {"message": "App submission via REST is disabled."}}')
                             if (method, path) == ("POST", "/ws/v1/cluster/apps") else None)
    with pytest.raises(SubmissionRejected, match="needs Hadoop's client: no 'yarn' on PATH"):
        place.launcher(environ={"PATH": "/none"}).submit(job())
    assert "submitting with Skein's Java client, because HTTP is closed" in caplog.text
    with pytest.raises(SubmissionRejected, match="via REST is disabled"):
        place.launcher(submit_with="rest").submit(job())
    assert place.directories() == []


def test_a_secured_cluster_whose_addresses_are_not_known_goes_by_skein(place, caplog):
    caplog.set_level("INFO")
    place.yarn.conf["hadoop.security.authentication"] = "kerberos"
    with pytest.raises(SubmissionRejected, match="no 'yarn' on PATH"):
        place.launcher(environ={"PATH": "/none"}).submit(job())
    assert "Skein's Java client, because HTTP is closed: the address of the ResourceManager for Hadoop's" in caplog.text


def test_no_secret_is_logged(place, caplog):
    caplog.set_level("DEBUG")
    place.launcher().submit(job(env={"PASSWORD": "hunter2"}, command="train --token hunter2"))
    assert "hunter2" not in caplog.text and "PRIVATE KEY" not in caplog.text


@pytest.mark.slow
def test_the_sweep_deletes_what_ended_unseen(place):
    launcher = place.launcher()
    launcher.submit(job())
    finish(place)
    place.launcher().submit(job())
    until(lambda: ID not in place.directories())
    assert len(place.directories()) == 1


def test_the_launcher_reads_a_relative_script_from_the_working_directory(place, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print(1)")
    monkeypatch.chdir(tmp_path)
    place.launcher().submit(job(script="train.py"))
    file = read_proto(place).services["worker"].files["train.py"]
    assert Path(file.source.file).name == "train.py"

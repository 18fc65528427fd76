"""Submissions over HTTP."""

import json
import logging
import os
import re
import signal
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest
from skein import proto

from support.fake_yarn import amount
from support.place import ID, USER, job, read_proto
from support.waiting import until
from tf_yarn_ops.errors import (
    Cancelled,
    ClusterUnreachable,
    ResourcesImpossible,
    SubmissionRejected,
)
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Acls, Environment, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.contract import VERDICT_SECRET
from tf_yarn_ops.runtime.common.report import verdict_tag


def entries(document):
    return {item["key"]: item["value"] for item in document["entry"]}


def test_the_body_is_what_skeins_driver_would_send(place):
    place.yarn.labels = {"gpu": True}
    launcher = place.launcher()
    spec = job(
        queue="low",
        priority=3,
        tags=["Mine"],
        node_label="gpu",
        am_memory=2048,
        am_vcores=2,
        acls=Acls(view_users=["bob", "eve"], view_groups=["staff"], modify_users=["*"]),
    )
    assert launcher.submit(spec) == ID
    body = dict(place.body())
    container = body.pop("am-container-spec")
    environment = entries(container["environment"])
    assert body == {
        "application-id": ID,
        "application-name": "digits",
        "application-type": "skein",
        "queue": "low",
        "priority": 3,
        "max-app-attempts": 1,
        "unmanaged-AM": False,
        "keep-containers-across-application-attempts": False,
        "resource": {"memory": 2048, "vCores": 2},
        "application-tags": {"tag": ["mine", "tfy-job", verdict_tag(environment[VERDICT_SECRET])]},
        "app-node-label-expression": "gpu",
        "am-container-node-label-expression": "gpu",
    }
    assert environment["CLASSPATH"] == ".ytf.zip<CPS>./*<CPS>/etc/hadoop/conf<CPS>/opt/hadoop/*"
    assert (environment["SKEIN_APPLICATION_ID"], environment["HADOOP_USER_NAME"], environment["LANG"]) == (
        ID,
        USER,
        "C.UTF-8",
    )
    assert "UseSerialGC" in environment["JDK_JAVA_OPTIONS"]
    assert container["commands"]["command"] == (
        "test -e .skein.jar || exit 86; exec {{JAVA_HOME}}/bin/java -Xmx128M -Dskein.log.level=INFO -Dskein.log.directory=<LOG_DIR> "
        f"com.anaconda.skein.ApplicationMaster viewfs://mini/user/{USER}/.skein/{ID} "
        "><LOG_DIR>/application.master.log 2>&1"
    )
    assert entries(container["application-acls"]) == {"VIEW_APP": "bob,eve staff", "MODIFY_APP": "*"}
    resources = entries(container["local-resources"])
    assert {".skein.jar", ".skein.crt", ".skein.pem", ".skein.proto", ".ytf.zip", ".ytf.job.json"} <= set(resources)
    for resource in resources.values():
        file = place.root / resource["resource"].removeprefix("viewfs://mini/")
        assert file.stat().st_size == resource["size"]
        assert file.stat().st_mtime_ns // 1_000_000 == resource["timestamp"]
    for name in (".skein.crt", ".skein.pem", ".skein.proto", ".ytf.job.json"):
        assert resources[name]["visibility"] == "APPLICATION"


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
        assert service.script == f"exec bash .skein.sh ><LOG_DIR>/{name}.log 2>&1"
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
        "/opt/hadoop:/opt/hadoop:ro,/usr/java:/usr/java:ro,/data:/data:ro"
    )


def test_options_of_the_masters_java_can_be_switched_off(place):
    place.launcher(Site(am_java_options="")).submit(job())
    assert "JDK_JAVA_OPTIONS" not in entries(place.body()["am-container-spec"]["environment"])


@pytest.mark.parametrize(
    "queue, says",
    [
        ("defualt", r"no queue 'defualt' \(did you mean 'default'\?\); the cluster has closed, default, low"),
        ("closed", "queue 'closed' is STOPPED and takes no applications; these do: default, low"),
        ("root", "queue 'root' has queues below it"),
    ],
)
def test_a_queue_that_takes_nothing_is_refused_before_an_id_is_reserved(place, queue, says):
    with pytest.raises(SubmissionRejected, match=says):
        place.launcher().submit(job(queue=queue))
    assert not place.yarn.count("POST", "/")


@pytest.mark.parametrize(
    "values, says",
    [
        ({"tasks": {"worker": TaskSpec(memory=99999)}}, "worker asks for 99999 MiB.*maximum allocation is 16384 MiB"),
        ({"tasks": {"worker": TaskSpec(instances=2, indices={1: {"vcores": 99}})}}, "worker:1 asks for .* 99 vcores"),
        ({"am_memory": 20000}, "the application master asks for 20000 MiB"),
        ({"tensorboard": TensorBoard(memory=20000), "output": "/x"}, "tensorboard asks for 20000 MiB"),
        ({"tasks": {"worker": TaskSpec(gpus=3)}}, "3 GPUs; the cluster's maximum .* 2 GPUs"),
    ],
)
def test_what_is_above_the_maximum_allocation_is_impossible(place, values, says):
    if "tasks" in values and values["tasks"]["worker"].indices:
        values = JobSpec.from_dict(
            {"command": "true", "tasks": {"worker": {"instances": 2, "indices": {1: {"vcores": 99}}}}}
        )
    else:
        values = job(**values)
    with pytest.raises(ResourcesImpossible, match=says) as raised:
        place.launcher().submit(values)
    assert raised.value.reason.exit_code == 3
    assert not place.yarn.count("POST", "/")


def test_no_node_that_could_hold_it_is_a_warning_or_refused(place, caplog):
    place.yarn.nodes = [{"state": "RUNNING", "totalResource": amount(4096, 8)}]
    spec = job(tasks={"worker": TaskSpec(memory=512, gpus=1)})
    with pytest.raises(
        ResourcesImpossible, match=r"no node could hold worker, .* 1 GPUs; the largest of 1 nodes: 4096"
    ):
        place.launcher(strict_placement=True).submit(spec)
    place.launcher().submit(spec)
    assert "no node could hold worker" in caplog.text


def test_a_refused_submission_leaves_nothing(place):
    place.yarn.faults.append(
        lambda method, path: (
            (403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "user may not submit"}}')
            if (method, path) == ("POST", "/ws/v1/cluster/apps")
            else None
        )
    )
    with pytest.raises(SubmissionRejected, match="user may not submit"):
        place.launcher().submit(job())
    assert place.directories() == []


def test_yarns_late_refusal_is_a_refusal(place):
    def refuse(method, path):
        if path.endswith(ID) and ID in place.yarn.apps:
            place.yarn.apps[ID].update(
                state="FAILED", finalStatus="FAILED", diagnostics="Application submitted by user to unknown queue: x"
            )

    place.yarn.faults.append(refuse)
    with pytest.raises(SubmissionRejected, match="unknown queue: x"):
        place.launcher().submit(job())
    assert place.directories() == []


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


REFUSED_LOOKS = pytest.mark.parametrize(
    "refusal",
    [
        (401, {"WWW-Authenticate": "Basic"}, "Authentication required"),
        (401, {"WWW-Authenticate": "Negotiate"}, "Authentication required"),
        (403, {}, "user may not look"),
    ],
    ids=["login", "ticket", "forbidden"],
)


@pytest.mark.slow
@REFUSED_LOOKS
def test_a_refused_look_at_a_submitted_application_is_repeated(place, refusal):
    looks = [refusal] * 3
    place.yarn.faults.append(
        lambda method, path: looks.pop() if method == "GET" and path.endswith(ID) and looks else None
    )
    assert place.launcher().submit(job()) == ID
    assert place.yarn.apps[ID]["state"] == "ACCEPTED" and place.directories() == [ID] and not looks


@pytest.mark.slow
@REFUSED_LOOKS
def test_looks_that_stay_refused_are_no_refusal_of_the_application(place, monkeypatch, refusal):
    """YARN has accepted it: it needs its files, and another way to YARN would submit a second one."""
    monkeypatch.setattr("tf_yarn_ops.submit.rest._ACCEPT_TIMEOUT", 0.2)
    client = place.launcher()
    place.yarn.faults.append(lambda method, path: refusal if method == "GET" and path.endswith(ID) else None)
    with pytest.raises(
        ClusterUnreachable, match=f"{ID} is in an unknown state .* s after it was submitted, .*ResourceManager's log"
    ):
        client.ensure(job(), Identity("a"))
    assert place.yarn.apps[ID]["state"] == "ACCEPTED" and place.directories() == [ID]


def test_a_resourcemanager_that_answers_may_take_longer_to_accept(place, monkeypatch, caplog):
    """It renews the tokens first, and its NameNodes may be slow; seen on a loaded secured cluster for 30 s."""
    monkeypatch.setattr("tf_yarn_ops.submit.rest._ACCEPT_TIMEOUT", 0.02)
    monkeypatch.setattr("tf_yarn_ops.submit.rest._SLOW", 0.01)
    monkeypatch.setattr("tf_yarn_ops.submit.rest._NEXT_LINE", 0.02)
    states = ["ACCEPTED", *["SUBMITTED"] * 5]  # the pauses between these looks add up to 0.15 s

    def show(method, path):
        if method == "GET" and path.endswith(ID) and ID in place.yarn.apps and states:
            place.yarn.apps[ID]["state"] = states.pop()

    place.yarn.faults.append(show)
    assert place.launcher().submit(job()) == ID
    assert not states and place.directories() == [ID]
    lines = [record.levelname for record in caplog.records if f"{ID} is SUBMITTED" in record.getMessage()]
    assert len(lines) >= 2 and set(lines) == {"WARNING"}, "a terminal and the engines show it, and again"


@pytest.mark.slow
def test_a_second_submission_writes_no_cached_file(place):
    launcher = place.launcher()
    launcher.submit(job())
    before = {path: path.stat().st_mtime_ns for path in (place.staging / "cache").rglob("*") if path.is_file()}
    assert {path.name for path in before} == {"skein.jar", "runtime.zip", "service.sh"}
    place.launcher().submit(job())
    after = {path: path.stat().st_mtime_ns for path in (place.staging / "cache").rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.slow
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

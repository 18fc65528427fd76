"""Each check on the wire: what it finds, and which symptom it tells for each fault."""

import json
import re
import sys
import threading
from dataclasses import replace

import pytest

from support.fake_yarn import FakeYarn, closed_address, serving
from tf_yarn_ops.doctor.examination import Diagnosis, examine
from tf_yarn_ops.doctor.findings import well
from tf_yarn_ops.doctor.known import KnownFacts, Question
from tf_yarn_ops.doctor.reach import check_security, check_ticket
from tf_yarn_ops.doctor.symptoms import CheckOutcome, Symptom
from tf_yarn_ops.doctor.table import CHECKS, Check
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.hadoop.cluster import Cluster, current_user
from tf_yarn_ops.hadoop.security.tickets import Tickets
from tf_yarn_ops.hadoop.site import Site

USER = current_user({})
LEAF = {"type": "capacitySchedulerLeafQueueInfo", "queueName": "default", "queuePath": "root.default", "state": "RUNNING",
        "absoluteCapacity": 80.0, "absoluteMaxCapacity": 100.0, "numApplications": 3, "maxApplications": 8000,
        "maxParallelApps": 2**31 - 1, "maxApplicationLifetime": 86400}


@pytest.fixture
def healthy(yarn, tmp_path):
    """Return a fake cluster on which every check is ok, but for those that only a real one passes."""
    program = tmp_path / "bin" / "yarn"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    files = tmp_path / "files"
    files.mkdir()
    yarn.program, yarn.files = program, files
    yarn.conf |= {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{files}"}
    yarn.rights = {"SUBMIT_APPLICATIONS": True, "ADMINISTER_QUEUE": False}
    yarn.queues = [dict(LEAF)]
    yarn.nodes = [{**yarn.nodes[0], "nodeHTTPAddress": yarn.url.removeprefix("http://"), "version": "3.4.3"}]
    return yarn


def question(yarn, site=None, **values):
    environ = {"HOME": "/nowhere", "HADOOP_USER_NAME": USER, "PATH": str(yarn.program.parent)}
    return Question(environ, values.pop("url", yarn.url), site=site or Site(request_timeout=2), **values)


def diagnose(yarn, site=None, checks=CHECKS, **values):
    return examine(question(yarn, site, **values), checks=checks)


def of(diagnosis: Diagnosis, name: str):
    return next(result.finding for result in diagnosis.results if result.check == name)


def outcomes(diagnosis):
    return {result.check: result.finding.outcome.value for result in diagnosis.results}


def test_a_healthy_cluster_has_no_fault(healthy):
    diagnosis = diagnose(healthy)
    expected = dict.fromkeys([check.name for check in CHECKS], "ok") | {"security": "warning"}
    expected |= dict.fromkeys(["ticket", "tokens", "application"], "skipped")
    assert outcomes(diagnosis) == expected, diagnosis
    assert (diagnosis.exit_code, diagnosis.first_fault, diagnosis.hanging) == (0, None, False)
    said = {result.check: result.finding.message for result in diagnosis.results}
    assert said["configuration"] == f"{healthy.url} from --resourcemanager"
    assert said["resourcemanager"] == f"{healthy.url} ACTIVE, Hadoop 3.4.3"
    assert said["identity"] == f"{USER}; Hadoop 3.4.3, viewfs://mini"
    assert said["staging"] == f"wrote, read and deleted a file in viewfs://mini/user/{USER}/.skein"
    assert said["rights"] == f"/user/{USER}/.skein: owner {USER}, mode 711"
    assert said["submission"] == "over HTTP; a container may have 16384 MiB, 32 vcores, 2 GPUs"
    assert said["queue"] == (f"{USER} may submit to default; 80 % of the cluster, at most 100 %; 3 of 8000 applications; "
                             "YARN ends applications after 86400 s")
    assert said["queue_acl"] == "only some users may kill other users' applications in default"
    assert said["nodes"] == "1 running, Hadoop 3.4.3; 1 asked, all answer"
    assert said["clock"] == "the same time, within 1 s"


def test_nothing_stays_on_the_cluster(healthy):
    diagnose(healthy)
    assert not healthy.apps
    assert sorted(path.name for path in (healthy.files / "user" / USER / ".skein").iterdir()) == ["cache"]


def test_document_is_plain_json_and_complete(healthy):
    document = json.loads(json.dumps(diagnose(healthy, queue="nowhere").to_dict()))
    assert (document["schema"], document["exit_code"]) == (1, 3)
    assert document["counts"] == {"ok": 11, "warning": 1, "fault": 1, "skipped": 4}
    assert [item["check"] for item in document["checks"]] == [check.name for check in CHECKS]
    queue = next(item for item in document["checks"] if item["check"] == "queue")
    assert queue | {"seconds": 0} == {
        "check": "queue", "outcome": "fault", "symptom": "QUEUE_CLOSED", "reason": "SUBMISSION_REJECTED",
        "message": "there is no queue 'nowhere'; the cluster has default", "skipped_for": None, "seconds": 0,
        "advice": "Give another queue: ytf doctor --queue NAME",
        "facts": {"queue": "nowhere", "error": "there is no queue 'nowhere'; the cluster has default"}}
    skipped = next(item for item in document["checks"] if item["check"] == "queue_acl")
    assert (skipped["outcome"], skipped["skipped_for"]) == ("skipped", "queue")


def answers(path, status, text="", kind="application/json", **headers):
    """Return a change of the fake: requests for a path get this answer."""
    def change(yarn):
        yarn.faults.append(lambda method, asked: (status, {"Content-Type": kind, **headers}, text)
                           if asked.startswith(path) else None)
    return change


def sets(**values):
    return lambda yarn: [setattr(yarn, name, value) for name, value in values.items()]


def configures(**values):
    return lambda yarn: yarn.conf.update({name.replace("_", "."): value for name, value in values.items()})


def limits(**values):
    return lambda yarn: yarn.queues[0].update(values)


def staging_of_another(yarn):
    place = yarn.files / "user" / USER / ".skein"
    place.mkdir(parents=True)
    place.chmod(0o777)


def no_directory(yarn):
    (yarn.files / "user").write_text("a file")


def with_java(yarn):
    java = yarn.program.with_name("java")
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)


INFO, NEW = "/ws/v1/cluster/info", "/ws/v1/cluster/apps/new-application"
REMOTE = '{"RemoteException": {"exception": "ForbiddenException", "message": "App submission via REST is disabled."}}'
HTML = "<html><title>Welcome</title><body>Please log in</body></html>"

#: What is changed, the check, its symptom, words of its message.
SYMPTOMS = [
    (answers(INFO, 200, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 200: Welcome"),
    (answers(INFO, 403, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 403"),
    (answers(INFO, 500, "boom", "text/plain"), "resourcemanager", Symptom.RM_OTHER, "HTTP 500: boom"),
    (answers(INFO, 401, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 401"),
    (answers(INFO, 200, '["a list"]'), "resourcemanager", Symptom.RM_OTHER, "HTTP 200: an unknown answer"),
    (answers(INFO, 200, '{"clusterInfo": {"haState": "STANDBY"}}'), "resourcemanager", Symptom.RM_NOT_ACTIVE, "STANDBY"),
    (answers(INFO, 307, "This is standby RM", "text/plain", Location="http://other:8088/ws"), "resourcemanager",
     Symptom.RM_NOT_ACTIVE, "STANDBY"),
    (sets(user_seen="dr.who"), "identity", Symptom.REFUSED, "takes us for 'dr.who'"),
    (configures(fs_defaultFS="file:///"), "identity", Symptom.REFUSED, "default_filesystem"),
    (configures(fs_defaultFS="s3a://bucket"), "filesystem", Symptom.NN_UNKNOWN, "add lines to site.yaml"),
    (sets(ahead=61.0), "clock", Symptom.CLOCK_DIFFERS, r"is 6[012] s ahead"),
    (sets(ahead=-400.0), "clock", Symptom.CLOCK_DIFFERS, r"is (399|400|401) s behind"),
    (no_directory, "staging", Symptom.STAGING_REFUSED, "making the directory"),
    (staging_of_another, "rights", Symptom.STAGING_OPEN, rf"/user/{USER}/.skein \(owner {USER}, mode 777\)"),
    (answers(NEW, 403, REMOTE), "submission", Symptom.SKEIN_UNUSABLE, "lacks Java"),
    (limits(queueName="other", queuePath="root.other"), "queue", Symptom.QUEUE_MAPPED, "no queue 'default'"),
    (limits(numApplications=8000), "queue", Symptom.QUEUE_FULL, "has 8000 applications, and takes 8000"),
    (sets(rights={"SUBMIT_APPLICATIONS": False}), "queue", Symptom.QUEUE_FORBIDDEN, f"{USER} may not submit"),
    (sets(rights={"ADMINISTER_QUEUE": True}), "queue_acl", Symptom.ANYBODY_KILLS, "any user may administer"),
    (configures(**{"yarn.acl.enable": "false"}), "queue_acl", None, "only some users"),
    (sets(nodes=[]), "nodes", Symptom.NO_NODES, "no running node"),
    (sets(nodes=[{"nodeHTTPAddress": closed_address().removeprefix("http://")}]), "nodes", Symptom.NODE_UNREACHABLE,
     "1 of 1 NodeManagers do not answer.*refused"),
    (configures(**{"yarn.log-aggregation-enable": "false"}), "logs", Symptom.NO_AGGREGATION, "aggregation is off"),
    (answers("/ws/v1/cluster/scheduler", 200, '{"scheduler": {"schedulerInfo": {"type": "capacityScheduler", "queues": '
             '{"queue": [{"state": 1}]}}}}'), "queue", Symptom.ODD_ANSWER, "KeyError: 'queueName'"),
    (answers("/ws/v1/cluster/scheduler", 500, "boom", "text/plain"), "queue", Symptom.REQUEST_FAILED, "boom"),
    (answers(NEW, 500, "boom", "text/plain"), "submission", Symptom.REQUEST_FAILED, "boom"),
    (answers("/ws/v1/cluster/nodes", 403, "no", "text/plain"), "nodes", Symptom.REQUEST_FAILED, "403"),
]


@pytest.mark.parametrize(("change", "check", "symptom", "words"), SYMPTOMS,
                         ids=[f"{row[1]}-{row[2].name if row[2] else 'ok'}-{n}" for n, row in enumerate(SYMPTOMS)])
def test_symptom_is_reported_with_advice(healthy, change, check, symptom, words):
    change(healthy)
    diagnosis = diagnose(healthy)
    finding = of(diagnosis, check)
    assert finding.symptom is symptom, finding
    assert re.search(words, finding.message), finding.message
    assert finding.outcome is (symptom.value.outcome if symptom else CheckOutcome.OK)
    assert bool(finding.advice) == bool(symptom)
    before = [result for result in diagnosis.results if result.finding.outcome is CheckOutcome.FAULT][:1]
    assert not before or before[0].check == check
    assert bool(diagnosis.exit_code) == bool(symptom and symptom.value.outcome is CheckOutcome.FAULT)


@pytest.mark.parametrize(("fault", "code"), [
    (sets(user_seen="dr.who"), 3), (answers(INFO, 500), 4), (sets(nodes=[]), 5), (no_directory, 3),
])
def test_the_exit_code_is_that_of_the_first_fault(healthy, fault, code):
    fault(healthy)
    assert diagnose(healthy).exit_code == code


def test_a_faulty_site_file_is_exit_code_2(healthy, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("stagin: /x")
    asked = question(healthy)
    diagnosis = examine(replace(asked, site=None, environ={**asked.environ, "YTF_SITE": str(site)}))
    assert of(diagnosis, "configuration").message.startswith(f"site file {site}: line 1: unknown key (did you mean 'staging'?)")
    assert diagnosis.exit_code == 2


def test_a_check_whose_condition_failed_is_skipped_and_names_it(healthy):
    diagnosis = diagnose(healthy, url=closed_address())
    found = of(diagnosis, "resourcemanager")
    assert (found.symptom, "refused" in found.message) == (Symptom.RM_SILENT, True)
    skipped = [result.finding for result in diagnosis.results[3:]]
    assert {(finding.outcome, finding.because_of) for finding in skipped} == {(CheckOutcome.SKIPPED, "resourcemanager")}
    assert skipped[0].message == "needs the check resourcemanager, which failed"
    assert not healthy.requests


def test_a_check_that_was_not_wanted_blocks_no_other(healthy):
    assert of(diagnose(healthy), "logs").outcome is CheckOutcome.OK


def test_one_of_two_resourcemanagers_that_is_away_is_a_warning(healthy):
    finding = of(diagnose(healthy, url=f"{closed_address()},{healthy.url}"), "resourcemanager")
    assert finding.symptom is Symptom.RM_PARTLY_AWAY
    assert f"{healthy.url} ACTIVE" in finding.message and "refused" in finding.message


def test_active_and_standby_are_distinguished(healthy):
    standby = FakeYarn()
    answers(INFO, 200, '{"clusterInfo": {"haState": "STANDBY", "hadoopVersion": "3.4.2"}}')(standby)
    with serving(standby) as url:
        finding = of(diagnose(healthy, url=f"{url},{healthy.url}", checks=CHECKS[:3]), "resourcemanager")
    assert finding.message == f"{url} STANDBY, {healthy.url} ACTIVE, Hadoop 3.4.2 and 3.4.3"


def namenode(state):
    """Return a server that answers as a NameNode in a state: active, standby, html or refusing."""
    fake = FakeYarn()
    standby = '{"RemoteException": {"exception": "StandbyException", "message": "Operation category READ is not supported in state standby"}}'
    status = '{"FileStatus": {"type": "DIRECTORY"}}'
    answer = {"active": (200, {"Content-Type": "application/json"}, status),
              "standby": (403, {"Content-Type": "application/json"}, standby),
              "html": (200, {"Content-Type": "text/html"}, HTML),
              "refusing": (401, {"Content-Type": "text/html"}, HTML)}[state]
    fake.faults.append(lambda method, path: answer if path.startswith("/webhdfs/v1") else None)
    return serving(fake)


@pytest.mark.parametrize(("states", "symptom", "told"), [
    (("active", "standby"), None, "hdfs://ns over HTTP: {0} ACTIVE, {1} STANDBY"),
    (("standby", "standby"), Symptom.NN_NOT_ACTIVE, "no NameNode is active: {0} STANDBY, {1} STANDBY"),
    (("active", "html"), Symptom.NN_PARTLY_AWAY, "not every NameNode answers: {0} ACTIVE, {1} (HTTP 200: Welcome Please log in)"),
    (("refusing", "html"), Symptom.NN_SILENT, "no NameNode answers as one: {0} (HTTP 401: Welcome Please log in)"),
])
def test_each_namenode_is_asked(healthy, states, symptom, told):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    with namenode(states[0]) as first, namenode(states[1]) as second:
        found = of(diagnose(healthy, Site(webhdfs=(first, second), request_timeout=2)), "filesystem")
    assert found.symptom is symptom
    assert found.message.startswith(told.format(first, second)), found.message


@pytest.mark.parametrize(("way", "java", "filesystem", "symptom"), [
    ("skein", True, "s3a://bucket", Symptom.NN_CLOSED), ("skein", True, "hdfs://ns", Symptom.NN_CLOSED),
    ("auto", True, "s3a://bucket", Symptom.NN_CLOSED), ("auto", False, "s3a://bucket", Symptom.NN_UNKNOWN),
    ("rest", True, "s3a://bucket", Symptom.NN_UNKNOWN),
    ("auto", True, "hdfs://ns", Symptom.NN_SILENT),  # it changes to Skein's client for a refusal only
    ("rest", True, "hdfs://ns", Symptom.NN_SILENT),
])
def test_file_system_without_http_is_fine_for_skeins_client(healthy, way, java, filesystem, symptom):
    healthy.conf |= {"fs.defaultFS": filesystem, "hadoop.security.authentication": "kerberos"}
    if java:
        with_java(healthy)
    webhdfs = (closed_address(),) if filesystem.startswith("hdfs") else ()
    diagnosis = diagnose(healthy, Site(webhdfs=webhdfs, submit_with=way, request_timeout=2))
    assert of(diagnosis, "filesystem").symptom is symptom
    if symptom is Symptom.NN_CLOSED:
        found = outcomes(diagnosis)
        assert [found[name] for name in ("filesystem", "tokens", "staging", "rights", "submission")] == [
            "warning", "skipped", "skipped", "skipped", "ok"], diagnosis
        assert of(diagnosis, "submission").facts["way"] == "skein"
        assert diagnosis.exit_code == 0
    else:
        assert diagnosis.first_fault.check == "filesystem"


def test_refusing_namenode_is_fine_for_skeins_client(healthy):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    with_java(healthy)
    with namenode("refusing") as url:
        diagnosis = diagnose(healthy, Site(webhdfs=(url,), request_timeout=2))
    assert of(diagnosis, "filesystem").symptom is Symptom.NN_CLOSED
    assert of(diagnosis, "submission").facts["way"] == "skein"


def test_namenode_with_another_time_is_reported(healthy):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    fake = FakeYarn()
    fake.ahead = 100.0
    with serving(fake) as url:
        found = of(diagnose(healthy, Site(webhdfs=(url,), request_timeout=2)), "clock")
    assert found.symptom is Symptom.CLOCK_DIFFERS and re.search(f"{url} is (99|100|101) s ahead", found.message)


@pytest.mark.parametrize(("lists", "expected"), [
    (("*", " "), "ok"), ((f"bob,{USER} staff", " "), "ok"), ((" staff", " "), "shows at a submission"), ((" ", " "), "name no user"),
])
def test_lists_of_the_queue_decide_where_yarn_hides_our_right(healthy, lists, expected):
    healthy.rights = {}
    healthy.queues[0]["queueAcls"] = {"queueAcl": [{"accessType": "SUBMIT_APP", "accessControlList": lists[0]},
                                                   {"accessType": "ADMINISTER_QUEUE", "accessControlList": lists[1]}]}
    found = of(diagnose(healthy), "queue")
    if expected == "ok":
        assert found.message.startswith(f"{USER} may submit to default")
    else:
        assert expected in found.message
    assert (found.symptom is Symptom.QUEUE_FORBIDDEN) == (expected == "name no user")


def test_open_list_of_administrators_is_reported_without_yarns_answer(healthy):
    healthy.rights = {}
    healthy.queues[0]["queueAcls"] = {"queueAcl": [{"accessType": "ADMINISTER_QUEUE", "accessControlList": "*"}]}
    assert of(diagnose(healthy), "queue_acl").symptom is Symptom.ANYBODY_KILLS
    healthy.queues[0].pop("queueAcls")
    healthy.conf["yarn.acl.enable"] = "false"
    assert of(diagnose(healthy), "queue_acl").symptom is Symptom.ANYBODY_KILLS


@pytest.mark.parametrize(("status", "outcome", "words"), [
    (403, CheckOutcome.OK, "not everybody may administer the queue"), (404, CheckOutcome.SKIPPED, "YARN does not tell the queue's rights"),
    (500, CheckOutcome.SKIPPED, "YARN does not tell the queue's rights"),
])
def test_only_a_refused_question_shows_that_not_everybody_may_administer(healthy, status, outcome, words):
    answers("/ws/v1/cluster/queues/default/access", status, '{"RemoteException": {"message": "no"}}')(healthy)
    found = of(diagnose(healthy), "queue_acl")
    assert (found.outcome, words in found.message) == (outcome, True), found


@pytest.mark.parametrize(("number", "words"), [
    (2, "; at most 3 run at the same time"), (3, "; at most 3 run at the same time, so a further one waits"),
])
def test_limit_of_parallel_applications_makes_submissions_wait(healthy, number, words):
    healthy.queues[0] |= {"maxParallelApps": 3, "numApplications": number}
    found = of(diagnose(healthy), "queue")
    assert (found.outcome, found.facts["most_applications"], found.facts["most_parallel"]) == (CheckOutcome.OK, 8000, 3)
    assert f"{number} of 8000 applications{words};" in found.message, found


@pytest.mark.slow
def test_where_http_is_closed_skeins_client_is_looked_for(healthy):
    with_java(healthy)
    answers(NEW, 403, REMOTE)(healthy)
    assert of(diagnose(healthy), "submission").symptom is Symptom.REST_CLOSED
    assert of(diagnose(healthy, Site(submit_with="rest")), "submission").symptom is Symptom.REST_NEEDED
    assert of(diagnose(healthy, Site(submit_with="skein")), "submission").message.startswith("with Skein's Java client")


@pytest.mark.slow
def test_logs_after_the_end_need_a_server_or_hdfs_or_the_program(healthy):
    healthy.conf.pop("yarn.nodemanager.remote-app-log-dir", None)
    asked = question(healthy)
    without = replace(asked, environ={**asked.environ, "PATH": "/nowhere"})
    assert of(examine(without), "logs").symptom is Symptom.NO_LOG_SERVER
    away = replace(without, site=Site(log_server=closed_address()))
    found = of(examine(away), "logs")
    assert (found.symptom, "Hadoop's client on PATH" in found.advice) == (Symptom.LOG_SERVER_SILENT, True)
    assert f"after the end from {healthy.url}" in of(
        examine(replace(without, site=Site(log_server=healthy.url))), "logs").message
    healthy.conf["yarn.nodemanager.remote-app-log-dir"] = "/tmp/logs"
    assert "after the end from /tmp/logs" in of(examine(without), "logs").message


def test_aggregation_is_on_only_where_the_cluster_reports_it(healthy):
    healthy.conf["yarn.log-aggregation-enable"] = "true"
    assert of(diagnose(healthy), "logs").message.startswith("aggregation is on; after the end from ")
    healthy.conf.pop("yarn.log-aggregation-enable")
    assert of(diagnose(healthy), "logs").message.startswith(
        "whether logs are aggregated is not shown; if so, after the end from ")


@pytest.mark.parametrize(("site", "environ", "message"), [
    ({"keytab": "/k"}, {}, "ann@X, from the keytab /k, which renews it"),
    ({}, {"KRB5_CLIENT_KTNAME": "/other"}, "ann@X, for 2.0 h"),  # a valid cache wins over this keytab
])
def test_only_the_sites_keytab_is_known_to_renew_a_ticket(healthy, monkeypatch, site, environ, message):
    monkeypatch.setattr(Tickets, "inquire", lambda self: ("ann@X", 7200))
    asked = question(healthy)
    known = KnownFacts(replace(asked, environ={**asked.environ, **environ}), Site(**site), wants_ticket=True)
    assert check_ticket(known).message == message


def test_skein_without_import_is_reported(healthy, monkeypatch):
    monkeypatch.setitem(sys.modules, "skein", None)
    found = of(diagnose(healthy), "versions")
    assert found.symptom is Symptom.SKEIN_MISSING and sys.executable in found.advice


def test_cluster_that_believes_names_over_http_is_reported(healthy):
    healthy.conf["hadoop.security.authentication"] = "kerberos"
    assert of(diagnose(healthy), "security").symptom is Symptom.OPEN_PAGES


@pytest.mark.slow
def test_cluster_without_tokens_is_reported(healthy):
    healthy.conf |= {"hadoop.security.authentication": "kerberos", "yarn.resourcemanager.address": "localhost:8032"}
    assert of(diagnose(healthy), "tokens").message == "got for 127.0.0.1:8032,localhost:8032, and cancelled"
    answers("/ws/v1/cluster/delegation-token", 403, REMOTE)(healthy)
    diagnosis = diagnose(healthy)
    assert of(diagnosis, "tokens").symptom is Symptom.TOKENS_UNAVAILABLE
    found = of(diagnosis, "submission")
    assert (found.symptom, "gives no tokens over HTTP" in found.message) == (Symptom.SKEIN_UNUSABLE, True), found
    with_java(healthy)
    found = of(diagnose(healthy), "submission")
    assert found.message == "with Skein's Java client, because the cluster gives no tokens over HTTP"
    found = of(diagnose(healthy, Site(submit_with="rest", request_timeout=2)), "tokens")
    assert (found.symptom, "gives no token over HTTP" in found.message) == (Symptom.TOKENS_REFUSED, True)
    assert of(diagnose(healthy, Site(submit_with="skein", request_timeout=2)), "tokens").outcome is CheckOutcome.SKIPPED


def test_demand_for_a_ticket_is_distinguished_from_a_refusal(healthy, monkeypatch):
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere/ticket")
    monkeypatch.setenv("KRB5_CONFIG", "/dev/null")
    answers(INFO, 401, HTML, "text/html", **{"WWW-Authenticate": "Negotiate"})(healthy)
    diagnosis = diagnose(healthy)
    assert of(diagnosis, "resourcemanager").message == f"{healthy.url} asks for a Kerberos ticket"
    assert of(diagnosis, "ticket").symptom is Symptom.TICKET_MISSING
    assert of(diagnosis, "identity").because_of == "ticket"


@pytest.mark.parametrize("site, symptom", [
    (Site(), Symptom.OPEN_PAGES), (Site(gateway_password_file="/etc/ytf/password"), None),
])  # fmt: skip
def test_pages_behind_the_login_of_a_gateway_are_not_open(site, symptom):
    cluster = Cluster(("https://knox:8443/gateway/x/yarn",), "ann", "ann", "hdfs://n", "hdfs://n", "/user/{user}/.skein", secure=True,
                      negotiates=False, site=site)
    found = check_security(KnownFacts(Question({}), opened=Session(cluster)))
    assert found.symptom is symptom


# --- deadlines ------------------------------------------------------------------------------------
@pytest.fixture
def silence():
    """Return an event for which a server waits that does not answer."""
    over = threading.Event()
    yield over
    over.set()


def test_unanswering_server_is_reported_in_time(healthy, silence):
    healthy.faults.append(lambda method, path: silence.wait(60) and None)
    diagnosis = diagnose(healthy, Site(request_timeout=0.2))
    found = of(diagnosis, "resourcemanager")
    assert (found.symptom, "timed out" in found.message) == (Symptom.RM_SILENT, True)
    assert not diagnosis.hanging and diagnosis.results[2].seconds < 50


@pytest.mark.slow
def test_a_hanging_namenode_does_not_hang_the_others(healthy, silence):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    fake = FakeYarn()
    fake.faults.append(lambda method, path: silence.wait(60) and None)
    with serving(fake) as slow, namenode("active") as quick:
        found = of(diagnose(healthy, Site(webhdfs=(slow, quick), request_timeout=0.6)), "filesystem")
    assert found.symptom is Symptom.NN_PARTLY_AWAY and f"{quick} ACTIVE" in found.message


def test_a_check_that_has_not_ended_in_time_counts_as_failed(healthy, silence):
    slow = Check("identity", "", lambda known: silence.wait(60) and well(""), seconds=0.1)
    after = Check("after", "", lambda known: well("made"), ("identity",))
    beside = Check("beside", "", lambda known: well("made"))
    diagnosis = diagnose(healthy, checks=(slow, after, beside))
    assert [result.finding.outcome.value for result in diagnosis.results] == ["fault", "skipped", "ok"]
    assert of(diagnosis, "identity").symptom is Symptom.TOO_SLOW
    assert (diagnosis.hanging, diagnosis.exit_code) == (True, 4)


def test_a_fault_of_our_own_is_not_hidden(healthy):
    broken = Check("broken", "", lambda known: known.session)
    with pytest.raises(LookupError, match="no check has opened the session"):
        diagnose(healthy, checks=(broken,))


def test_a_cancelled_examination_makes_no_further_check(healthy):
    asked = question(healthy)
    diagnosis = examine(asked, lambda result: asked.cancellation.cancel())
    assert [result.finding.outcome.value for result in diagnosis.results[:3]] == ["ok", "skipped", "skipped"]
    assert not healthy.requests


# --- the tables -----------------------------------------------------------------------------------
def test_a_check_needs_only_checks_before_it():
    names = [check.name for check in CHECKS]
    for number, check in enumerate(CHECKS):
        assert set(check.needs) <= set(names[:number]), check.name
    assert len(set(names)) == len(names)


def test_each_symptom_belongs_to_a_check_and_says_what_to_do():
    names = {check.name for check in CHECKS} | {"every check"}
    for symptom in Symptom:
        row = symptom.value
        assert row.check in names and row.text and row.advice
        assert (row.reason is not None) == (row.outcome is CheckOutcome.FAULT)
        assert row.outcome in (CheckOutcome.WARNING, CheckOutcome.FAULT)

"""Each check on the wire: what it finds, and which symptom it tells for each fault."""

import json
from dataclasses import replace

import pytest

from support.doctor_site import INFO, USER, answers, diagnose, no_directory, of, outcomes, question, sets
from support.fake_yarn import closed_address
from tf_yarn_ops.doctor.examination import CHECKS, Check, examine
from tf_yarn_ops.doctor.symptoms import CheckOutcome, Symptom, well
from tf_yarn_ops.hadoop.site import Site


def test_a_check_needs_only_checks_before_it():
    names = [check.name for check in CHECKS]
    for number, check in enumerate(CHECKS):
        assert set(check.needs) <= set(names[:number]), check.name
    assert len(set(names)) == len(names)


def test_a_healthy_cluster_has_no_fault(healthy):
    diagnosis = diagnose(healthy)
    expected = dict.fromkeys([check.name for check in CHECKS], "ok") | {"security": "warning"}
    expected |= dict.fromkeys(["ticket", "tokens", "environment", "application"], "skipped")
    assert outcomes(diagnosis) == expected, diagnosis
    assert (diagnosis.exit_code, diagnosis.first_fault, diagnosis.hanging) == (0, None, False)
    said = {result.check: result.finding.message for result in diagnosis.results}
    assert said["configuration"] == f"{healthy.url} from --resourcemanager"
    assert said["resourcemanager"] == f"{healthy.url} ACTIVE, Hadoop 3.4.3"
    assert said["identity"] == f"{USER}; Hadoop 3.4.3, viewfs://mini"
    assert said["staging"] == f"wrote, read and deleted a file in viewfs://mini/user/{USER}/.skein"
    assert said["rights"] == f"/user/{USER}/.skein: owner {USER}, mode 711"
    assert said["submission"] == "over HTTP; a container may have 16384 MiB, 32 vcores, 2 GPUs"
    assert said["queue"] == (
        f"{USER} may submit to default; 80 % of the cluster, at most 100 %; 3 of 8000 applications; "
        "YARN ends applications after 86400 s"
    )
    assert said["queue_acl"] == "only some users may kill other users' applications in default"
    assert said["nodes"] == "1 running, Hadoop 3.4.3; 1 asked, all answer"
    assert said["clock"] == "the same time, within 1 s"


def test_document_is_plain_json_and_complete(healthy):
    document = json.loads(json.dumps(diagnose(healthy, queue="nowhere").to_dict()))
    assert (document["schema"], document["exit_code"]) == (1, 3)
    assert document["counts"] == {"ok": 12, "warning": 1, "fault": 1, "skipped": 5}
    assert [item["check"] for item in document["checks"]] == [check.name for check in CHECKS]
    queue = next(item for item in document["checks"] if item["check"] == "queue")
    assert queue | {"seconds": 0} == {
        "check": "queue",
        "outcome": "fault",
        "symptom": "QUEUE_CLOSED",
        "reason": "SUBMISSION_REJECTED",
        "message": "there is no queue 'nowhere'; the cluster has default",
        "skipped_for": None,
        "seconds": 0,
        "advice": "Give another queue: ytf doctor --queue NAME",
        "facts": {"queue": "nowhere", "error": "there is no queue 'nowhere'; the cluster has default"},
    }
    skipped = next(item for item in document["checks"] if item["check"] == "queue_acl")
    assert (skipped["outcome"], skipped["skipped_for"]) == ("skipped", "queue")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (sets(user_seen="dr.who"), 3),
        (answers(INFO, 500), 4),
        (sets(nodes=[]), 5),
        (no_directory, 3),
    ],
)
def test_the_exit_code_is_that_of_the_first_fault(healthy, fault, code):
    fault(healthy)
    assert diagnose(healthy).exit_code == code


def test_a_faulty_site_file_is_exit_code_2(healthy, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("stagin: /x")
    asked = question(healthy)
    diagnosis = examine(replace(asked, site=None, environ={**asked.environ, "YTF_SITE": str(site)}))
    assert of(diagnosis, "configuration").message.startswith(
        f"site file {site}: line 1: unknown key (did you mean 'staging'?)"
    )
    assert diagnosis.exit_code == 2


def test_a_check_whose_condition_failed_is_skipped_and_names_it(healthy):
    diagnosis = diagnose(healthy, url=closed_address())
    found = of(diagnosis, "resourcemanager")
    assert (found.symptom, "refused" in found.message) == (Symptom.RM_SILENT, True)
    skipped = [result.finding for result in diagnosis.results[3:] if result.check != "environment"]
    assert {(finding.outcome, finding.because_of) for finding in skipped} == {(CheckOutcome.SKIPPED, "resourcemanager")}
    assert skipped[0].message == "needs the check resourcemanager, which failed"
    assert not healthy.requests


def test_a_check_that_was_not_wanted_blocks_no_other(healthy):
    assert of(diagnose(healthy), "logs").outcome is CheckOutcome.OK


@pytest.mark.slow
def test_logs_after_the_end_need_a_server_or_hdfs_or_the_program(healthy):
    healthy.conf.pop("yarn.nodemanager.remote-app-log-dir", None)
    asked = question(healthy)
    without = replace(asked, environ={**asked.environ, "PATH": "/nowhere"})
    assert of(examine(without), "logs").symptom is Symptom.NO_LOG_SERVER
    away = replace(without, site=Site(log_server=closed_address()))
    found = of(examine(away), "logs")
    assert (found.symptom, "Hadoop's client on PATH" in found.advice) == (Symptom.LOG_SERVER_SILENT, True)
    assert (
        f"after the end from {healthy.url}"
        in of(examine(replace(without, site=Site(log_server=healthy.url))), "logs").message
    )
    healthy.conf["yarn.nodemanager.remote-app-log-dir"] = "/tmp/logs"
    assert "after the end from /tmp/logs" in of(examine(without), "logs").message


def test_aggregation_is_on_only_where_the_cluster_reports_it(healthy):
    healthy.conf["yarn.log-aggregation-enable"] = "true"
    assert of(diagnose(healthy), "logs").message.startswith("aggregation is on; after the end from ")
    healthy.conf.pop("yarn.log-aggregation-enable")
    assert of(diagnose(healthy), "logs").message.startswith(
        "whether logs are aggregated is not shown; if so, after the end from "
    )


# --- deadlines ------------------------------------------------------------------------------------
def test_unanswering_server_is_reported_in_time(healthy, silence):
    healthy.faults.append(lambda method, path: silence.wait(60) and None)
    diagnosis = diagnose(healthy, Site(request_timeout=0.2))
    found = of(diagnosis, "resourcemanager")
    assert (found.symptom, "timed out" in found.message) == (Symptom.RM_SILENT, True)
    assert not diagnosis.hanging and diagnosis.results[2].seconds < 50


def test_a_check_that_has_not_ended_in_time_counts_as_failed(healthy, silence):
    slow = Check("identity", "", lambda known: silence.wait(60) and well(""), seconds=0.1)
    after = Check("after", "", lambda known: well("made"), ("identity",))
    beside = Check("beside", "", lambda known: well("made"))
    diagnosis = diagnose(healthy, checks=(slow, after, beside))
    assert [result.finding.outcome.value for result in diagnosis.results] == ["fault", "skipped", "ok"]
    assert of(diagnosis, "identity").symptom is Symptom.TOO_SLOW
    assert (diagnosis.hanging, diagnosis.exit_code) == (True, 4)


def test_a_fault_of_our_own_is_not_hidden(healthy):
    broken = Check("broken", "", lambda known: known.session)  # type: ignore[return-value]
    with pytest.raises(LookupError, match="no check has opened the session"):
        diagnose(healthy, checks=(broken,))


def test_a_cancelled_examination_makes_no_further_check(healthy):
    asked = question(healthy)
    diagnosis = examine(asked, lambda result: asked.cancellation.cancel())
    assert [result.finding.outcome.value for result in diagnosis.results[:3]] == ["ok", "skipped", "skipped"]
    assert not healthy.requests


# --- the tables -----------------------------------------------------------------------------------

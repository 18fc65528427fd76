"""Each symptom, with its advice."""

import re

import pytest

from support.doctor_site import HTML, INFO, NEW, REMOTE, USER, answers, diagnose, no_directory, of, sets
from support.fake_yarn import closed_address
from tf_yarn_ops.doctor.examination import CHECKS
from tf_yarn_ops.doctor.symptoms import CheckOutcome, Symptom


def configures(**values):
    return lambda yarn: yarn.conf.update({name.replace("_", "."): value for name, value in values.items()})


def limits(**values):
    return lambda yarn: yarn.queues[0].update(values)


def staging_of_another(yarn):
    place = yarn.files / "user" / USER / ".skein"
    place.mkdir(parents=True)
    place.chmod(0o777)


#: What is changed, the check, its symptom, words of its message.
SYMPTOMS = [
    (answers(INFO, 200, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 200: Welcome"),
    (answers(INFO, 403, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 403"),
    (answers(INFO, 500, "boom", "text/plain"), "resourcemanager", Symptom.RM_OTHER, "HTTP 500: boom"),
    (answers(INFO, 401, HTML, "text/html"), "resourcemanager", Symptom.RM_OTHER, "HTTP 401"),
    (answers(INFO, 200, '["a list"]'), "resourcemanager", Symptom.RM_OTHER, "HTTP 200: an unknown answer"),
    (
        answers(INFO, 200, '{"clusterInfo": {"haState": "STANDBY"}}'),
        "resourcemanager",
        Symptom.RM_NOT_ACTIVE,
        "STANDBY",
    ),
    (
        answers(INFO, 307, "This is standby RM", "text/plain", Location="http://other:8088/ws"),
        "resourcemanager",
        Symptom.RM_NOT_ACTIVE,
        "STANDBY",
    ),
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
    (
        sets(nodes=[{"nodeHTTPAddress": closed_address().removeprefix("http://")}]),
        "nodes",
        Symptom.NODE_UNREACHABLE,
        "1 of 1 NodeManagers do not answer.*refused",
    ),
    (configures(**{"yarn.log-aggregation-enable": "false"}), "logs", Symptom.NO_AGGREGATION, "aggregation is off"),
    (
        answers(
            "/ws/v1/cluster/scheduler",
            200,
            '{"scheduler": {"schedulerInfo": {"type": "capacityScheduler", "queues": {"queue": [{"state": 1}]}}}}',
        ),
        "queue",
        Symptom.UNEXPECTED_ANSWER,
        "KeyError: 'queueName'",
    ),
    (answers("/ws/v1/cluster/scheduler", 500, "boom", "text/plain"), "queue", Symptom.REQUEST_FAILED, "boom"),
    (answers(NEW, 500, "boom", "text/plain"), "submission", Symptom.REQUEST_FAILED, "boom"),
    (answers("/ws/v1/cluster/nodes", 403, "no", "text/plain"), "nodes", Symptom.REQUEST_FAILED, "403"),
]


@pytest.mark.parametrize(
    ("change", "check", "symptom", "words"),
    SYMPTOMS,
    ids=[f"{row[1]}-{row[2].name if row[2] else 'ok'}-{n}" for n, row in enumerate(SYMPTOMS)],
)
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


def test_each_symptom_belongs_to_a_check_and_says_what_to_do():
    names = {check.name for check in CHECKS} | {"every check"}
    for symptom in Symptom:
        row = symptom.value
        assert row.check in names and row.text and row.advice
        assert (row.reason is not None) == (row.outcome is CheckOutcome.FAULT)
        assert row.outcome in (CheckOutcome.WARNING, CheckOutcome.FAULT)

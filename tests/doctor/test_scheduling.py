"""Checks of queues and their rights."""

import pytest

from support.doctor_site import USER, answers, diagnose, of
from tf_yarn_ops.doctor.symptoms import CheckOutcome, Symptom


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (("*", " "), "ok"),
        ((f"bob,{USER} staff", " "), "ok"),
        ((" staff", " "), "shows at a submission"),
        ((" ", " "), "name no user"),
    ],
)
def test_lists_of_the_queue_decide_where_yarn_hides_our_right(healthy, lists, expected):
    healthy.rights = {}
    healthy.queues[0]["queueAcls"] = {
        "queueAcl": [
            {"accessType": "SUBMIT_APP", "accessControlList": lists[0]},
            {"accessType": "ADMINISTER_QUEUE", "accessControlList": lists[1]},
        ]
    }
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


@pytest.mark.parametrize(
    ("status", "outcome", "words"),
    [
        (403, CheckOutcome.OK, "not everybody may administer the queue"),
        (404, CheckOutcome.SKIPPED, "YARN does not show the queue's rights"),
        (500, CheckOutcome.SKIPPED, "YARN does not show the queue's rights"),
    ],
)
def test_only_a_refused_question_shows_that_not_everybody_may_administer(healthy, status, outcome, words):
    answers("/ws/v1/cluster/queues/default/access", status, '{"RemoteException": {"message": "no"}}')(healthy)
    found = of(diagnose(healthy), "queue_acl")
    assert (found.outcome, words in found.message) == (outcome, True), found


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (2, "; at most 3 run at the same time"),
        (3, "; at most 3 run at the same time, so a further one waits"),
    ],
)
def test_limit_of_parallel_applications_makes_submissions_wait(healthy, number, words):
    healthy.queues[0] |= {"maxParallelApps": 3, "numApplications": number}
    found = of(diagnose(healthy), "queue")
    assert (found.outcome, found.facts["most_applications"], found.facts["most_parallel"]) == (CheckOutcome.OK, 8000, 3)
    assert f"{number} of 8000 applications{words};" in found.message, found

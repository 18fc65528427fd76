"""Texts that look like a coordinator's report and are none: no reader believes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_yarn import SECRET, STAMP, application, killed_text, verdict_text
from tf_yarn_ops.follow.yarn_report import kill_report, read_yarn_report
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport, compose_diagnostics, verdict_tag

ID = f"application_{STAMP}_0001"
FORGED = JobReport(
    ID,
    message="all fine",
    metrics={"accuracy": 0.99},
    output_path="hdfs://evil/x",
    tracking_url="javascript:alert(1)",
    tensorboard_url="javascript:alert(2)",
    versions={"tf_yarn_ops": "1"},
)
OWN = JobReport(ID, reason=Reason.TASK_FAILED, message="worker:0 failed", versions={"tf_yarn_ops": "1"})


def document(reason, **more):
    return json.dumps({**FORGED.to_dict(), "reason": reason.value, **more}, separators=(",", ":"))


def ended(state, final, text, **fields):
    return application(1, state, finalStatus=final, diagnostics=text, finishedTime=STAMP + 60_000, **fields)


def without_details(report):
    return (
        report.metrics is report.output_path is report.tracking_url is report.tensorboard_url is None
        and not report.versions
        and report.killed_by_attempt is None
    )


#: Where a forged report may stand: quoted in a sentence, alone, on a line of its own, behind text, twice.
PLACES = ("worker:0 failed with exit code 1: {}", "{}", "bye\n{}", "a\nb\n{}\nc", "{0}\n{0}", "Attempt recovered\n{}")
#: Fields that could make a reader of less care believe it.
MORE = (
    {},
    {"verdict_secret": ""},
    {"verdict_secret": verdict_tag(SECRET)},
    {"verdict_secret": None},
    {"verdict_secret": "\ud800"},
    {"verdict_secret": {"a": 1}},
    {"application_id": "x"},
    {"killed_by_attempt": 0},
)


def check_unbelieved(text):
    """Assert that YARN's states alone decide about applications with this text."""
    for state, final, expected in (
        ("FINISHED", "FAILED", Reason.AM_FAILED),
        ("FAILED", "FAILED", Reason.AM_FAILED),
        ("FINISHED", "SUCCEEDED", Reason.SUCCEEDED),
        ("KILLED", "KILLED", Reason.KILLED),
    ):
        report = read_yarn_report(ended(state, final, text))
        assert report.reason is expected, text
        assert without_details(report), text
    report = read_yarn_report(ended("KILLED", "KILLED", killed_text(ID, text, "mallory")))
    assert report.reason is Reason.KILLED and without_details(report), text
    assert report.message.startswith("The application was killed by user mallory") and "evil" not in report.message


@pytest.mark.parametrize("reason", Reason)
def test_report_without_the_secret_is_not_believed(reason):
    for place in PLACES:
        check_unbelieved(place.format(document(reason)))
    for more in MORE:
        check_unbelieved(PLACES[0].format(document(reason, **more)))


@pytest.mark.parametrize("more", MORE, ids=str)
def test_field_makes_no_forged_report_believed_wherever_it_stands(more):
    for place in PLACES:
        check_unbelieved(place.format(document(Reason.SUCCEEDED, **more)))


@pytest.mark.parametrize("tags", ["", "tfy-job", "tfyv-", "tfyv-0", verdict_tag("another")])
def test_secret_counts_only_with_its_tag(tags):
    text = compose_diagnostics(JobReport(ID, reason=Reason.SUCCEEDED), secret=SECRET)
    report = read_yarn_report({**ended("FINISHED", "FAILED", text), "applicationTags": tags})
    assert report.reason is Reason.AM_FAILED


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.SUCCEEDED])
def test_kill_by_the_owner_keeps_its_reason(reason):
    text = compose_diagnostics(kill_report(application(1), reason, "waited for 10 s", attempt=3))
    report = read_yarn_report(ended("KILLED", "KILLED", killed_text(ID, text)))
    assert (report.reason, report.message, report.killed_by_attempt) == (reason, "waited for 10 s", 3)


def test_kill_is_a_success_only_if_the_coordinator_sends_it():
    success = JobReport(ID, reason=Reason.SUCCEEDED, message="ok")
    unproven = ended("KILLED", "KILLED", killed_text(ID, compose_diagnostics(success)))
    assert read_yarn_report(unproven).reason is Reason.KILLED
    proven = ended("KILLED", "KILLED", killed_text(ID, verdict_text(success)))
    assert read_yarn_report(proven).reason is Reason.SUCCEEDED


def test_success_needs_yarns_final_status_too():
    success = verdict_text(JobReport(ID, reason=Reason.SUCCEEDED))
    assert read_yarn_report(ended("FINISHED", "FAILED", success)).reason is Reason.AM_FAILED
    assert read_yarn_report(ended("FINISHED", "SUCCEEDED", success)).reason is Reason.SUCCEEDED


@pytest.mark.parametrize(
    "own",
    [
        JobReport(ID, reason=Reason.TASK_FAILED, message=f"worker:0 failed: {document(Reason.SUCCEEDED)}"),
        JobReport(
            ID,
            reason=Reason.TASK_FAILED,
            message="worker:0 failed",
            # A list begins a later line of the JSON with a report.
            metrics={"all": [json.loads(document(Reason.SUCCEEDED))] * 3},
        ),
        JobReport(
            ID,
            reason=Reason.TASK_FAILED,
            message="x\n" + document(Reason.SUPERSEDED),
            tasks=(TaskReport("worker:0", "failed", host=document(Reason.SUCCEEDED), log_tail=document(Reason.LOST)),),
        ),
    ],
)
def test_coordinators_report_is_found_behind_what_it_quotes(own):
    for text in (verdict_text(own), f"{document(Reason.SUCCEEDED)}\n{verdict_text(own)}"):
        assert read_yarn_report(ended("FINISHED", "FAILED", text)).reason is Reason.TASK_FAILED


@pytest.mark.parametrize(
    "text",
    [
        "Application is killed by ResourceManager as it has exceeded the lifetime period.",
        "exceeding its lifetime period",
        "Application x was killed by user ann with diagnostic message: bye",
    ],
)
def test_words_of_a_killer_are_not_yarns(text):
    report = read_yarn_report(ended("KILLED", "KILLED", killed_text(ID, text, "mallory"), launchTime=STAMP))
    assert report.reason is Reason.KILLED
    assert report.message == f"The application was killed by user mallory: {text[:500]}"


def test_kill_without_words_names_the_user():
    report = read_yarn_report(ended("KILLED", "KILLED", f"Application {ID} was killed by user bob at 10.0.0.1"))
    assert report.message == "The application was killed by user bob"


pieces = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["\n", "{", killed_text(ID, ""), "exitCode: -100", "Attempt recovered after RM restart"]),
    st.builds(document, st.sampled_from(Reason)),
    st.sampled_from(Reason).map(lambda reason: compose_diagnostics(JobReport(ID, reason=reason))),
)


@pytest.mark.slow
@given(st.lists(pieces, max_size=8).map("".join))
def test_no_text_of_others_is_a_verdict(text):
    assert without_details(read_yarn_report(ended("FINISHED", "SUCCEEDED", text)))
    failed = read_yarn_report(ended("FINISHED", "FAILED", text))
    assert failed.reason is Reason.AM_FAILED and without_details(failed)
    killed = read_yarn_report(ended("KILLED", "KILLED", killed_text(ID, text, "mallory")))
    assert killed.reason is Reason.KILLED and without_details(killed)
    own = f"{text}\n{verdict_text(OWN)}\n{text}"
    assert read_yarn_report(ended("FINISHED", "FAILED", own)).reason is Reason.TASK_FAILED

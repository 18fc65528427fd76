"""YARN's words to a report: states, texts and times."""

import json

import pytest

from support.fake_yarn import STAMP, application, killed_text, verdict_text
from tf_yarn_ops.follow.yarn_report import (
    kill_report,
    lost_report,
    never_launched,
    queue_overrun,
    read_yarn_report,
    unsubmitted_report,
)
from tf_yarn_ops.history.record_summary import summarise
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport, run_seconds
from tf_yarn_ops.runtime.common.status import build_status
from tf_yarn_ops.terminal.summary import describe

ID = f"application_{STAMP}_0001"


def ended(state="FINISHED", final="SUCCEEDED", text="", **fields):
    return application(1, state, finalStatus=final, diagnostics=text, finishedTime=STAMP + 60_000, **fields)


def test_a_report_in_the_diagnostics_is_merged_with_yarns_words():
    own = JobReport(
        ID,
        name="other",
        state="RUNNING",
        reason=Reason.TASK_FAILED,
        message="worker:1 failed with 3",
        tasks=(TaskReport("worker:1", "failed", exit_code=3),),
        first_failure="worker:1",
    )
    report = read_yarn_report(
        ended(
            final="FAILED",
            text="Attempt recovered after RM restart" + verdict_text(own),
            launchTime=STAMP + 2500,
            trackingUrl="http://rm/proxy/x/",
        )
    )
    assert (report.state, report.final_status, report.reason) == ("FINISHED", "FAILED", Reason.TASK_FAILED)
    assert (report.name, report.queue, report.user) == ("digits", "default", "ann")
    assert (report.submitted_at, report.started_at, report.finished_at) == (
        STAMP / 1000,
        STAMP / 1000 + 2.5,
        STAMP / 1000 + 60,
    )
    assert report.queue_seconds == 2.5
    assert report.tracking_url == "http://rm/proxy/x/"
    assert report.tasks[0].exit_code == 3


def test_job_has_one_length_in_report_record_and_page():
    application_object = ended(launchTime=STAMP + 2500, trackingUrl="http://rm/proxy/x/")
    own = JobReport(ID, reason=Reason.SUCCEEDED, started_at=STAMP / 1000 + 18, finished_at=STAMP / 1000 + 58)
    report = read_yarn_report({**application_object, "diagnostics": verdict_text(own)})
    page = build_status(report, report.finished_at)
    assert run_seconds(vars(report)) == run_seconds(summarise(page)) == 55.5
    assert page["sentence"] == "The job succeeded after 56 s." and "took          56 s" in "\n".join(
        describe(report, 0.0)
    )


@pytest.mark.parametrize(
    "told, url",
    [
        ("N/A", None),
        ("", None),
        ("javascript://x", None),
        ("http://[", None),
        ("http://rm.bank@evil/", None),
        ("http://h/\x1b[31m", None),
        ("rm:8088/proxy/x/", "http://rm:8088/proxy/x/"),
    ],
)
def test_the_tracking_url_is_a_url_or_none(told, url):
    assert read_yarn_report(application(1, "ACCEPTED", trackingUrl=told)).tracking_url == url


ENTRIES = ({"key": "memory-mb", "value": "12"}, {"key": "yarn.io/gpu", "value": "7"}, {"key": "vcores", "value": "3"})


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"memorySeconds": 12, "vcoreSeconds": 3, "resourceSecondsMap": {"entry": list(ENTRIES)}}, (12, 3, 7)),
        ({"memorySeconds": 12, "resourceSecondsMap": {"entry": ENTRIES[1]}}, (12, None, 7)),
        ({"memorySeconds": 700, "vcoreSeconds": 0}, (700, 0, None)),
        ({"memorySeconds": -1, "vcoreSeconds": 2**64, "resourceSecondsMap": None}, (None, None, None)),
        ({"memorySeconds": "12", "vcoreSeconds": 1.5, "resourceSecondsMap": [1]}, (None, None, None)),
        ({"memorySeconds": True, "resourceSecondsMap": {"entry": [None, 1, {"key": []}]}}, (None, None, None)),
        ({"resourceSecondsMap": {"entry": {"key": "yarn.io/gpu", "value": "9" * 5000}}}, (None, None, None)),
        ({"resourceSecondsMap": {"entry": {"key": "yarn.io/gpu", "value": "\u0663"}}}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_cost_is_what_yarn_has_counted(told, cost):
    report = read_yarn_report(ended(**told))
    assert (report.memory_seconds, report.vcore_seconds, report.gpu_seconds) == cost


@pytest.mark.parametrize("never", [0, -1])
def test_a_time_that_has_not_come_is_none(never):
    report = read_yarn_report(application(1, "ACCEPTED", launchTime=never, finishedTime=never))
    assert (report.started_at, report.queue_seconds, report.finished_at) == (None, None, None)


def test_master_whose_file_is_not_localised_has_the_files_fault():
    first = "AM Container for appattempt_1 exited with  exitCode: {}\nFailing this attempt.Diagnostics: "
    text = first + "[1]File does not exist: hdfs://nn/e.zip\njava.io.FileNotFoundException: hdfs://nn/e.zip\n\tat x.Y"
    report = read_yarn_report(ended("FAILED", "FAILED", text.format(-1000)))
    assert (report.reason, report.exit_code) == (Reason.SUBMISSION_REJECTED, 3)
    assert report.message == (
        "YARN could not start the application master: a file of the job is gone: keep it until the job has ended "
        "(File does not exist: hdfs://nn/e.zip)"
    )
    full = first.format(-1000) + "No space left on device"
    assert read_yarn_report(ended("FAILED", "FAILED", full)).reason is Reason.AM_FAILED
    assert read_yarn_report(ended("FAILED", "FAILED", text.format(1))).reason is Reason.AM_FAILED


@pytest.mark.parametrize(
    "state, final, text, reason",
    [
        ("FINISHED", "SUCCEEDED", "", Reason.SUCCEEDED),
        ("FINISHED", "FAILED", "", Reason.AM_FAILED),
        ("FINISHED", "UNDEFINED", "", Reason.AM_FAILED),
        ("FINISHED", "KILLED", "", Reason.KILLED),
        ("KILLED", "KILLED", "Application was killed by user bob at 127.0.0.1", Reason.KILLED),
        (
            "KILLED",
            "KILLED",
            "Application is killed by ResourceManager as it has exceeded the lifetime period.",
            Reason.QUEUE_TIMEOUT,
        ),
        ("FAILED", "FAILED", "AM Container exited with  exitCode: 1 failing this attempt", Reason.AM_FAILED),
        ("FAILED", "FAILED", "AM Container for appattempt exited with  exitCode: -100", Reason.NODE_LOST),
        (
            "FAILED",
            "FAILED",
            "AM Container for appattempt_1 exited with  exitCode: 1\nFile does not exist: x (a program may say so)",
            Reason.AM_FAILED,
        ),
        ("FAILED", "FAILED", "AM Container for appattempt exited with  exitCode: -102", Reason.PREEMPTED),
        (
            "FAILED",
            "FAILED",
            "AM Container for appattempt_1 exited with  exitCode: -104 [pid=1] is running beyond the "
            "'PHYSICAL' memory limit. Current usage: 1.1 GB of 1 GB physical memory used",
            Reason.OUT_OF_MEMORY,
        ),
        (
            "FAILED",
            "FAILED",
            f"Application {ID} submitted by user ann to unknown queue: nope",
            Reason.SUBMISSION_REJECTED,
        ),
        (
            "FAILED",
            "FAILED",
            "org.apache.hadoop.security.AccessControlException: Queue root.low is STOPPED.",
            Reason.SUBMISSION_REJECTED,
        ),
        (
            "FAILED",
            "FAILED",
            "Invalid resource request! Cannot allocate containers: InvalidResourceRequestException",
            Reason.RESOURCES_IMPOSSIBLE,
        ),
        (
            "FINISHED",
            "FAILED",
            "Failure in container allocator: Invalid resource request! Cannot allocate containers as "
            "requested resource is greater than maximum allowed allocation. Requested resource type=[memory-mb]",
            Reason.RESOURCES_IMPOSSIBLE,
        ),
        (
            "FINISHED",
            "FAILED",
            "Failure in container allocator: Invalid label resource request, cluster do not contain , label= gpuu",
            Reason.SUBMISSION_REJECTED,
        ),
        (
            "FINISHED",
            "FAILED",
            "Failure in container allocator: Invalid resource request, queue=low doesn't have permission "
            "to access all labels in resource request. labelExpression of resource request=gpu. Queue labels=",
            Reason.SUBMISSION_REJECTED,
        ),
        (
            "FINISHED",
            "FAILED",
            "Failure in container allocator:\nInvalid resource request, node label not enabled but request "
            "contains label expression",
            Reason.SUBMISSION_REJECTED,
        ),
        (
            "FINISHED",
            "FAILED",
            "Attempt recovered after RM restartApplication driver failed with exit code 127, see logs",
            Reason.ENVIRONMENT_INVALID,
        ),
        (
            "FINISHED",
            "FAILED",
            "Unexpected error in application master: DestHost:destPort rm:8030. Failed on local exception: "
            "java.io.IOException: org.apache.hadoop.security.AccessControlException: Client cannot authenticate",
            Reason.SUBMISSION_REJECTED,
        ),
        ("FAILED", "FAILED", "", Reason.AM_FAILED),
    ],
)
def test_endings_without_a_report(state, final, text, reason):
    report = read_yarn_report(ended(state, final, text))
    assert report.reason is reason
    assert report.message
    if text:
        assert " ".join(text.split()) in report.message


#: Texts of YARN and Skein, each with a reason of its own, that a program could print.
WORDS = (
    "AM Container for appattempt_1 exited with  exitCode: -100",
    "AM Container for appattempt_1 exited with  exitCode: -102",
    "AM Container for appattempt_1 exited with  exitCode: -104",
    "AM Container for appattempt_1 exited with  exitCode: 86",
    f"Application {ID} failed 1 times due to Error launching appattempt_1. Got exception: java.io.EOFException",
    "Error launching appattempt_1",
    "Failure in container allocator: Invalid label resource request",
    "Failure in container allocator: Invalid resource request! it exceeds maximum allowed allocation",
    "Application driver failed with exit code 127, see logs for more information.",
    "Failed to renew token: Kind: HDFS_DELEGATION_TOKEN",
    f"Application {ID} submitted by user ann to unknown queue: nope",
    "Application is killed by ResourceManager as it has exceeded the lifetime period.",
    "AccessControlException: Queue root.low is STOPPED",
)
CRASHED = (
    f"Application {ID} failed 1 times (global limit =2; local limit is =1) due to AM Container for appattempt_1 exited "
    "with  exitCode: 1\nFailing this attempt.Diagnostics: [2026-11-28] Container exited with a non-zero exit code 1. "
    "Last 4096 bytes of stderr :\n"
)


@pytest.mark.parametrize(
    "state, before",
    [
        ("FAILED", CRASHED),
        ("FAILED", f"{CRASHED}\n\n"),
        ("FINISHED", "worker:0 failed with exit code 1: "),
        ("FINISHED", "worker:0 failed\n"),
        ("FINISHED", "ytf "),
        ("FINISHED", "Application driver failed with exit code 1, see logs for more information.\n"),
    ],
)
def test_text_that_a_program_printed_chooses_no_reason(state, before):
    """A reason such as NODE_LOST would be retried, and a master that was never launched trains again at once."""
    for words in WORDS:
        report = read_yarn_report(ended(state, "FAILED", before + words, launchTime=STAMP + 1000))
        assert report.reason is Reason.AM_FAILED and not never_launched(report), words


@pytest.mark.parametrize("words, nothing_ran", [(words, words in WORDS[3:6]) for words in WORDS[:6]])
def test_first_line_of_the_resourcemanager_chooses_the_reason(words, nothing_ran):
    report = read_yarn_report(ended("FAILED", "FAILED", f"{words}\nFailing", launchTime=STAMP + 1000))
    assert never_launched(report) is nothing_ran and (report.reason is Reason.AM_FAILED) is nothing_ran


def test_java_stack_trace_does_not_hide_the_message():
    trace = (
        "Failure in container allocator: Invalid label resource request\n"
        "\tat org.apache.hadoop.yarn.server.SchedulerUtils.check(SchedulerUtils.java:537)\n"
        "\tat java.base@17.0.1/java.security.AccessController.doPrivileged(Native Method)\n"
        "\tat jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source) ~[?:?]\n"
        "\tat org.apache.hadoop.ipc.RPC$Server.<init>(RPC.java:1) ~[hadoop-common.jar:?]\n"
        "Caused by: java.io.EOFException: it died at train(model.py:12) of /data\n\t... 12 more\nand what follows"
    )
    assert read_yarn_report(ended("FINISHED", "FAILED", trace)).message == (
        "YARN refused the application: Failure in container allocator: Invalid label resource request "
        "Caused by: java.io.EOFException: it died at train(model.py:12) of /data and what follows"
    )


@pytest.mark.parametrize(
    "text",
    [" " * 65_536, "\n" * 65_536, "at " * 20_000, " at a(" * 10_000, "\tat a(b) ~[" * 6_000, '\n{"schema":1' * 100_000],
)
@pytest.mark.timeout(10)
def test_no_text_of_yarns_keeps_its_reader(text):
    assert read_yarn_report(ended("FINISHED", "FAILED", text)).reason is Reason.AM_FAILED


@pytest.mark.parametrize(
    "text",
    [
        "Failure in container allocator: Invalid resource request! Cannot allocate containers as requested",
        "Failure in container allocator: Invalid label resource request, cluster do not contain , label= gpu",
    ],
)
def test_a_replacement_that_yarn_refuses_is_the_clusters_failure(text):
    """YARN's maximum shrinks with its nodes: what it gave at the beginning, it may refuse after the loss of a node."""
    assert read_yarn_report(ended("FINISHED", "FAILED", text, launchTime=STAMP + 50_000)).reason.retryable is False
    late = read_yarn_report(ended("FINISHED", "FAILED", text, launchTime=STAMP - 7200_000))
    assert late.reason is Reason.AM_FAILED and text in late.message


@pytest.mark.parametrize(
    "text",
    [
        "Application is killed by ResourceManager as it has exceeded the lifetime period.",
        f"Application {ID} killed due to exceeding its lifetime period 600 milliseconds",
    ],
)
def test_lifetime_of_one_that_ran_is_the_total_timeout(text):
    assert read_yarn_report(ended("KILLED", "KILLED", text, launchTime=STAMP + 1)).reason is Reason.TOTAL_TIMEOUT


def test_tasks_of_a_killed_job_are_killed_at_its_end():
    tasks = (
        TaskReport("chief:0", "succeeded", exit_code=0, started_at=1.0, finished_at=2.0),
        TaskReport("worker:0", "running", started_at=1.0),
        TaskReport("worker:1"),
    )
    sent = verdict_text(kill_report(application(1), Reason.KILLED, "by Ann", JobReport(ID, tasks=tasks)))
    report = read_yarn_report(ended("KILLED", "KILLED", killed_text(ID, sent)))
    assert [(task.state, task.finished_at) for task in report.tasks] == [
        ("succeeded", 2.0),
        ("killed", report.finished_at),
        ("killed", None),
    ]


def test_a_report_of_another_kind_in_the_diagnostics_is_not_trusted():
    broken = json.dumps({"schema": 1, "application_id": 7})
    assert read_yarn_report(ended("FAILED", "FAILED", f"text\n{broken}")).reason is Reason.AM_FAILED


@pytest.mark.parametrize("state", ["NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"])
def test_a_live_application_has_no_reason(state):
    report = read_yarn_report(application(1, state, diagnostics="Application is added to the scheduler\nand more"))
    assert (report.reason, report.state, report.message) == (None, state, "Application is added to the scheduler")
    assert report.finished_at is None and report.queue_seconds is None


def test_the_live_report_is_used_while_it_runs():
    live = JobReport(ID, message="2 of 4 tasks run.", tasks=(TaskReport("worker:0", "running"),))
    report = read_yarn_report(application(1, "RUNNING"), live)
    assert (report.message, report.tasks, report.user) == ("2 of 4 tasks run.", live.tasks, "ann")


def test_a_late_live_report_does_not_cover_the_end():
    assert read_yarn_report(ended("KILLED", "KILLED"), JobReport(ID, message="all run")).reason is Reason.KILLED


@pytest.mark.parametrize("queue, shown", [("root.default", "default"), ("root.a.b", "a.b"), ("myroot.x", "myroot.x")])
def test_queue_names(queue, shown):
    assert read_yarn_report(application(1, queue=queue)).queue == shown


def test_what_yarn_forgot_is_lost_and_what_it_never_saw_is_killed():
    assert (lost_report(ID).reason, lost_report(ID).exit_code) == (Reason.LOST, 9)
    report = unsubmitted_report(ID, "cancelled")
    assert (report.reason, report.message) == (Reason.KILLED, "cancelled (before it was submitted)")


def test_queue_overrun_by_the_resourcemanagers_clock():
    waiting = application(1, "ACCEPTED", elapsedTime=61_000, diagnostics="AM container is pending")
    assert queue_overrun(waiting, 60) == (
        "The application master has waited in queue root.default for 61 s, longer than the 60 s of the queue "
        "deadline: AM container is pending"
    )
    assert queue_overrun(waiting, 0) is None
    assert queue_overrun(waiting, 62) is None
    assert queue_overrun(waiting | {"state": "RUNNING"}, 1) is None
    # It has left the queue: its container is localised, and its master starts.
    assert queue_overrun(waiting | {"launchTime": STAMP}, 60) == (
        "The application master was launched from queue root.default, and does not run 61 s after the submission, longer than "
        "the 60 s of the queue deadline: AM container is pending"
    )


@pytest.mark.parametrize("told", ["http", "https"])
@pytest.mark.parametrize("real", ["http", "https"])
def test_addresses_of_logs_have_the_scheme_of_the_nodes(told, real):
    """A coordinator judges by the ResourceManager's address, which a proxy may serve."""
    task = TaskReport("worker:0", log_url=f"{told}://node:8044/node/containerlogs/container_1/ann/worker.log")
    seen = application(1, amContainerLogs=f"{real}://node:8044/node/containerlogs/container_0/ann")
    found = read_yarn_report(seen, JobReport(ID, tasks=(task,)))
    assert found.tasks[0].log_url == f"{real}://node:8044/node/containerlogs/container_1/ann/worker.log"

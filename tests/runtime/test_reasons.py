"""The table of reasons is complete, and its exit codes stay."""

import pytest

from tf_yarn_ops.runtime.common.reasons import Reason, find_localisation_fault

EXIT_CODES = {
    0: "SUCCEEDED", 1: "TASK_FAILED UNKNOWN_REASON", 2: "SPEC_INVALID ENVIRONMENT_INVALID", 3: "SUBMISSION_REJECTED RESOURCES_IMPOSSIBLE COMMIT_REFUSED",
    4: "CLUSTER_UNREACHABLE",
    5: "QUEUE_TIMEOUT ALLOCATION_TIMEOUT REGISTRATION_TIMEOUT HEARTBEAT_LOST CONTAINER_LOST PREEMPTED NODE_LOST "
       "AM_FAILED LEASE_EXPIRED COMMIT_FAILED",
    6: "OUT_OF_MEMORY", 7: "EXECUTION_TIMEOUT STALLED TOTAL_TIMEOUT", 8: "KILLED SUPERSEDED", 9: "LOST",
}  # fmt: skip


def test_value_of_each_reason_is_its_name():
    assert all(reason.value == reason.name for reason in Reason)


@pytest.mark.parametrize("code", EXIT_CODES)
def test_exit_codes(code):
    assert {reason.value for reason in Reason if reason.exit_code == code} == set(EXIT_CODES[code].split())


def test_only_failures_of_the_infrastructure_are_retryable():
    assert {reason.exit_code for reason in Reason if reason.retryable} == {4, 5}
    assert all(reason.retryable for reason in Reason if reason.exit_code in (4, 5))


#: First words of the hints: what the operator does next.
VERBS = {"Ask", "Check", "Correct", "Find", "Follow", "Poll", "Raise", "Read", "Submit", "Use"}


def test_hints_are_sentences_that_say_what_to_do():
    for reason in Reason:
        assert reason.hint.endswith("."), reason
        assert reason.hint.split()[0] in VERBS or reason is Reason.SUCCEEDED, reason


STACK = (
    " at org.apache.hadoop.yarn.util.FSDownload.verifyAndCopy(FSDownload.java:283) at java.base/java.lang.Thread.run"
    "(Thread.java:840)"
)
UNPACK = (
    "[2026-11-29 09:32:49.690] java.lang.reflect.UndeclaredThrowableException" + STACK + " Caused by: "
    "org.apache.hadoop.yarn.exceptions.YarnException: Download and unpack failed" + STACK + " ... 10 more Caused by: {}"
)
#: What NodeManagers of Hadoop 3.4.3 have said of files that they could not localise; the reason, words, everywhere.
LOCALISATION = {
    "missing": (
        "[2026-11-29 09:32:41.881]File does not exist: hdfs://nn:8020/data/m.zip java.io.FileNotFoundException: File "
        "does not exist: hdfs://nn:8020/data/m.zip" + STACK,
        (Reason.SUBMISSION_REJECTED, "File does not exist: hdfs://nn:8020/data/m.zip", True),
    ),
    "staged": (
        "File does not exist: hdfs://nn:8020/user/ann/.skein/cache/0a1b/runtime.zip\njava.io.FileNotFoundException: x",
        (
            Reason.CONTAINER_LOST,
            "File does not exist: hdfs://nn:8020/user/ann/.skein/cache/0a1b/runtime.zip",
            True,
        ),
    ),
    "changed": (
        "[2026-11-29 09:32:36.169]Resource hdfs://nn:8020/c.zip changed on src filesystem - expected: \"1\", was: \"2\" "
        "java.io.IOException: Resource hdfs://nn:8020/c.zip changed on src filesystem" + STACK,
        (
            Reason.CONTAINER_LOST,
            'Resource hdfs://nn:8020/c.zip changed on src filesystem - expected: "1", was: "2"',
            True,
        ),
    ),
    "forbidden": (
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann, access=READ, "
        'inode="/f.zip":root:supergroup:----------' + STACK,
        (
            Reason.SUBMISSION_REJECTED,
            'AccessControlException: Permission denied: user=ann, access=READ, inode="/f.zip":root:supergroup:----------',
            True,
        ),
    ),
    "zip": (
        UNPACK.format("java.util.zip.ZipException: Cannot find zip signature within the file" + STACK),
        (Reason.SUBMISSION_REJECTED, "ZipException: Cannot find zip signature within the file", True),
    ),
    "tar": (
        UNPACK.format("java.io.IOException: Error executing command. gzip -dc | (cd '/x/b.tar.gz' && tar -x )"),
        (Reason.CONTAINER_LOST, "Download and unpack failed", False),
    ),
    "disk": (
        UNPACK.format("java.io.IOException: No space left on device" + STACK),
        (Reason.CONTAINER_LOST, "No space left on device", False),
    ),
    "read-only": (
        "java.io.FileNotFoundException: /data3/nm/filecache/1_tmp/e.zip (Read-only file system)" + STACK,
        (Reason.CONTAINER_LOST, "(Read-only file system)", False),
    ),
    "private": (
        "java.io.FileNotFoundException: File file:/data1/nm/nmPrivate/c_1.tokens does not exist" + STACK,
        (Reason.CONTAINER_LOST, "File file:/data1/nm/nmPrivate/c_1.tokens does not exist", False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOCALISATION)
def test_file_that_is_not_localised_has_reason_and_yarns_words(name):
    text, expected = LOCALISATION[name]
    fault = find_localisation_fault(text)
    assert (fault.reason, fault.words, fault.everywhere) == expected
    assert str(fault) == f"{fault.advice} ({fault.words})" and " at org." not in str(fault)


@pytest.mark.parametrize("text", ["", "org.apache.hadoop.security.AccessControlException: Client cannot authenticate "
    "via:[TOKEN, KERBEROS]", "Container killed on request. Exit code is 143", "[1]Exception from "
    "container-launch. Exit code: 1 Last 4096 bytes of stderr: FileNotFoundException: File does not exist: x"])  # fmt: skip
def test_other_texts_name_no_file_of_the_job(text):
    assert find_localisation_fault(text) is None

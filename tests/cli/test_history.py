"""``ytf history``, ``ytf compare`` and ``ytf report``, when YARN has forgotten the applications."""

import json
import re

import pytest
from click.testing import CliRunner

from support.fake_yarn import application
from support.records import DAY, STAMP, application_id, keep, record
from support.staging_place import USER
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.runtime.common.reasons import Reason


@pytest.fixture
def place(yarn, tmp_path, monkeypatch):
    """Write records into a file system that is a folder; return a function that calls ytf on it."""
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}"}
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    cluster = discover(yarn.url)
    for made in (
        record(1, user=USER),
        record(2, user=USER, name="<script>\x1b[2J", loss=0.5, ended=STAMP + 3.0 * DAY),
        record(
            3,
            user=USER,
            reason=Reason.TASK_FAILED,
            ended=STAMP + 5.0 * DAY,
            tail="no data\n",
            memory_seconds=7_372_800,
            vcore_seconds=900,
        ),
        record(4, user="bob", queue="gpus", memory_seconds=2**53, vcore_seconds=1, gpu_seconds=5400),
    ):
        theirs = cluster.acting_for(made["user"])
        keep(cluster.open_filesystem(), theirs.history, made)

    def call(*words):
        done = CliRunner().invoke(ytf, [*words, "--resourcemanager", yarn.url])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return call


def test_history_is_a_table_of_own_jobs_the_latest_first(place):
    lines = place("history").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["APPLICATION", *map(application_id, (3, 2, 1))]
    assert lines[0].split()[1:] == [
        "ENDED", "REASON", "TOOK", "QUEUED", "GIB-HOURS", "VCORE-HOURS", "NAME", "METRICS"
    ]  # fmt: skip
    assert re.search("TASK_FAILED  10 min 0 s  30 s +2 +0.25 ", lines[1]) and re.search("30 s +- +- ", lines[3])
    assert re.search(r"digits +loss 0.25$", lines[3])
    assert "<script>\\u001b[2J" in lines[2]


def test_costs_are_added_up_by_user_and_queue(place):
    lines = place("history", "--user", "*", "--by", "user, QUEUE").stdout.splitlines()
    assert [re.split(r" {2,}", line) for line in lines] == [
        ["USER", "QUEUE", "JOBS", "TOOK", "GIB-HOURS", "VCORE-HOURS", "GPU-HOURS"],
        ["bob", "gpus", "1", "10 min 0 s", "2443359173", "0.000278", "1.5"],
        [USER, "default", "3", "30 min 0 s", "2", "0.25", "-"],
    ]
    (total,) = json.loads(place("history", "--by", "queue", "--json").stdout)
    assert total == {
        "queue": "default", "jobs": 3, "run_seconds": 1800.0,
        "memory_seconds": 7_372_800, "vcore_seconds": 900, "gpu_seconds": 0,
    }  # fmt: skip
    assert re.search("memory_seconds +- +7372800", place("compare", *map(application_id, (1, 3))).stdout)
    refused = place("history", "--by", "usr")
    assert refused.exit_code == 2 and "'usr' is no key (did you mean 'user'?)" in refused.stderr


def test_history_is_filtered_and_limited(place, monkeypatch):
    assert place("history", "--state", "failed", "--json").stdout.count("application_id") == 1
    assert [job["name"] for job in json.loads(place("history", "--name", "dig*", "--json").stdout)] == [
        "digits",
        "digits",
    ]
    limited = place("history", "--limit", "1")
    assert application_id(3) in limited.stdout and application_id(2) not in limited.stdout
    assert "there are more; give --limit 10" in limited.stderr
    assert "no such jobs in the history" in place("history", "--since", "30m").stderr
    monkeypatch.setenv("HADOOP_USER_NAME", "carl")
    assert "no job of yours has ended yet" in place("history").stderr
    others = place("history", "--user", "*").stdout
    assert application_id(4) in others and "USER" in others


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--since", "soon"], "'soon' is neither an age"), (["--state", "lost,fine"], "'FINE' is no state")],
)
def test_a_wrong_filter_is_refused_with_what_is_allowed(place, words, says):
    done = place("history", *words)
    assert done.exit_code == 2 and says in done.stderr


def test_compare_shows_first_what_differs(place):
    pages = [f"http://rm:8088/proxy/{application_id(number)}/" for number in (1, 2)]
    lines = place("compare", *pages).stdout.splitlines()
    assert lines[0].split() == [application_id(1), application_id(2)]
    assert lines[2] == "-- metrics" and lines[3].split() == ["loss", "0.25", "0.5"]
    assert lines[-1].endswith("values are equal; --all prints them")
    document = json.loads(place("compare", application_id(1), application_id(2), "--json").stdout)
    assert document["rows"][0] == {"section": "metrics", "name": "loss", "values": [0.25, 0.5], "differs": True}
    assert "command" in place("compare", application_id(1), application_id(2), "--all").stdout


def test_report_falls_back_to_the_history(place, yarn):
    done = place("report", application_id(3))
    assert done.exit_code == 0 and "this is from the history" in done.stderr
    assert f"{application_id(3)} TASK_FAILED: The job ended with TASK_FAILED" in done.stdout
    assert "no data" in done.stdout and "next: ytf logs" in done.stdout
    report = json.loads(place("report", application_id(1), "--json").stdout)
    assert (report["reason"], report["metrics"], report["schema"]) == ("SUCCEEDED", {"loss": 0.25}, 1)
    page = f"http://127.0.0.1:9000/jobs/{application_id(9)}"
    assert place("report", page).stdout.startswith(f"{application_id(9)} LOST: ")


def test_yarn_knows_better_than_the_history_while_it_remembers(place, yarn):
    yarn.add(application(1, "FINISHED", user=USER, finalStatus="SUCCEEDED", finishedTime=STAMP * 1000))
    done = place("report", application_id(1))
    assert "history" not in done.stderr and "The application succeeded" in done.stdout

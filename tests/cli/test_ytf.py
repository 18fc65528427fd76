"""The command line without a cluster: words in, exit codes and texts out."""

import json
import re

import pytest
from click.testing import CliRunner

from support.fake_yarn import FakeYarn, application, serving
from support.forged import ENDS, end_forged
from support.programs import SUBMIT, YTF, run, run_here
from tf_yarn_ops import __version__
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import TfYarnError
from tf_yarn_ops.hadoop.cluster import current_user
from tf_yarn_ops.runtime.common.reasons import Reason

APP = "application_1700000000000_0001"


# --- help and documentation -----------------------------------------------------------------------
def test_ytf_lists_its_commands():
    page = run(YTF, "-h").stdout
    for command in ("status", "wait", "report", "logs", "kill", "list", "cache", "minicluster"):
        assert re.search(rf"^  {command} ", page, re.M)
    assert "up" in run_here(YTF, "minicluster", "-h").stdout


# --- the program ------------------------------------------------------------------------------------
def test_faults_end_with_2_and_nothing_on_stdout():
    done = run(SUBMIT, "-r", "ps:0,worker:2", "-c", "wroker:2", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 faults in the request:" in done.stderr and "did you mean 'worker'?" in done.stderr


@pytest.mark.parametrize(("program", "name"), [(SUBMIT, "ytf-submit"), (YTF, "ytf")])
def test_both_programs_know_their_version(program, name):
    done = run(program, "--version")
    assert (done.returncode, done.stdout) == (0, f"{name}, version {__version__}\n")


@pytest.mark.slow
def test_a_kill_says_that_an_application_had_ended():
    yarn = FakeYarn()
    names = [yarn.add(application(number)) for number in (1, 2)]
    yarn.end(names[0], "", "FINISHED", "SUCCEEDED")
    with serving(yarn) as url:
        done = run_here(YTF, "kill", "--resourcemanager", url, *names)
    first, second = done.stderr.splitlines()
    assert done.returncode == 0
    assert first.startswith(f"{names[0]} had ended, so nothing is killed: SUCCEEDED: ")
    assert second.startswith(f"{names[1]} KILLED: ")


def test_a_kill_that_fails_does_not_spare_the_others():
    yarn = FakeYarn()
    names = [yarn.add(application(number)) for number in (1, 2, 3)]
    yarn.faults.append(
        lambda method, path: (
            (403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "it is bob\'s"}}')
            if method == "PUT" and names[1] in path
            else None
        )
    )
    with serving(yarn) as url:
        done = run_here(YTF, "kill", "--json", "--resourcemanager", url, *names)
    assert [report["reason"] for report in json.loads(done.stdout)] == ["KILLED", "SUBMISSION_REJECTED", "KILLED"], (
        done.stderr
    )
    assert done.returncode == 3 and "it is bob's" in done.stderr and "Traceback" not in done.stderr
    assert [yarn.apps[name]["state"] for name in names] == ["KILLED", "RUNNING", "KILLED"]
    assert [(report["state"], report["final_status"]) for report in json.loads(done.stdout)] == [
        ("KILLED", "KILLED"),
        ("", "UNDEFINED"),
        ("KILLED", "KILLED"),
    ]
    assert f"{names[1]} could not be killed: " in done.stderr and "ytf-submit" not in done.stderr


@pytest.fixture(scope="module")
def unanswered():
    """Run each command about an application while its ResourceManager is away; each waits for seconds."""
    words = ["status", "report", "wait", "kill"]
    address = ["--json", "--resourcemanager", "http://127.0.0.1:1", APP]
    return {word: run_here(YTF, word, *address) for word in words}


@pytest.mark.slow
@pytest.mark.parametrize("word", ["status", "report", "wait", "kill"])
def test_of_an_application_that_can_not_be_asked_for_nothing_is_claimed(unanswered, word):
    """It may train on: a script that reads FAILED would begin another."""
    done = unanswered[word]
    [report] = json.loads(done.stdout) if word == "kill" else [json.loads(done.stdout)]
    assert (done.returncode, report["reason"]) == (4, "CLUSTER_UNREACHABLE"), done.stderr
    assert (report["state"], report["final_status"]) == ("", "UNDEFINED")
    assert done.stderr.splitlines()[-1] == "next: ytf list --resourcemanager http://HOST:8088"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "following"),
    [
        ([], 2, "next: ytf-submit -h"),
        (["-r", "worker:1"], 2, Reason.SPEC_INVALID.hint),
        (["-r", "worker:1", "-m", "lots", "true"], 2, Reason.SPEC_INVALID.hint),
        (["-r", "worker:1", "-q", "nowhere", "true"], 3, "next: ytf doctor"),
        (["-r", "worker:1", "-m", "900g", "true"], 3, "next: ytf doctor"),
    ],
)
def test_a_refusal_ends_with_the_next_command(words, code, following):
    with serving(FakeYarn()) as url:
        done = run_here(SUBMIT, "--resourcemanager", url, *words)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, following)


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
def test_no_command_believes_a_forged_report(how):
    yarn = FakeYarn()
    name = yarn.add(application(1, user=current_user({})))
    end_forged(yarn, name, how)
    with serving(yarn) as url:
        for words in (["status", name], ["report", "--json", name], ["list"], ["logs", name]):
            done = CliRunner().invoke(ytf, [*words, "--resourcemanager", url])
            assert "evil" not in done.output and isinstance(done.exception, TfYarnError | SystemExit | type(None))
            assert "SUCCEEDED" not in done.stdout
        done = run_here(YTF, "wait", "--resourcemanager", url, name)
    assert done.returncode == (8 if how.startswith("killed") else 5)
    assert "evil" not in done.stdout + done.stderr

"""The action in Oozie's launcher, on a fake YARN: its outputs, its log, its exit code."""

import os

import javaproperties
import pytest

from support.forged import ENDS as FORGED
from support.place import ID, USER, Place
from tf_yarn_ops.oozie.action import run_action
from tf_yarn_ops.terminal.signals import Interruption

CONFIGURATION = """<configuration>
<property><name>oozie.job.id</name><value>0000004-oozie-W</value></property>
<property><name>oozie.action.id</name><value>0000004-oozie-W@train</value></property>
</configuration>"""


@pytest.fixture
def act(yarn, tmp_path, monkeypatch):
    """Return a function that runs the action; it returns the exit code and the outputs."""
    Place(yarn, tmp_path / "fs")
    (tmp_path / "job.yaml").write_text("tasks: {worker: {instances: 2, memory: 512}}\ncommand: 'true'\n")
    (tmp_path / "action.xml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    environ = {
        "HOME": "/nowhere",
        "YTF_RESOURCEMANAGER": yarn.url,
        "HADOOP_USER_NAME": USER,
        "CONTAINER_ID": "container_1700000000000_0042_01_000001",
        "OOZIE_ACTION_CONF_XML": "action.xml",
    }

    def run():
        read, write = os.pipe()
        with Interruption() as interruption:
            code = run_action(environ, interruption, write)
        os.close(write)
        with open(read, encoding="utf-8") as printed:
            text = printed.read()
        outputs = javaproperties.loads(text)
        kept = (tmp_path / "externalChildIDs").read_text(encoding="utf-8")
        assert kept == f"{outputs.get('application_id', '')}\n{text}"
        return code, outputs

    return run


def ends(yarn, *end):
    """End the application at the first look behind its submission."""

    def end_submitted(method, path):
        if method == "GET" and path.endswith(ID) and ID in yarn.apps:
            yarn.end(ID, *end)

    yarn.faults.append(end_submitted)


def test_action_trains_and_prints_its_outputs(act, yarn, capfd, tmp_path):
    ends(yarn, "", "FINISHED", "SUCCEEDED")
    code, outputs = act()
    assert (code, outputs["status"], outputs["application_id"]) == (0, "SUCCEEDED", ID)
    assert outputs["report_path"].endswith(f"/reports/{ID}.json")
    assert len(list((tmp_path / "fs").rglob(f"reports/{ID}.json"))) == 1
    log = capfd.readouterr().err
    assert f" training in {ID}\n" in log and f"{ID} SUCCEEDED" in log
    assert yarn.apps[ID]["body"]["application-tags"]["tag"]


@pytest.mark.parametrize("how", FORGED)
def test_forged_report_is_no_result(act, yarn, capfd, how):
    state, final, text = FORGED[how](ID)
    ends(yarn, text, state, final)
    code, outputs = act()
    assert code == (8 if how.startswith("killed") else 5)
    assert outputs["status"] == ("KILLED" if how.startswith("killed") else "FAILED")
    assert not any("evil" in value or "javascript:" in value for value in outputs.values())
    assert "evil" not in capfd.readouterr().err


def test_a_request_with_faults_names_them_all(act, yarn, tmp_path):
    with open(tmp_path / "job.yaml", "a", encoding="utf-8") as file:
        file.write("memorry: 1\nqueue: 5\n")
    code, outputs = act()
    assert (code, outputs["reason"], outputs["status"]) == (2, "SPEC_INVALID", "FAILED")
    assert "memorry" in outputs["message"] and "queue" in outputs["message"] and not yarn.apps


def test_action_names_the_refusal_of_a_submission(act, capfd, tmp_path):
    with open(tmp_path / "job.yaml", "a", encoding="utf-8") as file:
        file.write("queue: nowhere\n")
    code, outputs = act()
    assert (code, outputs["reason"], outputs["status"]) == (3, "SUBMISSION_REJECTED", "FAILED")
    assert outputs["message"] in capfd.readouterr().err

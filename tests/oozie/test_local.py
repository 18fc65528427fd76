"""The action on ``local://``, as a person tries it in the folder of the job: without Oozie and YARN."""

import os
import signal
import subprocess
import sys

import javaproperties
import pytest
import yaml

from support.secret_spellings import job_of_secrets
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import local

JOB = "command: {command}\ntasks: {{worker: 1}}\nfiles: {{day.txt: day.txt}}\n"


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the action on a command; its jobs lie below ``state``."""

    def start(command, document=""):
        (tmp_path / "day.txt").write_text("the data of")
        (tmp_path / "job.yaml").write_text(document or JOB.format(command=command))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "YTF_OOZIE_nominalDate": "2026-11-21",
            "YTF_RESOURCEMANAGER": f"local://{tmp_path}/state",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tf_yarn_ops.oozie.action"],
            cwd=tmp_path,
            env=environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )

    return start


def states(folder):
    return [(job["state"], job["finalStatus"]) for job in local(folder).backend().find()]


@pytest.mark.slow
def test_each_start_trains_and_prints_the_outputs(start, tmp_path):
    command = """'[ "$(cat day.txt) ${nominalDate}" = "the data of 2026-11-21" ] && echo "{\\"rate\\": 0.5}" > $YTF_RESULT_FILE'"""
    for trainings in (1, 2):
        action = start(command)
        out, shown = action.communicate(timeout=60)
        assert action.returncode == 0, shown
        outputs = javaproperties.loads(out)
        assert (outputs["status"], outputs["metric.rate"]) == ("SUCCEEDED", "0.5")
        assert states(tmp_path / "state") == [("FINISHED", "SUCCEEDED")] * trainings


@pytest.mark.slow
def test_log_and_outputs_show_no_secret(start, tmp_path):
    secret = job_of_secrets(tmp_path, waits=False)
    document = {"command": secret.command, "tasks": {"worker": 1}, "env": secret.env, "report_log_tail": 8192}
    action = start("", yaml.safe_dump(document))
    out, shown = action.communicate(timeout=120)
    assert action.returncode == 1 and "TASK_FAILED: worker:0 failed with exit code 4" in shown, shown
    assert secret.found_in({"outputs": out, "log": shown}) == {}


@pytest.mark.slow
def test_ctrl_c_kills_the_training(start, tmp_path):
    action = start(f"echo $$ > {tmp_path}/started; exec tail -f /dev/null")
    until((tmp_path / "started").exists, what="the start of the task")
    action.send_signal(signal.SIGINT)
    _, shown = action.communicate(timeout=60)
    assert action.returncode == 8, shown
    assert states(tmp_path / "state") == [("KILLED", "KILLED")]

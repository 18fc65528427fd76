"""The launcher on ``local://``: a job file of a flow, tried on this machine without Azkaban's server and YARN."""

import json
import re
import signal

import pytest

from support.azkaban_process import Job
from support.secret_spellings import job_of_secrets
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import local

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path, launchers):
    """Return a function that starts the launcher; its jobs lie below ``state``. No process outlives the test."""
    started = []

    def start(**properties):
        started.append(Job(tmp_path / "project", f"local://{tmp_path}/state", properties, launchers).start())
        return started[-1]

    yield start
    for job in started:
        job.process.kill()
        job.process.wait()


def states(folder):
    return [(job["state"], job["finalStatus"]) for job in local(folder).backend().find()]


def test_training_ends_with_its_outputs_and_the_bare_id(start, tmp_path):
    job = start(**{"tf.command": """echo '{"accuracy": 0.9}' > "$YTF_RESULT_FILE" """})
    assert job.end() == 0, job.lines
    outputs = json.loads(job.outputs.read_text())
    assert outputs["tf.result.metrics.accuracy"] == "0.9"
    assert outputs["tf.result.application_id"] in job.lines and job.lines[-1].startswith("SUCCEEDED")
    assert states(tmp_path / "state") == [("FINISHED", "SUCCEEDED")]


def test_log_and_outputs_show_no_secret(start, tmp_path):
    secret = job_of_secrets(tmp_path, waits=False)
    variables = {f"tf.env.{name}": value for name, value in secret.env.items()}
    job = start(**{"tf.command": secret.command, "tf.report_log_tail": "8192", **variables})
    assert job.end() == 1, job.lines
    assert job.lines[-1].startswith("TASK_FAILED: worker:0 failed with exit code 4")
    assert secret.found_in({"log": "\n".join(job.lines), "outputs": job.outputs.read_text()}) == {}


def test_cancelled_job_kills_the_training(start, tmp_path):
    job = start(**{"tf.command": f"touch {tmp_path}/started; exec tail -f /dev/null"})
    until((tmp_path / "started").exists, what="the start of the task")
    job.process.send_signal(signal.SIGTERM)
    assert job.end() != 0 and re.match("KILLED", job.lines[-1]), job.lines
    assert states(tmp_path / "state") == [("KILLED", "KILLED")]

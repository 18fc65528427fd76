"""The local task of --client beside a job."""

import json

from support.waiting import until
from tf_yarn_ops.cli.client import LocalTask
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.request import build_job
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

APP = "application_1700000000000_0001"


def test_a_local_command_without_grace_is_killed(tmp_path):
    """0 is no time, not any time."""
    job = JobSpec(tasks={"worker": TaskSpec()}, command="true", deadlines=Deadlines(stop_grace=0))
    task = LocalTask(job, f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done")
    task.start(APP, {"worker": ["n:1"]})
    until((tmp_path / "ready").exists)
    task.end()
    assert not task.running


def test_the_local_client_has_the_variables_of_the_tasks(monkeypatch):
    monkeypatch.setenv("FROM_HERE", "1")
    job = build_job({"cluster_requirement": "ps:1,worker:1", "task_command": "python ${DTF_TASK_SCRIPT}", "input": "/i",
                     "output": "/o", "script": "sub/train.py", "env": "A=b"})  # fmt: skip
    env = LocalTask(job).environment(APP, {"ps": ["n1:1"], "worker": ["n2:2"]})
    expected = {
        "DTF_TASK_JOB_NAME": "client", "DTF_TASK_INDEX": "0", "DTF_PS_HOSTS": "n1:1", "DTF_WORKER_HOSTS": "n2:2",
        "DTF_INPUT_PATH": "/i", "DTF_OUTPUT_PATH": "/o", "DTF_TASK_SCRIPT": "sub/train.py", "A": "b", "FROM_HERE": "1",
        "YTF_APPLICATION_ID": APP, "DTF_TASK_PROGRAM": "python ${DTF_TASK_SCRIPT}",
    }  # fmt: skip
    assert {name: env.get(name) for name in expected} == expected
    assert json.loads(env["TF_CONFIG"])["cluster"] == {"ps": ["n1:1"], "worker": ["n2:2"]}
    assert "YTF_RESULT_FILE" not in env and "YTF_PORT" not in env

"""The local task of --client beside a job."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap

import pytest

from support.fake_webhdfs import serving_files
from support.programs import ROOT
from support.waiting import lives, until
from tf_yarn_ops.cli.client import LocalTask
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts, local
from tf_yarn_ops.job.request import build_job

APP = "application_1700000000000_0001"


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Return a function that prepares the task of a job and runs its command in the first round."""
    made = []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def begin(command, cluster=None, **options):
        job = build_job({"cluster_requirement": "worker:1", "task_command": command, **options})
        made.append(task := LocalTask(job))
        task.prepare(cluster or local(tmp_path / "jobs"))
        new_round(task, 1)
        return task

    yield begin
    for task in made:
        task.close()


def new_round(task, number):
    task.start(APP, number, lambda: {"worker": [f"n:{number}"]})


def read_pid(file):
    return int(until(lambda: file.exists() and file.read_text().strip(), what=f"a process id in {file.name}"))


def test_a_local_command_without_grace_is_killed(begin, tmp_path):
    """0 is no time, not any time."""
    task = begin(f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done", stop_grace="0")
    until((tmp_path / "ready").exists)
    task.close()
    assert not task.running


def test_the_local_client_has_the_variables_of_the_tasks(monkeypatch):
    monkeypatch.setenv("FROM_HERE", "1")
    job = build_job({"cluster_requirement": "ps:1,worker:1", "task_command": "python ${DTF_TASK_SCRIPT}", "input": "/i",
                     "output": "/o", "script": "sub/train.py", "env": "A=b"})  # fmt: skip
    env = LocalTask(job).environment(APP, 3, {"ps": ["n1:1"], "worker": ["n2:2"]})
    expected = {
        "DTF_TASK_JOB_NAME": "client", "DTF_TASK_INDEX": "0", "DTF_PS_HOSTS": "n1:1", "DTF_WORKER_HOSTS": "n2:2",
        "DTF_INPUT_PATH": "/i", "DTF_OUTPUT_PATH": "/o", "DTF_TASK_SCRIPT": "train.py", "A": "b", "FROM_HERE": "1",
        "YTF_APPLICATION_ID": APP, "DTF_TASK_PROGRAM": "python ${DTF_TASK_SCRIPT}", "YTF_ROUND": "3",
        "YTF_PYTHON": sys.executable, "OLDPWD": os.getcwd(),
    }  # fmt: skip
    assert {name: env.get(name) for name in expected} == expected
    assert json.loads(env["TF_CONFIG"])["cluster"] == {"ps": ["n1:1"], "worker": ["n2:2"]}
    assert "YTF_RESULT_FILE" not in env and "YTF_PORT" not in env


def test_client_does_not_take_the_command_of_tasks_that_serve():
    job = build_job({"cluster_requirement": "ps:1,worker:1", "command": ["ps=ytf-server", "worker=train"]})
    assert LocalTask(job).environment(APP, 1, {"worker": ["n:1"]})["DTF_TASK_PROGRAM"] == "train"


def test_client_works_in_a_folder_like_a_container_that_is_deleted(begin, tmp_path):
    (tmp_path / "train.py").write_text("print('trained')")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("1,2\n")
    (tmp_path / "packed/bin").mkdir(parents=True)
    (tmp_path / "packed/bin/python").write_text("#!/bin/sh\necho packed python runs $*\n")
    (tmp_path / "packed/bin/python").chmod(0o755)
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "packed", ".")
    task = begin(
        f"(pwd; cat rows data/a.csv lib/bin/python; python $DTF_TASK_SCRIPT; echo $YTF_PYTHON) > {tmp_path}/part;"
        f"mv {tmp_path}/part {tmp_path}/seen",
        script=str(tmp_path / "train.py"),
        environment=str(tmp_path / "env.tar.gz"),
        file=[f"rows={tmp_path}/data/a.csv", f"data={tmp_path}/data"],
        archive=[f"lib={tmp_path}/env.tar.gz"],
    )
    until((tmp_path / "seen").exists)
    task.close()
    folder, *lines = (tmp_path / "seen").read_text().splitlines()
    assert lines == [
        "1,2",
        "1,2",
        "#!/bin/sh",
        "echo packed python runs $*",
        "packed python runs train.py",
        f"{folder}/environment/bin/python",
    ]
    assert folder.startswith(f"{tmp_path}/ytf-client-") and not os.path.exists(folder)


def test_client_copies_files_of_hdfs_with_its_own_identity(begin, tmp_path):
    with tarfile.open(tmp_path / "lib.tar.gz", "w:gz") as archive:
        archive.add(__file__, "test.py")
    with serving_files() as served:
        served.files.update({"/in/rows": b"1,2\n", "/in/lib.tar.gz": (tmp_path / "lib.tar.gz").read_bytes()})
        cluster = Cluster(
            ("http://rm:1",), "ann", "ann", StorageFacts("hdfs://nn", "hdfs://nn", "/s/{user}", webhdfs=(served.url,))
        )
        begin(
            f"ls lib > {tmp_path}/part; cat rows >> {tmp_path}/part; mv {tmp_path}/part {tmp_path}/seen",
            cluster,
            file=["rows=hdfs://nn/in/rows"],
            archive=["lib=hdfs:///in/lib.tar.gz"],
        )
        until((tmp_path / "seen").exists)
        assert (tmp_path / "seen").read_text() == "test.py\n1,2\n"
        assert {parameters.get("user.name") for _, _, _, parameters in served.requests} == {"ann"}
        with pytest.raises(SpecInvalid, match="hdfs:///in/none is no file"):
            begin("true", cluster, file=["rows=hdfs:///in/none"])


def test_client_starts_again_with_each_round_after_its_end(begin, tmp_path):
    """As in a container: SIGTERM, the grace, and only then the next round."""
    log = tmp_path / "log"
    task = begin(
        f"trap 'sleep 0.3; echo end $YTF_ROUND >> {log}; exit' TERM; echo start $DTF_WORKER_HOSTS >> {log};"
        "while :; do sleep 0.05; done"
    )
    until(lambda: log.exists() and "start n:1" in log.read_text())
    new_round(task, 1)
    new_round(task, 2)
    until(lambda: "start n:2" in log.read_text())
    task.close()
    assert log.read_text().splitlines() == ["start n:1", "end 1", "start n:2", "end 2"]


def test_client_that_has_ended_runs_again_in_a_new_round(begin, tmp_path):
    task = begin(f"echo $YTF_ROUND >> {tmp_path}/rounds")
    until(lambda: not task.running)
    new_round(task, 1)
    new_round(task, 2)
    until(lambda: not task.running)
    assert (tmp_path / "rounds").read_text() == "1\n2\n"


def test_client_waits_for_a_cluster_spec(begin, tmp_path):
    task = begin("true")
    task.start(APP, 2, lambda: None)
    until(lambda: not task.running)
    seen = []
    task.start(APP, 2, lambda: seen.append(1) or {"worker": ["n:1"]})
    task.start(APP, 2, lambda: seen.append(2))
    assert seen == [1]


def test_end_of_the_client_ends_what_its_command_has_started(begin, tmp_path):
    task = begin(f"(trap '' TERM; echo $BASHPID > {tmp_path}/pid; while :; do sleep 0.05; done) & wait", stop_grace="0")
    left = read_pid(tmp_path / "pid")
    task.close()
    assert not lives(left)


def test_client_ends_when_ytf_submit_is_killed(tmp_path):
    program = textwrap.dedent(f"""
        import sys
        from tf_yarn_ops.cli.client import LocalTask
        from tf_yarn_ops.hadoop.cluster import local
        from tf_yarn_ops.job.request import build_job
        task = LocalTask(build_job({{"cluster_requirement": "worker:1", "task_command": sys.argv[1]}}))
        task.prepare(local({str(tmp_path)!r}))
        task.start({APP!r}, 1, lambda: {{"worker": ["n:1"]}})
        sys.stdin.read()
        """)
    command = f"trap 'echo saved > {tmp_path}/saved; exit' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    submit = subprocess.Popen(
        [sys.executable, "-c", program, command],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    pid = read_pid(tmp_path / "pid")
    submit.send_signal(signal.SIGKILL)
    submit.communicate()
    until(lambda: not lives(pid))
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_client_without_the_environment_says_so(begin, capsys):
    begin("true", environment="venv:///no/such")
    assert "the client's command runs without venv:///no/such, which this machine lacks" in capsys.readouterr().err

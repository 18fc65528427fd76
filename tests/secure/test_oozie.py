"""Oozie on the secured cluster: the container of its action has tokens and no ticket."""

import json
import signal
import subprocess
import sys

import javaproperties
import pytest
import yaml

from support.programs import ROOT, YTF
from support.secure import ask
from support.secure_oozie import SecureOozie, running_history_server
from support.tokens import credentials_file
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.security.delegation import obtain

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_the_action_trains_with_the_tokens_of_its_launcher(secure_cluster, as_alice, as_nobody, tmp_path, monkeypatch):
    monkeypatch.setenv("KRB5CCNAME", as_alice["KRB5CCNAME"])
    monkeypatch.setenv("KRB5_CONFIG", as_alice["KRB5_CONFIG"])
    cluster = discover(environ=as_alice, site=None)
    files, resourcemanager = cluster.open_filesystem(), cluster.resourcemanager()
    credentials = obtain(cluster, resourcemanager, files, [])
    tokens = list(credentials._tokens.values())
    (tmp_path / "container_tokens").write_bytes(credentials_file(tokens))
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "tokens",
                "command": "true",
                "environment": f"venv://{sys.prefix}",
                "tasks": {"worker": {"memory": 256}},
            }
        )
    )
    (tmp_path / "action.xml").write_text(
        "<configuration><property><name>oozie.job.id</name><value>0000001-W</value></property>"
        "<property><name>oozie.action.id</name><value>0000001-W@train</value></property></configuration>"
    )
    environ = {
        **as_nobody,
        "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens"),
        "YTF_OOZIE_user": "alice",
        "YTF_OOZIE_actionId": "0000001-C@1",
        "CONTAINER_ID": "container_1795370720127_0001_01_000001",
        "OOZIE_ACTION_CONF_XML": str(tmp_path / "action.xml"),
    }
    ran = run_action(environ, tmp_path)
    outputs = javaproperties.loads(ran.stdout)
    application = json.loads(
        ask(
            secure_cluster,
            as_alice,
            f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{outputs['application_id']}",
        )[1]
    )["app"]
    assert (application["user"], application["finalStatus"]) == ("alice", "SUCCEEDED")
    # The launcher goes on with the same tokens: the training's end has not cancelled them.
    again = run_action({**environ, "CONTAINER_ID": "container_1795370720127_0001_02_000001"}, tmp_path)
    assert javaproperties.loads(again.stdout)["application_id"] == outputs["application_id"], again.stderr
    shown = ran.stdout + ran.stderr + again.stderr
    assert not any(text in shown for text in credentials.texts().values())
    credentials.cancel()
    resourcemanager.close()


def test_workflow_of_an_oozie_with_kerberos_trains_as_its_user(secure_cluster, as_alice, tmp_path, monkeypatch):
    """Oozie asks MapReduce's JobHistoryServer for a token before each launcher."""
    monkeypatch.setenv("KRB5_CONFIG", as_alice["KRB5_CONFIG"])
    job = {"name": "secured", "environment": f"venv://{sys.prefix}", "tasks": {"worker": {"memory": 256}}}
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump({**job, "command": """echo it learns; echo '{"accuracy": 0.9}' > $YTF_METRICS_FILE"""})
    )
    with (
        running_history_server(secure_cluster, tmp_path / "history") as (history, process),
        SecureOozie(tmp_path / "oozie", secure_cluster, history) as server,
    ):
        environ = {**as_alice, "OOZIE_URL": server.url, "PYTHONPATH": str(ROOT)}

        def oozie(*words):
            done = subprocess.run(
                [*YTF, "oozie", *words], cwd=tmp_path, env=environ, timeout=300, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr + server.log()
            return done.stdout.strip()

        oozie("package", "job.yaml", "--python", sys.executable, "--out", "app")
        workflow = oozie("run", "app")

        def ended():
            status, text = ask(secure_cluster, as_alice, f"{server.url}/v2/job/{workflow}?show=info")
            assert status == 200, text
            return (info := json.loads(text))["status"] not in ("PREP", "RUNNING") and info

        info = until(ended, 240, 1, what=server.log)
        said = [(action["name"], action["status"], action["errorMessage"]) for action in info["actions"]]
        assert (info["status"], info["user"]) == ("SUCCEEDED", "alice"), said
        [action] = [action for action in info["actions"] if action["type"] == "shell"]
        outputs = javaproperties.loads(action["data"])
        # Logs are there, too, while the server that would show them hangs.
        process.send_signal(signal.SIGSTOP)
        server = {"log_server": f"http://{history['mapreduce.jobhistory.webapp.address']}/ws/v1/history"}
        known = yaml.safe_load(secure_cluster.settings.site_file.read_text())
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(known | server))
        logs = subprocess.run(
            [*YTF, "logs", outputs["application_id"]], env={**environ, "YTF_SITE": str(tmp_path / "site.yaml")},
            timeout=240, capture_output=True, text=True,
        )  # fmt: skip
        assert (logs.returncode, "it learns\n" in logs.stdout) == (0, True), logs.stderr
    assert outputs["metric.accuracy"] == "0.9"
    for application in (action["externalId"], outputs["application_id"]):
        url = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"
        found = json.loads(ask(secure_cluster, as_alice, url)[1])["app"]
        assert (found["user"], found["state"], found["finalStatus"]) == ("alice", "FINISHED", "SUCCEEDED")


def run_action(environ, folder):
    """Run the program of an action, which succeeds."""
    done = subprocess.run(
        [sys.executable, "-m", "tf_yarn_ops.oozie.action"],
        cwd=folder,
        env=environ,
        timeout=240,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done

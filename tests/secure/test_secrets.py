"""No token, key or cookie of a job stands where others can read it: logs, pages, the request that is printed, HDFS, Azkaban."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from support.azkaban_process import Job
from support.found_secrets import assert_no_secret, read_key, read_passwords, spell
from support.secure import ask, ask_all
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def list_readable_files(cluster, environ, scratch, folder=""):
    """Return the content of each file in HDFS that the owner of a ticket can read, by path."""
    web = f"{cluster.namenode_url}/webhdfs/v1"
    folders, files = [folder], []
    while folders:
        answers = ask_all(cluster, environ, [f"{web}{quote(path)}/?op=LISTSTATUS" for path in folders], scratch)
        within = [
            (f"{path}/{entry['pathSuffix']}", entry["type"])
            for path, (status, listed) in zip(folders, answers, strict=True)
            if status == 200
            for entry in json.loads(listed)["FileStatuses"]["FileStatus"]
        ]
        folders = [path for path, kind in within if kind == "DIRECTORY"]
        files += [path for path, kind in within if kind == "FILE"]
    answers = ask_all(cluster, environ, [f"{web}{quote(path)}?op=OPEN" for path in files], scratch)
    assert 401 not in {status for status, _ in answers}, "a file whose reader was not known is not unreadable"
    return {path: content for path, (status, content) in zip(files, answers, strict=True) if status == 200}


def start_by_azkaban(cluster, environ, folder, command):
    """Start a job of Azkaban's job type with a keytab."""
    (folder / "site.yaml").write_text(Path(environ["YTF_SITE"]).read_text() + f"keytab: {cluster.keytab('alice')}\n")
    job = Job(
        folder / "azkaban",
        cluster.resourcemanager_url,
        {"tf.command": command, "tf.task_memory": "256", "tf.environment": f"venv://{sys.prefix}"},
    )
    job.environ |= {"KRB5_CONFIG": environ["KRB5_CONFIG"], "YTF_SITE": str(folder / "site.yaml"), "PATH": "/nowhere"}
    return job.start()


def test_secrets_are_found_in_base64_too():
    for offset in range(3):
        text = base64.b64encode(b"x" * (offset + 30) + b"a secret of 20 bytes" + b"yy")
        assert any(way in text for way in spell(b"a secret of 20 bytes"))


def test_nothing_that_others_read_has_a_secret(secure_cluster, as_alice, as_bob, tmp_path):
    seen, copy, flag = tmp_path / "tokens.new", tmp_path / "tokens", tmp_path / "go on"
    command = (
        f'cp "$HADOOP_TOKEN_FILE_LOCATION" "{seen}" && mv "{seen}" "{copy}"; until [ -e "{flag}" ]; do sleep 0.1; done'
    )
    program = str(Path(sys.executable).with_name("ytf-submit"))
    words = [program, "--verbose", "--dry_run", "--environment", f"venv://{sys.prefix}", "-r", "worker:1", command]
    said = subprocess.run(words, env=as_alice, capture_output=True, text=True, timeout=180, check=True)
    job = start_by_azkaban(secure_cluster, as_alice, tmp_path, command)
    until(lambda: copy.exists() or job.process.poll() is not None, 90)
    application = next(line for line in job.lines if re.fullmatch(r"application_\d+_\d+", line))
    page = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"
    pages = {
        url: ask(secure_cluster, as_bob, url)[1].encode()
        for url in (
            page,
            f"{page}/appattempts",
            f"{secure_cluster.resourcemanager_url}/cluster/app/{application}",
            f"{secure_cluster.resourcemanager_url}/conf",
            f"{secure_cluster.namenode_url}/jmx",
        )
    }
    flag.touch()
    assert job.end() == 0, job.lines
    until(lambda: json.loads(ask(secure_cluster, as_alice, page)[1])["app"]["logAggregationStatus"] == "SUCCEEDED", 90)

    passwords = read_passwords(copy.read_bytes())
    assert set(passwords) == {"HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN", "kms-dt"}
    web_secret = secure_cluster.settings.realm.web_secret.read_bytes()
    keytab = read_key(secure_cluster.keytab("alice"))
    secrets = {**passwords, "the secret of cookies": web_secret, "the key of alice": keytab}
    texts = {program: (said.stdout + said.stderr).encode(), "Azkaban's log": "\n".join(job.lines).encode()}
    texts |= {str(file): file.read_bytes() for file in job.folder.rglob("*") if file.is_file()}
    texts |= pages | list_readable_files(secure_cluster, as_bob, tmp_path)
    # Bob may list HDFS, and files that may be read are found.
    assert ask(secure_cluster, as_bob, f"{secure_cluster.namenode_url}/webhdfs/v1/?op=LISTSTATUS")[0] == 200
    assert any(
        application in path for path in list_readable_files(secure_cluster, as_alice, tmp_path, "/tmp/logs/alice")
    )
    logs = [*secure_cluster.settings.logs.iterdir(), *(secure_cluster.directory / "nm" / "logs").rglob("*")]
    # The KMS writes the addresses of all requests into its log, and of a token that is renewed or cancelled, the token.
    texts |= {str(file): file.read_bytes() for file in logs if file.is_file() and file.name != "kms.log"}
    assert f"{secure_cluster.settings.logs}/hdfs-audit.log" in texts
    assert_no_secret(texts, secrets)

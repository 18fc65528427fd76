"""No token, key or cookie of a job stands where others can read it: logs, pages, the request that is printed, HDFS, Azkaban."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from support.access import by_keytab
from support.azkaban_process import Job
from support.cluster_jobs import until_its_log_is_stored
from support.found_secrets import assert_no_secret, read_key, read_passwords, spell
from support.secure import ask, ask_all
from support.two_nodes import launcher_by
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


@pytest.fixture(scope="module")
def access(secure_cluster, tmp_path_factory):
    """The home directory of gateway is an encryption zone of a KMS, and so are all files that his jobs stage."""
    with by_keytab(secure_cluster, tmp_path_factory.mktemp("gateway"), "gateway") as made:
        yield made


@pytest.fixture(scope="module")
def job(secure_cluster, access, tmp_path_factory):
    """Return a job of Azkaban's job type with a keytab: started, and with a copy of its tokens in the file ``copy``."""
    folder = tmp_path_factory.mktemp("azkaban")
    (folder / "data").write_text("from the zone")
    seen, copy, flag = folder / "tokens.new", folder / "tokens", folder / "go on"
    access.discover().open_filesystem().create("/user/gateway/input/rows", b", rows too", 0o644)
    made = Job(
        folder / "azkaban",
        secure_cluster.resourcemanager_url,
        {
            "tf.command": 'cat data "$DTF_INPUT_PATH/rows"; echo written > "$DTF_OUTPUT_PATH/result"; '
            f'cp "$HADOOP_TOKEN_FILE_LOCATION" "{seen}" && mv "{seen}" "{copy}"; '
            f'until [ -e "{flag}" ]; do sleep 0.1; done',
            "tf.task_memory": "256",
            "tf.environment": f"venv://{sys.prefix}",
            "tf.files.1": f"data={folder / 'data'}",
            "tf.input": "hdfs:///user/gateway/input",
            "tf.mirror_input": "1 MiB",
            "tf.output": "hdfs:///user/gateway/output",
            "tf.mirror": "all",
        },
    )
    made.environ |= {name: access.environ[name] for name in ("KRB5_CONFIG", "YTF_SITE", "PATH")}
    made.start()
    made.copy, made.flag = copy, flag
    until(lambda: copy.exists() or made.process.poll() is not None, 90)
    made.application = next(line for line in made.lines if re.fullmatch(r"application_\d+_\d+", line))
    yield made
    made.process.terminate()
    made.process.wait(60)


def test_secrets_are_found_in_base64_too():
    for offset in range(3):
        text = base64.b64encode(b"x" * (offset + 30) + b"a secret of 20 bytes" + b"yy")
        assert any(way in text for way in spell(b"a secret of 20 bytes"))


def test_nothing_that_others_read_has_a_secret(secure_cluster, as_gateway, as_bob, job, tmp_path):
    """The job reads and writes its files in the zone, too."""
    program = str(Path(sys.executable).with_name("ytf-submit"))
    words = [program, "--verbose", "--dry_run", "--environment", f"venv://{sys.prefix}", "-r", "worker:1", "true"]
    said = subprocess.run(words, env=as_gateway, capture_output=True, text=True, timeout=180, check=True)
    page = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{job.application}"
    pages = {
        url: ask(secure_cluster, as_bob, url)[1].encode()
        for url in (
            page,
            f"{page}/appattempts",
            f"{secure_cluster.resourcemanager_url}/cluster/app/{job.application}",
            f"{secure_cluster.resourcemanager_url}/conf",
            f"{secure_cluster.namenode_url}/jmx",
        )
    }
    job.flag.touch()
    assert job.end() == 0, job.lines
    until(
        lambda: json.loads(ask(secure_cluster, as_gateway, page)[1])["app"]["logAggregationStatus"] == "SUCCEEDED", 90
    )

    passwords = read_passwords(job.copy.read_bytes())
    assert set(passwords) == {"HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN", "kms-dt"}
    web_secret = secure_cluster.settings.realm.web_secret.read_bytes()
    keytab = read_key(secure_cluster.keytab("gateway"))
    secrets = {**passwords, "the secret of cookies": web_secret, "the key of gateway": keytab}
    texts = {program: (said.stdout + said.stderr).encode(), "Azkaban's log": "\n".join(job.lines).encode()}
    texts |= {str(file): file.read_bytes() for file in job.folder.rglob("*") if file.is_file()}
    texts |= pages | list_readable_files(secure_cluster, as_bob, tmp_path)
    # Bob may list HDFS, and files that may be read are found.
    assert ask(secure_cluster, as_bob, f"{secure_cluster.namenode_url}/webhdfs/v1/?op=LISTSTATUS")[0] == 200
    assert any(
        job.application in path
        for path in list_readable_files(secure_cluster, as_gateway, tmp_path, "/tmp/logs/gateway")
    )
    logs = [*secure_cluster.settings.logs.iterdir(), *(secure_cluster.directory / "nm" / "logs").rglob("*")]
    # The KMS writes the addresses of all requests into its log, and of a token that is renewed or cancelled, the token.
    texts |= {str(file): file.read_bytes() for file in logs if file.is_file() and file.name != "kms.log"}
    assert f"{secure_cluster.settings.logs}/hdfs-audit.log" in texts
    assert_no_secret(texts, secrets)


def test_job_in_a_zone_reads_its_files_by_a_token_of_the_kms(secure_cluster, access, job):
    job.flag.touch()
    assert job.end() == 0, job.lines
    with launcher_by(access) as launcher:
        until_its_log_is_stored(launcher, job.application)
        assert "from the zone, rows too" in "".join(launcher.log(job.application, "worker:0"))
        # Without --commit the program's files lie where it writes them, encrypted too.
        assert launcher.cluster.open_filesystem().read("/user/gateway/output/result") == b"written\n"
    audit = (secure_cluster.settings.logs / "kms.log").read_text()
    users = {
        (operation, user.split("/")[0].split("@")[0])
        for operation, user in re.findall(r"OK\[op=(\w+), (?:key=zone, )?user=([^],]+)", audit)
    }
    # Without the job's token a NodeManager reads the files as yarn.
    assert ("DECRYPT_EEK", "gateway") in users and "yarn" not in {user for _, user in users}, users

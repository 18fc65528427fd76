"""Who submits on a secured cluster, by HTTP and by Skein's Java client; and what an interrupted upload leaves there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.client_rows import FULL_DISK, NO_PROXIES
from support.secure import ask, get_environment, kinit
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

OWN_PYTHON = f"venv://{sys.prefix}"
SUBMIT = str(Path(sys.executable).with_name("ytf-submit"))
JOB = ("--environment", OWN_PYTHON, "-m", "256", "-r", "worker:1")
#: Names without which no Java client and no Hadoop configuration is found.
HADOOPS = ("JAVA_HOME", "HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_YARN_HOME",
           "JDK_JAVA_OPTIONS")  # fmt: skip


@pytest.fixture
def with_keytab(secure_cluster, tmp_path):
    """Return the variables of a client that has nothing but the address and a keytab of alice."""
    environ = get_environment(secure_cluster, tmp_path)
    site = tmp_path / "site.yaml"
    site.write_text(Path(environ["YTF_SITE"]).read_text() + f"keytab: {secure_cluster.keytab('alice')}\n")
    bare = {name: value for name, value in environ.items() if name not in HADOOPS}
    return bare | {"YTF_SITE": str(site), "PATH": "/usr/bin:/bin", "HADOOP_USER_NAME": "bob"}


def run(environ, *words):
    return subprocess.run([SUBMIT, *JOB, *words], env=environ, capture_output=True, text=True, timeout=180)


def test_a_keytab_alone_submits_and_follows_without_java(with_keytab, tmp_path):
    """Even where no file may grow, and where the variables of proxies lead to nowhere."""
    words = [*FULL_DISK, SUBMIT, *JOB, "-v", "--wait", 'echo "$USER"']
    done = subprocess.run(
        words, env=with_keytab | NO_PROXIES, cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert "  user          alice\n" in done.stderr
    assert "submitting with Skein" not in done.stderr and not (tmp_path / "ticket-None").exists()


def test_skeins_client_submits_as_the_principal_of_the_other_requests(secure_cluster, as_alice, tmp_path):
    """Java reads no cache of the type DIR, and finds alice's ticket where the variable does not lead any more."""
    (tmp_path / "tickets").mkdir(mode=0o700)
    (tmp_path / "tmp").mkdir()
    environ = as_alice | {"KRB5CCNAME": f"DIR:{tmp_path}/tickets", "TMPDIR": str(tmp_path / "tmp")}
    kinit(secure_cluster, environ, "bob")
    done = run(environ, "--submit_with", "skein", "--wait", "true")
    assert done.returncode == 0, done.stderr
    assert "  user          bob\n" in done.stderr
    assert not list((tmp_path / "tmp").iterdir())


def test_an_interrupted_upload_of_skeins_client_leaves_no_key(secure_cluster, as_bob, tmp_path):
    large, folder = tmp_path / "large", tmp_path / "tmp"
    folder.mkdir()
    with large.open("wb") as file:
        file.truncate(300 * 1024 * 1024)

    def directories():
        url = f"{secure_cluster.namenode_url}/webhdfs/v1/user/bob/.skein?op=LISTSTATUS"
        status, text = ask(secure_cluster, as_bob, url)
        found = json.loads(text)["FileStatuses"]["FileStatus"] if status == 200 else []
        return {item["pathSuffix"] for item in found if item["pathSuffix"].startswith("application_")}

    before = directories()
    client = subprocess.Popen(
        [SUBMIT, *JOB, "--file", str(large), "--submit_with", "skein", "true"],
        start_new_session=True,
        env=as_bob | {"TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: directories() - before, 90)
    finally:
        client.kill()
        client.wait()
    until(lambda: not directories() - before, 60)
    until(lambda: not list(folder.iterdir()), 60)

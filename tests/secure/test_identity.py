"""Who submits on a secured cluster by Skein's Java client, and what an interrupted upload leaves there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.secure import ask, get_environment, kinit
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

OWN_PYTHON = f"venv://{sys.prefix}"
SUBMIT = str(Path(sys.executable).with_name("ytf-submit"))
JOB = ("--environment", OWN_PYTHON, "-m", "256", "-r", "worker:1")


def test_skeins_client_submits_as_the_principal_of_the_other_requests(secure_cluster, as_alice, as_bob, tmp_path):
    """Java reads no cache of the type DIR, and finds alice's ticket where the variable does not lead any more.

    Skein's driver does not put our pages before Skein's own, which know no groups, and admit named users.
    """
    (tmp_path / "tickets").mkdir(mode=0o700)
    (tmp_path / "tmp").mkdir()
    flag, errors = tmp_path / "go on", tmp_path / "errors"
    environ = as_alice | {"KRB5CCNAME": f"DIR:{tmp_path}/tickets", "TMPDIR": str(tmp_path / "tmp")}
    kinit(secure_cluster, environ, "bob")
    words = [SUBMIT, *JOB, "--submit_with", "skein", "-v", "--wait", f'until [ -e "{flag}" ]; do sleep 0.1; done']
    with errors.open("w") as err:
        client = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        found = until(lambda: re.search(r"submitted (application_\d+_\d+)", errors.read_text()), 90)[1]
        pages = f"{secure_cluster.resourcemanager_url}/proxy/{found}"
        status = f"{pages}/pages/ytf/status.json"
        until(lambda: ask(secure_cluster, as_bob, status)[1].startswith("{"), 120)
        as_yarn = get_environment(secure_cluster, tmp_path, "yarn")
        for user, code in ((as_bob, 200), (as_yarn, 200), (as_alice, 403)):
            for page in (f"{pages}/overview", f"{pages}/kv", status):
                assert ask(secure_cluster, user, page)[0] == code, (user["KRB5CCNAME"], page)
        flag.touch()
        assert client.wait(180) == 0, errors.read_text()
    finally:
        client.terminate()
        client.wait(60)
    assert "  user          bob\n" in errors.read_text()
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

"""The secured cluster itself: it knows its users, refuses all others, and its jobs read and write HDFS."""

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from support.hdfs_programs import FSSPEC, FSSPEC_RESULT
from support.httpfs import running_httpfs
from support.programs import ROOT
from support.secure import ask, get_environment
from support.secure_clients import call_as
from tf_yarn_ops.cli import main

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

OWN_PYTHON = f"venv://{sys.prefix}"


def list_pages(cluster):
    rm, nn = cluster.resourcemanager_url, cluster.namenode_url
    others = {"dn": "jmx", "nm": "ws/v1/node/info"}
    return {
        f"{rm}/ws/v1/cluster/info", f"{rm}/conf", f"{rm}/cluster", f"{nn}/jmx", f"{nn}/webhdfs/v1/?op=LISTSTATUS",
        *(f"{cluster.settings.web_address(name)}/{path}" for name, path in others.items()),
    }  # fmt: skip


def open_anonymously(url, context):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    return opener.open(url, timeout=30)


def test_every_page_demands_a_ticket_and_knows_alice(secure_cluster, as_alice):
    trusting = ssl.create_default_context(cafile=secure_cluster.ca_file)
    for page in list_pages(secure_cluster):
        for url in (page, f"{page}{'&' if '?' in page else '?'}user.name=alice"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                open_anonymously(url, trusting)
            assert (refused.value.code, refused.value.headers["WWW-Authenticate"]) == (401, "Negotiate"), url
        assert ask(secure_cluster, as_alice, page)[0] == 200, page
    told = json.loads(ask(secure_cluster, as_alice, f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/userinfo")[1])
    assert told == {"rmLoginUser": "yarn", "requestedUser": "alice"}


def test_pages_are_there_by_https_of_the_private_authority_only(secure_cluster):
    for url in list_pages(secure_cluster):
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            open_anonymously(url, ssl.create_default_context())
        with pytest.raises((OSError, http.client.HTTPException)) as refused:
            open_anonymously(url.replace("https:", "http:"), None).close()
        assert not isinstance(refused.value, urllib.error.HTTPError), url


def test_gateway_acts_for_its_users_and_alice_for_nobody(secure_cluster, as_gateway, as_alice):
    rm, nn = secure_cluster.resourcemanager_url, secure_cluster.namenode_url
    told = json.loads(ask(secure_cluster, as_gateway, f"{rm}/ws/v1/cluster/userinfo?doas=bob")[1])
    assert told["requestedUser"] == "bob"
    status, home = ask(secure_cluster, as_gateway, f"{nn}/webhdfs/v1/?op=GETHOMEDIRECTORY&doas=bob")
    assert (status, json.loads(home)) == (200, {"Path": "/user/bob"})
    for environ, target in ((as_gateway, "hdfs"), (as_alice, "bob")):
        status, said = ask(secure_cluster, environ, f"{nn}/webhdfs/v1/?op=GETHOMEDIRECTORY&doas={target}")
        assert status in (401, 403), target
        assert "is not allowed to impersonate" in said, target


def test_homes_belong_to_their_users(secure_cluster, as_alice, as_bob):
    url = f"{secure_cluster.namenode_url}/webhdfs/v1/user"
    listed = json.loads(ask(secure_cluster, as_alice, f"{url}?op=LISTSTATUS")[1])["FileStatuses"]["FileStatus"]
    homes = {entry["pathSuffix"]: (entry["owner"], entry["permission"]) for entry in listed}
    assert homes == {user: (user, "700") for user in ("alice", "bob", "gateway")}
    assert ask(secure_cluster, as_alice, f"{url}/alice?op=LISTSTATUS")[0] == 200
    assert ask(secure_cluster, as_bob, f"{url}/alice?op=LISTSTATUS")[0] == 403


def run(environ, *command):
    """Run a program of this environment; give what it printed."""
    program = str(Path(sys.executable).with_name(command[0])) if command[0].startswith("ytf") else command[0]
    ran = subprocess.run([program, *command[1:]], env=environ, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def by_httpfs(secure_cluster, as_alice, tmp_path):
    """Return the variables of a client of alice that reaches HDFS through an HttpFS only; the nodes read it directly."""
    site = yaml.safe_load(secure_cluster.settings.site_file.read_text())
    with running_httpfs(secure_cluster, tmp_path / "httpfs") as url:
        (tmp_path / "site.yaml").write_text(yaml.safe_dump({**site, "webhdfs": url, "request_timeout": 60}))
        yield {**as_alice, "YTF_SITE": str(tmp_path / "site.yaml")}


def test_outputs_reach_hdfs_with_the_jobs_tokens(secure_cluster, as_alice, by_httpfs, tmp_path):
    """The first run fails, the second goes on from its files: what is in HDFS, over https and on two NameNodes.

    The client checks the output, and the nodes commit it, with an HttpFS whose tokens the NameNodes do not know: the
    configuration names these. The second run opens HDFS by itself, too; a name of the pair is no host.
    """
    output, script = "/user/alice/mirrored", tmp_path / "program.py"
    script.write_text(FSSPEC)
    command = 'cd "$DTF_OUTPUT_PATH"; echo $DTF_TASK_INDEX >> runs; echo x >> logs.tfevents.1; [ $(wc -l < runs) = 2 ]'
    opened = "DTF_OUTPUT_PATH=hdfs:///user/alice/opened python $DTF_TASK_SCRIPT"
    words = (
        *("ytf-submit", "--environment", OWN_PYTHON, "-m", "512", "--mirror", "chief", "-o", f"hdfs://{output}"),
        *("--commit", "new", "--restart", "task", "-s", str(script), "-r", "worker:1", "--wait", "--json"),
    )
    report = json.loads(run(by_httpfs, *words, f"({command}) && {opened}"))
    metrics = report["metrics"]
    # HDFS with permissions says so of a path below a file.
    faults = [name.replace("PermissionError", "NotADirectoryError") for name in metrics["faults"]]
    assert {**metrics, "faults": faults} == FSSPEC_RESULT
    read = f"{secure_cluster.namenode_url}/webhdfs/v1{output}"
    assert ask(secure_cluster, as_alice, f"{read}/runs?op=OPEN") == (200, "0\n0\n")
    assert ask(secure_cluster, as_alice, f"{read}/logs.tfevents.1?op=OPEN") == (200, "x\nx\n")
    listed = json.loads(ask(secure_cluster, as_alice, f"{read}?op=LISTSTATUS")[1])["FileStatuses"]["FileStatus"]
    assert {entry["pathSuffix"] for entry in listed} == {"_SUCCESS", "runs", "logs.tfevents.1"}
    success = json.loads(ask(secure_cluster, as_alice, f"{read}/_SUCCESS?op=OPEN")[1])
    assert success["files"] == [{"name": "logs.tfevents.1", "bytes": 4}, {"name": "runs", "bytes": 4}]
    home = ask(secure_cluster, as_alice, f"{read.removesuffix('/mirrored')}?op=LISTSTATUS")[1]
    assert "_mirrored." not in home


def test_env_prints_all_that_a_shell_needs(secure_cluster, tmp_path):
    own = Path(sys.executable).with_name("ytf")
    directory, cache = secure_cluster.directory, f"FILE:{tmp_path}/ticket"
    env = [sys.executable, "-m", "support.hadoop", "env", "--dir", directory]
    tests = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    told = subprocess.run(env, capture_output=True, text=True, check=True, env=tests).stdout
    kinit = re.search(r"^# (kinit .* bob)$", told, re.M)[1]
    script = f'eval "$TOLD"; export KRB5CCNAME="{cache}"; {kinit}; "{own}" list'
    ran = subprocess.run(
        ["bash", "-ec", script], env={**os.environ, "TOLD": told}, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


def test_a_client_without_a_ticket_lists_nothing(secure_cluster, tmp_path):
    ran = call_as(get_environment(secure_cluster, tmp_path), main, "list")
    assert ran.returncode != 0
    assert "ticket" in ran.stderr

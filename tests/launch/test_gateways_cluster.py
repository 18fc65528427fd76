"""Real daemons behind an HttpFS and behind a gateway that rewrites as Apache Knox does."""

import os
import re
import subprocess
import sys
from contextlib import closing

import pytest

from support.commit_rows import commits_whole_and_once, moves_into_nothing
from support.forged import check_verdict
from support.httpfs import running_httpfs
from support.knox import Knox, serving_knox
from support.tls import Authority
from tf_yarn_ops.errors import ClusterUnreachable, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.hdfs import Hdfs

pytestmark = pytest.mark.cluster

#: A machine without a Hadoop client: no program and no variable leads past the gateway.
ENVIRON = {"HOME": "/nowhere", "PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def httpfs(minicluster, tmp_path_factory):
    with running_httpfs(minicluster, tmp_path_factory.mktemp("httpfs")) as url:
        yield url


@pytest.fixture(params=["namenode", "httpfs"])
def hdfs_of_containers(request, minicluster):
    url = minicluster.namenode_url if request.param == "namenode" else request.getfixturevalue("httpfs")
    return Hdfs(
        (url,), minicluster.settings.user, {}
    ), f"/tmp/{request.node.originalname}-{request.param}-{os.getpid()}"


def test_commit_is_whole_and_once(hdfs_of_containers):
    commits_whole_and_once(*hdfs_of_containers)


def test_rename_moves_into_nothing(hdfs_of_containers):
    moves_into_nothing(*hdfs_of_containers)


@pytest.fixture(scope="module")
def knox(minicluster, tmp_path_factory):
    """Return a gateway in front of the cluster, with its site's settings."""
    folder = tmp_path_factory.mktemp("knox")
    authority = Authority(folder)
    for name, text in (("token", "a.b.c"), ("password", "guest:guest-password")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    made = Knox(minicluster.resourcemanager_url, minicluster.namenode_url, minicluster.settings.user)
    with serving_knox(made, authority.server("127.0.0.1")) as topology:
        made.topology = topology
        made.site = {"ca_file": str(authority.file)}
        made.folder = folder
        yield made


def test_httpfs_keeps_the_promises_of_the_file_system(httpfs, minicluster):
    """Its exceptions, content types, redirect and permissions differ from a NameNode's in small things.

    Jobs through it: test_failover_cluster.py, test_hosts.py.
    """
    user = minicluster.settings.user
    files, ann = (WebHdfs((httpfs,), SimpleAuthentication(name), 10.0) for name in (user, "ann"))
    top = f"/user/{user}/httpfs"
    files.makedirs(f"{top}/a b=ü", 0o711)
    assert (files.status(f"{top}/a b=ü").permission, files.status(f"{top}/a b=ü").is_directory) == (0o711, True)
    assert (files.status(f"{top}/no"), files.list(f"{top}/no"), files.read(f"{top}/no")) == (None, [], None)
    assert [files.create(f"{top}/f", text, 0o600) for text in (b'{"a": 1}', b"other")] == [True, False]
    assert (files.read(f"{top}/f"), files.status(f"{top}/f").permission) == (b'{"a": 1}', 0o600)
    files.set_modified(f"{top}/f", 1600000000123)
    assert files.status(f"{top}/f").modified == 1600000000123
    assert files.create(f"{top}/empty", b"", 0o644) and files.read(f"{top}/empty") == b""
    content = os.urandom(5_000_000)
    assert files.create(f"{top}/large", content, 0o600) and files.read(f"{top}/large") == content
    assert [files.rename(f"{top}/f", f"{top}/{name}") for name in ("empty", "g")] == [False, True]
    assert {status.name for status in files.list(top)} == {"a b=ü", "empty", "g", "large"}
    with pytest.raises(SubmissionRejected, match="it is a file, not a directory"):
        files.list(f"{top}/g")
    with pytest.raises(SubmissionRejected, match=r"reading .* the file system refused: Permission denied: user=ann"):
        ann.read(f"{top}/g")
    assert [files.delete(top), files.delete(top)] == [True, False]
    with pytest.raises(SubmissionRejected, match="User: ann is not allowed to impersonate"):
        WebHdfs((httpfs,), SimpleAuthentication("ann", "eve"), 10.0).status("/")
    assert WebHdfs((httpfs,), SimpleAuthentication("bob", user), 10.0).create("/tmp/by_bob", b"", 0o600)
    assert files.status("/tmp/by_bob").owner == user


def test_command_line_needs_only_the_site_file(knox, minicluster, tmp_path):
    """By its services WEBHDFS and RESOURCEMANAGER, which empties addresses, with a password."""
    settings = {
        **knox.site,
        "resourcemanager": f"{knox.topology}/resourcemanager",
        "staging": "'/user/{user}/by-knox-rest'",
        "gateway_password_file": knox.folder / "password",
    }
    (tmp_path / "site.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    done = subprocess.run(
        [
            f"{sys.prefix}/bin/ytf-submit",
            "--wait",
            "--environment",
            f"venv://{sys.prefix}",
            "-m",
            "256",
            "-r",
            "worker:1",
            "echo I am $DTF_TASK_INDEX",
        ],
        env={**ENVIRON, "YTF_SITE": str(tmp_path / "site.yaml")},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "guest-password" not in done.stdout + done.stderr
    application_id = re.search(r"application_\d+_\d+", done.stdout)[0]
    logs = subprocess.run(
        [f"{sys.prefix}/bin/ytf", "logs", application_id, "--task", "master"],
        env={**ENVIRON, "YTF_SITE": str(tmp_path / "site.yaml")},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (logs.returncode, "ApplicationMaster" in logs.stdout) == (0, True), logs.stderr
    cluster = discover(
        f"{knox.topology}/resourcemanager",
        ENVIRON,
        site=Site(**knox.site, gateway_password_file=str(knox.folder / "password")),
    )
    with closing(Launcher(cluster, environ=ENVIRON)) as launcher:
        check_verdict(launcher.session.resourcemanager.get(application_id), "mallory")


def test_gateway_without_a_login_is_reported(knox):
    def said(**settings):
        with pytest.raises((ClusterUnreachable, SubmissionRejected)) as raised:
            discover(f"{knox.topology}/yarn", ENVIRON, site=Site(**knox.site, **settings))
        return str(raised.value)

    assert "for a gateway such as Knox set gateway_password_file or gateway_token_file in site.yaml" in said()
    knox.login_page = "/gateway/knoxsso/api/v1/websso"
    try:
        assert "leads to 127.0.0.1" in said() and "perhaps a login; set gateway_password_file" in said()
    finally:
        knox.login_page = ""
    (knox.folder / "old").write_text("x.y.z")
    (knox.folder / "old").chmod(0o600)
    assert "it does not accept the token; write a new one" in said(gateway_token_file=str(knox.folder / "old"))

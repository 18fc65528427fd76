"""The clients of the secured cluster, and jobs that its test files share."""

import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.programs import ROOT
from support.secure import get_environment
from support.secure_clients import clients_of
from support.shared import share

#: A program that lists the user's home directory in HDFS with the token that its container has, and prints the
#: services of all tokens of HDFS.
LIST_HOME = """
import json, os, ssl, sys, urllib.request
from tf_yarn_ops.runtime.common.tokens import HDFS_KIND, encode_token, read_credentials
with open(os.environ["HADOOP_TOKEN_FILE_LOCATION"], "rb") as file:
    tokens = [token for token in read_credentials(file.read()) if token.kind == HDFS_KIND]
url = f"{sys.argv[1]}/webhdfs/v1/user/alice?op=LISTSTATUS&delegation={encode_token(tokens[0])}"
handlers = [urllib.request.ProxyHandler({})]
if sys.argv[2:]:
    handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sys.argv[2])))
found = json.load(urllib.request.build_opener(*handlers).open(url))["FileStatuses"]["FileStatus"]
print("tokens for", sorted(token.service for token in tokens), "home has", [item["pathSuffix"] for item in found], flush=True)
"""


@pytest.fixture
def as_alice(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of alice."""
    return get_environment(secure_cluster, tmp_path, "alice")


@pytest.fixture
def as_bob(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of bob."""
    return get_environment(secure_cluster, tmp_path, "bob")


@pytest.fixture
def as_gateway(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of gateway, which may act for alice and bob."""
    return get_environment(secure_cluster, tmp_path, "gateway")


@pytest.fixture
def as_nobody(secure_cluster, tmp_path):
    """Return the variables of a client without a ticket."""
    return get_environment(secure_cluster, tmp_path)


def is_here(path):
    return Path(path).parent == Path(__file__).parent


@pytest.fixture(scope="module")
def clients(request, secure_cluster, tmp_path_factory):
    """Return clients of users, one for each job; the files of this folder share them."""
    return share(request.config, is_here, lambda: all_started(secure_cluster, tmp_path_factory.mktemp("clients")))


@contextmanager
def all_started(secure_cluster, folder):
    """Start a client for each job; end what still runs."""
    with clients_of(secure_cluster, folder, ("alice", "bob", "gateway")) as made:
        start_all(secure_cluster, made)
        yield made
        made.flag.touch()


def start_all(secure_cluster, made):
    folder = made.folder
    (folder / "list_home.py").write_text(LIST_HOME)
    made.flag, namenode = folder / "go on", secure_cluster.namenode_url
    listing = [sys.executable, str(folder / "list_home.py"), namenode, *filter(None, [made.ca_file])]
    made.listed = folder / "listed"
    command = f'PYTHONPATH={ROOT} {shlex.join(listing)}; touch "{made.listed}"; until [ -e "{made.flag}" ]; do sleep 0.2; done'
    # The active NameNode by its own address, which is another file system than the pair.
    other = f"hdfs://localhost:{secure_cluster.settings.ports[secure_cluster.active('nn')]}"
    # Its client has a keytab, and tickets of some seconds.
    short = folder / "krb5.conf"
    short.write_text(
        secure_cluster.krb5_conf.read_text().replace("[libdefaults]", "[libdefaults]\n  ticket_lifetime = 20s")
    )
    site = made.site(folder / "two.yaml", namenodes={other: namenode}, keytab=str(secure_cluster.keytab("alice")))
    made.submit(
        "long", "alice", command, "--wait", "--lease", "120", "--file_system", other, site=site, KRB5_CONFIG=str(short)
    )
    made.submitted("long")  # the others find its files in the cache
    made.submit("failed", "alice", "echo it fails; exit 3", "--wait", "--report_log_tail", "1000")
    bare = folder / "bare"
    bare.mkdir()
    (bare / "python").symlink_to(os.path.realpath(sys.executable))
    for_bob = ["--user", "bob", "--environment", f"python://{bare}/python", "--run_id", "race"]
    for number in range(2):
        made.submit(f"racer {number}", "gateway", "sleep 1", "--wait", *for_bob)
    made.submit(
        "wrong service",
        "alice",
        "true",
        "--wait",
        site=made.site(folder / "service.yaml", resourcemanager_service="nowhere.example:8032"),
    )
    made.submit(
        "wrong renewer", "alice", "true", "--wait", site=made.site(folder / "wrong.yaml", token_renewer="alice")
    )
    made.submit("no python", "alice", "true", "--wait", "--environment", f"python://{bare}/nothing")

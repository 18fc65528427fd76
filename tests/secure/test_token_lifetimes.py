"""The end of the jobs of test_submission.py: one has outlived its tokens, and none has left a secret.

The files between play while the job goes on.
"""

import json
import os
from pathlib import Path
from unittest import mock

import pytest

from support.found_secrets import SECRETS
from support.secure import ask
from support.waiting import until
from tf_yarn_ops.errors import SubmissionRejected
from tf_yarn_ops.hadoop.cluster import discover

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def read_all(files, path="/"):
    """Return all files of HDFS that the user of a client may read, by their paths."""
    found = {}
    try:
        for item in files.list(path):
            if item.is_directory:
                found |= read_all(files, f"{path}{item.name}/")
            elif item.length < 2_000_000:
                found[f"{path}{item.name}"] = (files.read(f"{path}{item.name}") or b"").decode("latin-1")
    except SubmissionRejected:
        pass
    return found


def test_a_job_outlives_its_tokens_and_its_client_its_tickets(clients, secure_cluster):
    """The tokens were renewed, and then ended for good; the client's tickets and cookies ended several times.

    The client has moved its lease all the time.
    """
    application = clients.submitted("long")
    page = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"

    def age():
        return json.loads(ask(secure_cluster, clients.tickets["alice"], page)[1])["app"]["elapsedTime"]

    def lease_ends():
        [limit] = json.loads(ask(secure_cluster, clients.tickets["alice"], page)[1])["app"]["timeouts"]["timeout"]
        return limit["expiryTime"]

    # YARN says UNLIMITED until its scheduler has the application: a text greater than any time.
    first = until(lambda: (end := lease_ends()) != "UNLIMITED" and end, 60)
    most = int(secure_cluster.settings.properties["yarn.resourcemanager.delegation.token.max-lifetime"])
    until(lambda: age() > 1.1 * most, 180, 3.0)
    until(lambda: lease_ends() > first, 120, 3.0)
    clients.flag.touch()
    code, report = clients.report("long")
    assert (code, report["reason"]) == (0, "SUCCEEDED"), report
    assert clients.is_deleted("alice", application)
    assert "ticket" not in clients.end("long")[2]  # no word about those that have ended


def test_no_secret_is_where_others_may_read(clients, secure_cluster):
    """Poll for tokens, private keys and cookies in what clients, containers and daemons have written."""
    clients.flag.touch()  # run alone, this test is the first one that waits for "long"
    for name in list(clients.running):
        clients.end(name)
    with mock.patch.dict(os.environ, clients.environ("bob"), clear=True):
        texts = read_all(discover().open_filesystem())
    assert any(path.startswith("/user/bob/.skein/cache") for path in texts)
    texts |= clients.texts()
    logs = [path for path in Path(secure_cluster.directory, "logs").rglob("*") if path.is_file()]
    assert len(logs) > 5
    texts |= {str(path): path.read_text(errors="replace") for path in logs}
    assert not {name: match[0] for name, text in texts.items() if (match := SECRETS.search(text))}
    _, answer = ask(
        secure_cluster,
        clients.tickets["alice"],
        f"{secure_cluster.namenode_url}/webhdfs/v1/?op=GETDELEGATIONTOKEN&renewer=alice",
    )
    assert SECRETS.search(answer), ("a token is found where there is one", answer)

"""Clients of the secured cluster: tickets, and requests that are made with them."""

import fcntl
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

#: Milliseconds after which tokens end unless YARN renews them, which it does at nine tenths, and after which they end
#: for good.
TOKENS = {"renew-interval": 60_000, "max-lifetime": 100_000}
#: A cookie is good for some seconds, so that clients need tickets again and again.
EXPIRY = {"hadoop.http.authentication.token.validity": "15"} | {
    f"{daemon}.delegation.token.{key}": str(value)
    for daemon in ("dfs.namenode", "yarn.resourcemanager")
    for key, value in TOKENS.items()
}


@contextmanager
def shared_cluster(shared):
    """Give the running secured `HadoopCluster` with pairs whose folder lies in ``shared``; the last worker that used it ends it."""
    from support.hadoop import HadoopCluster

    cluster = HadoopCluster(shared / "secure-cluster", kerberos=True, https=True, ha=True, properties=EXPIRY)
    with (shared / "secure-cluster.users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            cluster.up()
            yield cluster
        finally:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # another worker goes on
            else:
                cluster.down()


def get_environment(cluster, folder: Path, user: str | None = None):
    """Return the variables of a client of the cluster whose ticket cache is a file of its own; ``None`` has no ticket."""
    environ = {**os.environ, **cluster.environ, "KRB5CCNAME": f"FILE:{folder}/ticket-{user}"}
    if user is not None:
        kinit(cluster, environ, user)
    return environ


def kinit(cluster, environ, user, *options):
    """Put a new ticket of a user, such as alice, into the cache of an environment."""
    command = ["kinit", "-k", "-t", str(cluster.keytab(user)), *options, cluster.principal(user)]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def ask(cluster, environ, url, *options):
    """Send a request by curl, which makes SPNEGO by itself; return the HTTP status and the text of the answer."""
    ca = ["--cacert", str(cluster.ca_file)] if cluster.ca_file else []
    command = [
        "curl",
        "--silent",
        "--show-error",
        "--max-time",
        "30",
        "--negotiate",
        "--user",
        ":",
        *ca,
        "--location-trusted",  # from the standby to the active one
        "--write-out",
        "\n%{http_code}",
        *options,
        url,
    ]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    text, _, status = ran.stdout.rpartition("\n")
    return int(status), text

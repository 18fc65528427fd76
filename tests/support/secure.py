"""Clients of the secured cluster: tickets, and requests that are made with them."""

import fcntl
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

from support.hadoop.kerberos import CORPORATE_USERS

#: Milliseconds after which tokens end unless YARN renews them, which it does at nine tenths, and after which they end
#: for good. Rows hold submissions that have tokens until a ResourceManager has taken over.
TOKENS = {"renew-interval": 90_000, "max-lifetime": 100_000}
#: A cookie is good for some seconds, so that clients need tickets again and again. On a machine with a load of 20 the
#: active ResourceManager would lose Hadoop's session of 10 s; one row waits for its end.
PROPERTIES = {"hadoop.http.authentication.token.validity": "15", "hadoop.zk.timeout-ms": "15000"} | {
    f"{daemon}.delegation.token.{key}": str(value)
    for daemon in ("dfs.namenode", "yarn.resourcemanager")
    for key, value in TOKENS.items()
}


@contextmanager
def shared_cluster(shared):
    """Give the running secured `HadoopCluster` with pairs whose folder lies in ``shared``; the last worker that used it ends it."""
    from support.hadoop import HadoopCluster

    cluster = HadoopCluster(
        shared / "secure-cluster", kerberos=True, https=True, ha=True, kms=True, properties=PROPERTIES
    )
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
    """Return the variables of a client of the cluster whose ticket cache is a file of its own; ``None`` has no ticket.

    The machine of a corporate user has the user's realm as its default.
    """
    environ = {**os.environ, **cluster.environ, "KRB5CCNAME": f"FILE:{folder}/ticket-{user}"}
    if user in CORPORATE_USERS:
        default, corporate = str(cluster.krb5_conf), str(cluster.settings.realm.corporate_conf)
        environ |= {name: environ[name].replace(default, corporate) for name in ("KRB5_CONFIG", "JDK_JAVA_OPTIONS")}
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
    text, _, status = _curl(cluster, environ, "--write-out", "\n%{http_code}", *options, url).rpartition("\n")
    return int(status), text


def ask_all(cluster, environ, urls, folder: Path):
    """Send a GET to each URL by one curl; return the HTTP status and the bytes of each answer. The folder is for files."""
    if not urls:
        return []
    files = [folder / f"answer-{index}" for index in range(len(urls))]
    for file in files:
        file.unlink(missing_ok=True)  # an empty answer writes none
    listed = folder / "urls"
    listed.write_text("".join(f'url = "{url}"\noutput = "{file}"\n' for url, file in zip(urls, files, strict=True)))
    # The cookie of the first answer saves SPNEGO to the others.
    statuses = _curl(cluster, environ, "--cookie", "", "--write-out", "%{http_code}\n", "--config", str(listed)).split()
    return [
        (int(status), file.read_bytes() if file.exists() else b"") for status, file in zip(statuses, files, strict=True)
    ]


def _curl(cluster, environ, *options):
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
        *options,
    ]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout

"""Clients of the secured cluster: tickets, and requests that are made with them."""

import os
import subprocess
from pathlib import Path


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
    command = ["curl", "--silent", "--show-error", "--max-time", "30", "--negotiate", "--user", ":", *ca,
               "--location-trusted",  # from the standby to the active one
               "--write-out", "\n%{http_code}", *options, url]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    text, _, status = ran.stdout.rpartition("\n")
    return int(status), text

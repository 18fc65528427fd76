"""One secured cluster for all rows of this folder, in whichever worker they run."""

import fcntl

import pytest

from support.secure import get_environment

#: Milliseconds after which tokens end unless YARN renews them, which it does at nine tenths, and after which they end
#: for good.
TOKENS = {"renew-interval": 40_000, "max-lifetime": 100_000}
#: A cookie is good for some seconds, so that clients need tickets again and again.
EXPIRY = {"hadoop.http.authentication.token.validity": "15"} | {
    f"{daemon}.delegation.token.{key}": str(value)
    for daemon in ("dfs.namenode", "yarn.resourcemanager") for key, value in TOKENS.items()}


@pytest.fixture(scope="session")
def secure_cluster(tmp_path_factory, worker_id):
    """Return the running secured `MiniCluster` with pairs of this run; the last worker that used it ends it."""
    from tf_yarn_ops.minicluster import MiniCluster

    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    cluster = MiniCluster(shared / "secure-cluster", kerberos=True, https=True, ha=True, properties=EXPIRY)
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

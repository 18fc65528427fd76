"""A cluster with Kerberos, HTTPS and two of each master, and a client that has neither Java nor gcc: address and keytab alone.

The rows of failover, identity and the client's faults are those of clusters without Kerberos. Some of each kind are played
here: a client that is killed before the submission or while it waits, or gets SIGTERM just after the submission.
"""

import os

import pytest

from support import failover_rows, identity_rows
from support.access import by_keytab
from support.client_rows import ROWS, SECURED_ROWS
from support.faults import Matrix, Rig, check
from support.hadoop.cluster import make_active
from support.two_nodes import launcher_by
from support.waiting import until
from tf_yarn_ops.minicluster.health import has_left_safe_mode

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

#: Fewer rows than by hand, ./dev test secure --all; tests/faults/test_client.py plays all without Kerberos.
ALL = os.environ.get("YTF_TEST_SECURE") == "all"
MATRIX = Matrix(ROWS if ALL else SECURED_ROWS)


@pytest.fixture(scope="module")
def access(secure_cluster, tmp_path_factory):
    # The jobs of bob are those of this file.
    with by_keytab(secure_cluster, tmp_path_factory.mktemp("bob"), "bob") as made:
        yield made


@pytest.fixture
def launcher(access):
    with launcher_by(access) as made:
        yield made


@pytest.fixture(scope="module")
def rig(access, tmp_path_factory):
    rig = Rig(access.hadoop, access)
    rig.folder = tmp_path_factory.mktemp("clients")
    return rig


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_a_fault_of_the_client_ends_as_the_matrix_says(row, played):
    check(row, played)


def test_exactly_one_application_trains(access, launcher):
    identity_rows.play_at_once(access, launcher, ALL)


def test_one_address_is_enough(access):
    failover_rows.one_address_is_enough(access)


def test_nothing_is_lost_when_the_resourcemanager_is_killed(access, launcher):
    failover_rows.nothing_is_lost_when_the_resourcemanager_is_killed(access, launcher)


def test_nothing_is_lost_when_the_namenode_is_killed(access, launcher):
    try:
        failover_rows.nothing_is_lost_when_the_namenode_is_killed(access, launcher)
    finally:  # other files ask the first NameNode, also if this row fails
        settings, active = access.hadoop.settings, access.hadoop.active("nn")
        if active != (first := settings.namenodes[0]):
            make_active(settings, first, in_place_of=active)
            until(lambda: has_left_safe_mode(settings, first))
    launcher.cluster.open_filesystem().makedirs("/user/bob/after-the-failover", 0o700)

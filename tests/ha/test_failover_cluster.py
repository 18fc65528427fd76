"""Two ResourceManagers and two NameNodes, whose active ones are killed at every step of a job."""

import pytest

from support import failover_rows
from support.access import plain
from support.hadoop import HadoopCluster
from support.tls import Authority
from support.two_nodes import launcher_on

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with HadoopCluster(tmp_path_factory.mktemp("ha"), ha=True) as cluster:
        yield cluster


@pytest.fixture
def launcher(hadoop):
    with launcher_on(hadoop) as made:
        yield made


def test_one_address_is_enough(hadoop):
    failover_rows.one_address_is_enough(plain(hadoop))


def test_gateway_that_asks_the_standby_works(hadoop, tmp_path):
    failover_rows.a_gateway_that_asks_the_standby_is_no_obstacle(hadoop, Authority(tmp_path), tmp_path)


def test_gateway_with_a_path_for_each_works(hadoop, tmp_path):
    failover_rows.a_gateway_with_a_path_for_each_works(hadoop, Authority(tmp_path), tmp_path)


def test_nothing_is_lost_when_the_resourcemanager_is_killed(hadoop, launcher):
    failover_rows.nothing_is_lost_when_the_resourcemanager_is_killed(plain(hadoop), launcher)


def test_nothing_is_lost_when_the_namenode_is_killed(hadoop, launcher):
    failover_rows.nothing_is_lost_when_the_namenode_is_killed(plain(hadoop), launcher)

"""Free ports for the daemons."""

import socket

import pytest

from support.machines import make_settings
from support.own_ports import OF_USERS, own_ports
from tf_yarn_ops.minicluster import ports


@pytest.fixture
def for_users(monkeypatch):
    """Choose from the range of users' clusters, not from that of this test process."""
    monkeypatch.setattr(ports, "_RANGE", OF_USERS)


def test_each_test_process_has_ports_of_its_own():
    ranges = [
        own_ports({"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": "5"}) for number in range(5)
    ]
    assert len({port for each in ranges for port in each}) == sum(map(len, ranges)) > 2500
    assert own_ports() == ports._RANGE


def test_ports_are_free_distinct_and_not_the_kernels_to_give_away(for_users):
    chosen = ports.choose_ports(make_settings(nodes=8).port_names)
    assert len(set(chosen.values())) == len(chosen)
    assert all(10000 <= port < 20000 and ports.is_free(port) for port in chosen.values())


def test_clusters_that_start_together_choose_different_ports(for_users):
    names = make_settings(nodes=8).port_names
    chosen = [port for _ in range(4) for port in ports.choose_ports(names).values()]
    assert len(set(chosen)) > 0.9 * len(chosen)


def test_a_listener_takes_its_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert ports.taken_ports({"rm": port}) == {"rm": port}

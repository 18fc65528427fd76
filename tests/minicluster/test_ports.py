"""Free ports for the daemons."""

import socket

from support.machines import make_settings
from tf_yarn_ops.minicluster import ports


def test_ports_are_free_distinct_and_not_the_kernels_to_give_away():
    chosen = ports.choose_ports(make_settings(nodes=8).port_names)
    assert len(set(chosen.values())) == len(chosen)
    assert all(10000 <= port < 20000 and ports.is_free(port) for port in chosen.values())


def test_clusters_that_start_together_choose_different_ports():
    names = make_settings(nodes=8).port_names
    chosen = [port for _ in range(4) for port in ports.choose_ports(names).values()]
    assert len(set(chosen)) > 0.9 * len(chosen)


def test_a_listener_takes_its_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert ports.taken_ports({"rm": port}) == {"rm": port}

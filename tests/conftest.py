"""What several test files share: one real Hadoop for the whole session."""

import signal

import pytest


def pytest_configure(config):
    """Undo what a shell does to its background jobs: the programs under test have to see Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory):
    """Give a running `MiniCluster` with HDFS, ended with the session."""
    from tf_yarn_ops.minicluster import MiniCluster

    with MiniCluster(tmp_path_factory.mktemp("minicluster")) as cluster:
        yield cluster

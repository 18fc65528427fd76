"""What several test files share: one real Hadoop for the whole session."""

import pytest


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory):
    """Give a running `MiniCluster` with HDFS, ended with the session."""
    from tf_yarn_ops.minicluster import MiniCluster

    with MiniCluster(tmp_path_factory.mktemp("minicluster")) as cluster:
        yield cluster

"""Fixtures of the history."""

import pytest

from support.staging_place import cluster_at
from tf_yarn_ops.staging.staging_directory import StagingDirectory


@pytest.fixture
def root(tmp_path):
    return tmp_path


@pytest.fixture
def staging(root):
    return StagingDirectory(cluster_at(root))


@pytest.fixture
def cluster(tmp_path):
    return cluster_at(tmp_path)

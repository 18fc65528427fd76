"""Fixtures of the staging directory."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.staging_place import ID, cluster_at
from tf_yarn_ops.staging.staging_directory import StagingDirectory


@pytest.fixture
def root(tmp_path):
    """A file system that everybody may pass through."""
    folder = tmp_path / "files"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def staging(root):
    made = StagingDirectory(cluster_at(root))
    with ThreadPoolExecutor(2) as pool:
        made.prepare(pool)
    return made


@pytest.fixture
def directory(staging):
    made = staging.directory(ID)
    made.make()
    return made

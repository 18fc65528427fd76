"""The application of ``ytf ui`` over a file system that is a folder, and a YARN on the wire."""

import pytest

from support.records_served import serving_pages
from support.staging_place import USER
from tf_yarn_ops.hadoop.cluster import Cluster


@pytest.fixture
def place(yarn, tmp_path):
    return Cluster((yarn.url,), USER, USER, "viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(tmp_path))


@pytest.fixture
def pages(place):
    with serving_pages(place) as url:
        yield url

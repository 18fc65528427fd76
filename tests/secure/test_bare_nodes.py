"""A packed environment on the secured cluster's nodes, and a training on its HDFS that resumes."""

import pytest

from support.bare_nodes import pack_arrow, resume_after_a_lost_container

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(600)]


def test_packed_training_on_hdfs_resumes_after_its_container_is_lost(secure_cluster, tmp_path):
    resume_after_a_lost_container(secure_cluster, pack_arrow(tmp_path), tmp_path, user="alice")

"""The clients of the secured cluster."""

import pytest

from support.secure import get_environment


@pytest.fixture
def as_alice(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of alice."""
    return get_environment(secure_cluster, tmp_path, "alice")


@pytest.fixture
def as_bob(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of bob."""
    return get_environment(secure_cluster, tmp_path, "bob")


@pytest.fixture
def as_gateway(secure_cluster, tmp_path):
    """Return the variables of a client with a ticket of gateway, which may act for alice and bob."""
    return get_environment(secure_cluster, tmp_path, "gateway")


@pytest.fixture
def as_nobody(secure_cluster, tmp_path):
    """Return the variables of a client without a ticket."""
    return get_environment(secure_cluster, tmp_path)

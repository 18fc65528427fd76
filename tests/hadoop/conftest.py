"""What the tests of Hadoop's clients share."""

import pytest

from support.real_yarn import WIRE_AND_REAL, one_of
from support.tls import Authority


@pytest.fixture(params=WIRE_AND_REAL)
def wire_and_real(request):
    """The ResourceManager on the wire, and the real one behind a counting proxy."""
    with one_of(request) as yarn:
        yield yarn


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))

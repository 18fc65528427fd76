"""What the tests of the runtime share."""

import pytest

from support.appmaster import AppMaster


@pytest.fixture
def run(tmp_path):
    """Run a job to its end; gives the application master and the report."""

    def run(spec, **options):
        with AppMaster(tmp_path / "job", spec, **options) as am:
            return am, am.wait()

    return run

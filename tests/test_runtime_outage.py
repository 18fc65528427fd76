"""The ResourceManager is away when a job ends: the verdict waits for it."""

import pytest
from appmaster import AppMaster
from fake_yarn import FakeYarn, serving, until
from test_runtime import job

from tf_yarn_ops.runtime import yarn as asking
from tf_yarn_ops.runtime.reasons import Reason

INFO = "/ws/v1/cluster/info"


def away(method, path):
    return 503, {}, "starting"


@pytest.fixture
def yarn():
    return FakeYarn()


def test_a_verdict_waits_until_a_resourcemanager_answers(yarn, tmp_path):
    """Skein would give up after 30 s, and YARN would call a training that succeeded AM_FAILED."""
    mark = tmp_path / "mark"
    command = f"while [ ! -e {mark} ]; do sleep 0.05; done"
    with serving(yarn) as url, AppMaster(tmp_path / "job", job(command, ps=False), resourcemanagers=(url,)) as am:
        until(lambda: yarn.count("GET", INFO))
        yarn.faults.append(away)
        mark.touch()
        until(lambda: "the verdict waits for it" in am.coordinator_log.read_text())
        seen = yarn.count("GET", INFO)
        until(lambda: yarn.count("GET", INFO) > seen)
        assert am.ended == []
        yarn.faults.clear()
        assert am.wait().reason is Reason.SUCCEEDED


def test_a_resourcemanager_that_never_answered_holds_up_nothing(yarn, tmp_path):
    """The nodes need not reach its web port."""
    yarn.faults.append(away)
    with serving(yarn) as url, AppMaster(tmp_path / "job", job("true", ps=False), resourcemanagers=(url,)) as am:
        assert am.wait().reason is Reason.SUCCEEDED
        assert "the verdict waits" not in am.coordinator_log.read_text()


@pytest.mark.parametrize("status, text, active", [
    (200, '{"clusterInfo": {"haState": "ACTIVE"}}', True),
    (200, '{"clusterInfo": {}}', True),
    (200, '{"clusterInfo": {"haState": "STANDBY"}}', False),
    (200, "<html>a proxy's page</html>", False),
    (401, "Authentication required", True),
    (403, "forbidden", True),
    (503, "starting", False),
])
def test_what_counts_as_a_resourcemanager_at_work(yarn, status, text, active):
    yarn.faults.append(lambda method, path: (status, {"Content-Type": "application/json"}, text))
    with serving(yarn) as url:
        assert asking.is_active(["http://127.0.0.1:1", url]) is active

"""A kill within the seconds that Airflow leaves."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.airflow_task import ID, Running
from support.fake_yarn import FakeYarn, application, serving, slowly
from support.waiting import until
from tf_yarn_ops.airflow import TfYarnInfrastructureError
from tf_yarn_ops.airflow.fast_kill import kill_now
from tf_yarn_ops.airflow.following import cluster_from_dict

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("silent", [False, True], ids=["alone", "as Airflow does"])
def test_killing_does_not_wait_for_a_resourcemanager_that_hangs(site, silent):
    task = Running(site.operator(), max_tries=0)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    site.yarn.faults.append(slowly(120, "PUT"))
    silence = threading.Event()
    if silent:
        task.ti.get_task_states = lambda **names: silence.wait(120) and {}
    began = time.monotonic()
    task.operator.on_kill()
    assert time.monotonic() - began < 60
    silence.set()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError) and f"{ID} may still run" in str(task.error)


def test_kill_at_a_hanging_port_gives_up_within_five_seconds():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        cluster = cluster_from_dict({"resourcemanagers": [url], "user": "ann", "login": "ann"})
        began = time.monotonic()
        assert kill_now(cluster, ID, "why") is False
        assert time.monotonic() - began < 60


def test_kill_waits_for_a_resourcemanager_that_recovers():
    """It answers 404 until then, and no later request would kill the application."""
    yarn, name = FakeYarn(), "application_1600000000000_0001"
    yarn.ha_state = "INITIALIZING"
    with serving(yarn) as url, ThreadPoolExecutor(1) as pool:
        cluster = cluster_from_dict({"resourcemanagers": [url], "user": "ann", "login": "ann"})
        killing = pool.submit(kill_now, cluster, name, "why", 20.0)
        until(lambda: yarn.count("GET", "/ws/v1/cluster/info") >= 2)
        yarn.add(application(1, user="ann") | {"id": name})
        yarn.ha_state = "ACTIVE"
        assert killing.result(60) is True
        assert yarn.apps[name]["state"] == "KILLED"

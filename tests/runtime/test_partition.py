"""The coordinator's way to YARN; a real partition is in ``tests/faults/test_hosts.py``."""

import asyncio

import pytest

from support.fake_yarn import FakeYarn, closed_address, serving
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import partition

#: For documents only: no host has it.
NOWHERE = "http://192.0.2.1:8088"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("POLL_SECONDS", "RETRY_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(partition, name, 0.05)


@pytest.mark.parametrize(
    ("found", "seconds"),
    [({}, 600.0), ({"yarn.nm.liveness-monitor.expiry-interval-ms": "40000"}, 40.0)],
)
def test_node_expiry_is_that_of_the_resourcemanager(found, seconds):
    yarn = FakeYarn()
    yarn.conf |= found
    with serving(yarn):
        assert partition.read_node_expiry([closed_address(), yarn.url]) == seconds


def test_node_expiry_without_an_answer_is_hadoops_default():
    assert partition.read_node_expiry([closed_address()]) == partition.NODE_EXPIRY


def test_await_loss_ends_the_job_when_no_resourcemanager_is_reached():
    lost = asyncio.run(partition.await_loss([NOWHERE, NOWHERE], 0.3))
    assert lost.reason is Reason.NODE_LOST
    assert lost.cause.startswith("this node has reached no ResourceManager for 0 s")


@pytest.mark.parametrize("down", [True, False])
def test_await_loss_goes_on_while_one_host_answers(down, yarn):
    async def waits():
        addresses = [NOWHERE, closed_address() if down else yarn.url]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(partition.await_loss(addresses, 0.3), 1.0)

    asyncio.run(waits())

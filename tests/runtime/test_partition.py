"""The coordinator's way to YARN; a real partition is in ``tests/faults/test_hosts.py``."""

import asyncio
import time

import pytest

from support.fake_yarn import FakeYarn, closed_address, serving
from support.waiting import until_async
from support.wire import job_of
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import partition

#: For documents only: no host has it.
NOWHERE = "http://192.0.2.1:8088"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("POLL_SECONDS", "RETRY_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(partition, name, 0.05)


NODE, MASTER = (f"yarn.{part}.liveness-monitor.expiry-interval-ms" for part in ("nm", "am"))


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        ({NODE: "600000", MASTER: "600000"}, 600.0),
        ({NODE: "40000", MASTER: "600000"}, 40.0),
        ({NODE: "600000", MASTER: "50000"}, 50.0),
        ({NODE: "40000"}, None),
    ],
)
def test_expiry_is_the_shorter_one_of_node_and_application_master(found, seconds):
    yarn = FakeYarn()
    yarn.conf |= found
    with serving(yarn):
        assert partition.read_expiry(job_of(closed_address(), yarn.url)) == seconds


def test_await_loss_ends_the_job_when_no_resourcemanager_is_reached(monkeypatch):
    monkeypatch.setattr(partition, "EXPIRY", 0.3)
    lost = asyncio.run(partition.await_loss(job_of(NOWHERE, NOWHERE)))
    assert lost.reason is Reason.NODE_LOST
    assert lost.message.startswith("this node has reached no active ResourceManager for 0 s")


@pytest.mark.parametrize(
    ("hosts", "goes_on"),
    [
        (["active"], True),
        (["refused"], True),  # it is down or starts
        (["refused", "standby"], True),  # each host answers
        (["silent", "active"], True),
        (["silent", "standby"], False),  # the active one's time runs
        (["silent", "refused"], False),
    ],
)
def test_await_loss_goes_on_while_the_active_one_answers(hosts, goes_on, monkeypatch):
    monkeypatch.setattr(partition, "EXPIRY", 0.3)
    yarn = FakeYarn()
    yarn.ha_state = "STANDBY" if "standby" in hosts else "ACTIVE"
    with serving(yarn):
        places = {"silent": NOWHERE, "refused": closed_address(), "active": yarn.url, "standby": yarn.url}
        job = job_of(*(places[host] for host in hosts))
        waiting = asyncio.wait_for(partition.await_loss(job), 0.9 if goes_on else 60.0)
        if goes_on:
            with pytest.raises(asyncio.TimeoutError):
                asyncio.run(waiting)
        else:
            assert asyncio.run(waiting).reason is Reason.NODE_LOST


def test_time_without_a_resourcemanager_counts_from_the_last_contact(monkeypatch):
    monkeypatch.setattr(partition, "EXPIRY", 0.3)
    contacts = []

    def reach_ten_times(*_):
        if len(contacts) < 10:
            contacts.append(time.monotonic())
            return True
        return False

    monkeypatch.setattr(partition, "_reach_active", reach_ten_times)
    assert asyncio.run(partition.await_loss(job_of())).reason is Reason.NODE_LOST
    assert time.monotonic() - contacts[-1] > 0.29


def test_host_is_reached_at_its_last_address_while_its_name_is_unknown():
    yarn, known = FakeYarn(), {}
    with serving(yarn) as url:
        assert partition._reaches(url, known) is True
        nameless = url.replace("127.0.0.1", "rm.invalid")
        assert partition._reaches(nameless, {nameless: known[url]}) is True
    assert partition._reaches(nameless, {}) is None


def test_await_loss_asks_again_for_the_expiry(monkeypatch):
    yarn = FakeYarn()
    with serving(yarn):

        async def shown_later():
            waiting = asyncio.ensure_future(partition.await_loss(job_of(yarn.url)))
            await until_async(lambda: [place for _, place, *_ in yarn.requests if place == "/conf"])
            yarn.conf |= {NODE: "700", MASTER: "600"}
            seen = len(yarn.requests)
            await until_async(lambda: len(yarn.requests) >= seen + 2)
            monkeypatch.setattr(partition, "_reaches", lambda base, known: None)
            return await waiting

        assert "for 1 s, after which" in asyncio.run(shown_later()).message

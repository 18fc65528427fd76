"""What a submission sets in YARN, and the way that it takes."""

import threading
from datetime import datetime, timezone

import pytest

from support.fake_yarn import STAMP
from support.place import ID, job
from support.waiting import until
from tf_yarn_ops.errors import (
    Cancelled,
    SubmissionRejected,
)
from tf_yarn_ops.job.parts import Deadlines


def test_yarns_lifetime_is_the_backstop(place):
    place.launcher().submit(job(deadlines=Deadlines(queue=100, total=1000)))
    expected = datetime.fromtimestamp(STAMP / 1000 + 100 + 1000 + 300, timezone.utc)
    assert place.yarn.apps[ID]["lifetime"] == {
        "type": "LIFETIME",
        "expiryTime": expected.strftime("%Y-%m-%dT%H:%M:%S.000+0000"),
    }


@pytest.mark.slow
def test_a_lifetime_is_not_stored_while_the_master_is_launched(place):
    """The ResourceManager could lose the master's token: it fails with SIMPLE authentication is not enabled."""
    looks = place.yarn.launch_after(ID, 6)
    place.launcher().submit(job())
    asked = [(method, path.rsplit("/", 1)[-1]) for method, path, *_ in place.yarn.requests]
    assert len(looks) == 7 and asked[-2:] == [("GET", ID), ("PUT", "timeout")]


@pytest.mark.slow
def test_one_that_waits_in_the_queue_gets_its_lifetime_nevertheless(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.submission.LAUNCH_WAIT", 0.3)
    place.yarn.launch_after(ID, 10**9)
    place.launcher().submit(job())
    assert "lifetime" in place.yarn.apps[ID]


@pytest.mark.slow
def test_a_cancel_while_the_master_is_launched_takes_it_back(place):
    looks, launcher = place.yarn.launch_after(ID, 10**9), place.launcher()
    canceller = threading.Thread(target=lambda: (until(lambda: len(looks) >= 5), launcher.cancel()))
    canceller.start()
    with pytest.raises(Cancelled):
        launcher.submit(job())
    canceller.join()
    assert place.yarn.apps[ID]["state"] == "KILLED"


def test_an_unlimited_job_has_no_lifetime(place):
    place.launcher().submit(job(deadlines=Deadlines(total=0)))
    assert "lifetime" not in place.yarn.apps[ID]


@pytest.mark.slow
def test_closed_http_falls_back_to_skein_and_says_so(place, caplog):
    caplog.set_level("INFO")
    place.yarn.faults.append(
        lambda method, path: (
            (
                403,
                {"Content-Type": "application/json"},
                '{"RemoteException": {"message": "App submission via REST is disabled."}}',
            )
            if (method, path) == ("POST", "/ws/v1/cluster/apps")
            else None
        )
    )
    with pytest.raises(SubmissionRejected, match="needs Hadoop's client: no 'yarn' on PATH"):
        place.launcher(environ={"PATH": "/none"}).submit(job())
    assert "submitting with Skein's Java client, because HTTP is closed" in caplog.text
    with pytest.raises(SubmissionRejected, match="via REST is disabled"):
        place.launcher(submit_with="rest").submit(job())
    assert place.directories() == []


def test_a_secured_cluster_whose_addresses_are_not_known_goes_by_skein(place, caplog):
    caplog.set_level("INFO")
    place.yarn.conf["hadoop.security.authentication"] = "kerberos"
    with pytest.raises(SubmissionRejected, match="no 'yarn' on PATH"):
        place.launcher(environ={"PATH": "/none"}).submit(job())
    assert "Skein's Java client, because HTTP is closed: the address of the ResourceManager for Hadoop's" in caplog.text

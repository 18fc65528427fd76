"""What a submission deletes of earlier applications: only directories of the user, of applications that have ended."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from support.fake_yarn import FakeYarn, application, serving
from support.records import keep, record
from support.staging_place import USER, cluster_at, staged_at
from tf_yarn_ops.follow.sweep import keep_missing_records, sweep_directories, sweep_ended, sweep_old
from tf_yarn_ops.history.histories import Histories
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.staging.staging_directory import StagingDirectory

STATES = {"application_1_0001": "FINISHED", "application_1_0002": "RUNNING", "application_1_0003": "KILLED"}


@pytest.fixture
def root(tmp_path):
    return tmp_path


@pytest.fixture
def staging(root):
    made = StagingDirectory(cluster_at(root))
    with ThreadPoolExecutor(2) as pool:
        made.prepare(pool)
    return made


@pytest.fixture
def resourcemanager(root):
    yarn = FakeYarn()
    for name, state in STATES.items():
        yarn.add(application(int(name[-4:]), state, id=name, user=USER))
    with serving(yarn) as url:
        yield replace(cluster_at(root), resourcemanagers=(url,)).resourcemanager()


def left(root):
    return sorted(path.name for path in (root / f"user/{USER}/.skein").iterdir() if path.name != "cache")


def test_only_directories_of_ended_applications_are_deleted(staging, root, resourcemanager):
    for name in [*STATES, "application_1_0009", "application_1_0010"]:
        staging.directory(name).make()
    os.utime(root / f"user/{USER}/.skein/application_1_0010", (1, 1))
    assert sorted(sweep_directories(staging, resourcemanager, keep="application_1_0003")) == [
        "application_1_0001",
        "application_1_0010",
    ]
    assert left(root) == ["application_1_0002", "application_1_0003", "application_1_0009"]


def test_directories_of_another_owner_are_kept(staging, root, resourcemanager):
    """A staging directory that several users share: HDFS would refuse, a mounted folder would not."""
    staging.directory("application_1_0001").make()
    shared = staged_at(replace(cluster_at(root), user="bob"), f"/user/{USER}/.skein")
    assert sweep_directories(StagingDirectory(shared), resourcemanager) == []
    assert left(root) == ["application_1_0001"]


@pytest.mark.parametrize("folder", ["claims", "leases", "reports"])
def test_only_old_files_of_the_user_are_deleted(staging, root, folder):
    place = root / f"user/{USER}/.skein" / folder
    place.mkdir()
    (place / "note").write_text("{}")
    assert sweep_old(staging, folder) == 0
    old = time.time() - 91 * 86400
    os.utime(place / "note", (old, old))
    of_bob = StagingDirectory(staged_at(replace(cluster_at(root), user="bob"), f"/user/{USER}/.skein"))
    assert sweep_old(of_bob, folder) == 0
    assert sweep_old(staging, folder, 92.0) == 0
    assert sweep_old(staging, folder) == 1


def test_jobs_that_died_before_their_coordinator_get_records(staging, root):
    yarn, now = FakeYarn(), time.time()
    for number, tags, ended in (
        (1, "tfy-job", now),
        (2, "dask", now),
        (3, "tfy-0a1b,nightly", now - 3600),
        (4, "tfy-job", now - 99 * 3600),
    ):
        yarn.add(
            application(
                number,
                "FAILED",
                user=USER,
                finalStatus="FAILED",
                applicationTags=tags,
                finishedTime=round(1000 * ended),
                startedTime=round(1000 * ended) - 5000,
                diagnostics="No module named grpc",
            )
        )
    with serving(yarn) as url:
        for _ in range(2):
            keep_missing_records(staging, replace(cluster_at(root), resourcemanagers=(url,)).resourcemanager(), 24)
    found = list(Histories(staging.cluster).find(Query()))
    assert [one["application_id"][-4:] for one in found] == ["0001", "0003"]
    assert {one["reason"] for one in found} == {"AM_FAILED"} and "grpc" in found[0]["message"]


def test_record_that_is_there_is_not_written_again(staging, root, monkeypatch):
    kept = []
    monkeypatch.setattr("tf_yarn_ops.follow.sweep.keep_record", lambda staging, report: kept.append(report))
    yarn, ended = FakeYarn(), time.time()
    for number in (1, 2):
        yarn.add(application(number, "FAILED", user=USER, applicationTags="tfy-job", finishedTime=round(1000 * ended)))
    keep(staging.filesystem, staging.cluster.history, record(1, user=USER, ended=ended))
    known = next(iter(Histories(staging.cluster).find(Query())))["application_id"]
    with serving(yarn) as url:
        keep_missing_records(staging, replace(cluster_at(root), resourcemanagers=(url,)).resourcemanager(), 24)
    assert {report.application_id for report in kept} == set(yarn.apps) - {known} and len(kept) == 1


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_submission_sweeps_old_notes_and_records_by_chance(staging, root, resourcemanager, monkeypatch, chance):
    notes = [root / f"user/{USER}/.skein" / name / "note" for name in ("claims", "leases")]
    for note in notes:
        note.parent.mkdir()
        note.touch()
        os.utime(note, (1, 1))
    keep(staging.filesystem, staging.cluster.history, record(1))  # of 2023
    for name in ("OLD_CHANCE", "RECORDS_CHANCE"):
        monkeypatch.setattr(f"tf_yarn_ops.follow.sweep.{name}", chance)
    sweep_ended(staging, resourcemanager, "")
    assert [note.exists() for note in notes] == [not chance] * 2
    assert records_of(staging).days() == ([] if chance else ["2023/11/14"])

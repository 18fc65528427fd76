"""The history: how long the coordinator writes a record to a real HDFS, and how fast ``ytf ui`` shows 10,000 jobs."""

import contextlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx

from support.many_records import read_all, write_many
from support.records import DAY, application_id, record
from support.records_served import serving_pages
from tf_yarn_ops.hadoop.cluster import Cluster
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.master import record_writer as history
from tf_yarn_ops.staging.staging_directory import StagingDirectory
from tf_yarn_ops.submit.application import plan_runtime_job

from .hadoop import Hadoop, hadoop
from .samples import Figures, Samples, interleave

TITLE = "History: records in HDFS; the first page of ytf ui over 10,000 records within 1 s is wanted"
#: Jobs in the history, spread over 90 days.
JOBS, QUICK_JOBS = 10_000, 60


def measure(runs: int, quick: bool) -> Samples:
    """Measure writes to HDFS, and the pages of a new `ytf ui` on HDFS and on a folder of this machine."""
    number = QUICK_JOBS if quick else JOBS
    with hadoop() as cluster, tempfile.TemporaryDirectory(prefix="ytf-bench-") as folder:
        stored = cluster.launcher.cluster
        files = replace(stored, storage=replace(stored.storage, webhdfs=(), local_root=folder))
        write_many(Path(folder), files.history, number, time.time() - DAY, user=files.user)
        _copy(Path(folder), stored)
        for place in (files, stored):
            read_all(records_of(StagingDirectory(place)))  # as submissions do now and then: it writes the indexes
        cases = {f"write, {count} tasks": lambda count=count: _write(cluster, count) for count in (4, 1000)}
        return interleave(
            {
                **cases,
                f"ytf ui, {number:,} records in HDFS": lambda: _look(stored),
                f"ytf ui, {number:,} records in a folder": lambda: _look(files),
            },
            runs,
            Samples(),
        )


def _copy(folder: Path, cluster: Cluster) -> None:
    """Copy records into HDFS."""
    with contextlib.closing(cluster.open_filesystem()) as filesystem, ThreadPoolExecutor(16) as pool:
        records = {f"/{path.relative_to(folder)}": path for path in folder.rglob("*") if path.is_file()}
        for day in {target.rpartition("/")[0] for target in records}:
            filesystem.makedirs(day, 0o755)
        list(pool.map(lambda target: filesystem.create(target, records[target].read_bytes(), 0o600), records))


def _write(cluster: Hadoop, count: int) -> Figures:
    spec = JobSpec(command="true", tasks={"worker": TaskSpec(instances=count)})
    job = plan_runtime_job(cluster.launcher.cluster, spec, 1)
    status = record(int(time.time() * 1000) % 10**9, ended=time.time())
    status["tasks"] = [{**status["tasks"][0], "task": f"worker:{index}"} for index in range(count)]
    began = time.monotonic()
    path = history.keep(job, status["application_id"], status)
    seconds = time.monotonic() - began
    found = cluster.launcher.session.staging().filesystem.status(path or "")
    if found is None:
        raise RuntimeError("the record was not written")
    return {"ms": 1000 * seconds, "KiB": found.length / 1024}


def _look(cluster: Cluster) -> Figures:
    figures = {}
    with (
        serving_pages(cluster) as url,
        httpx.Client(base_url=url.partition("?")[0], trust_env=False, timeout=60) as client,
    ):
        client.get(url)
        for name, path in (
            ("first page ms", "/"),
            ("next page ms", "/?skip=50"),
            ("filtered over all ms", "/?name=none"),
            ("reasons of 30 days ms", "/reasons"),
            ("a job ms", f"/jobs/{application_id(5)}"),
        ):
            began = time.monotonic()
            client.get(path).raise_for_status()
            figures[name] = 1000 * (time.monotonic() - began)
    return figures

"""The history on a real HDFS: how long the coordinator writes a record, and how fast ``ytf ui`` shows 10,000 jobs."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import load_job
from tf_yarn_ops.runtime.master import history
from tf_yarn_ops.submit.application import job_file, settings_of

from .hadoop import Hadoop, hadoop
from .samples import Figures, Samples, interleave

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.records import DAY, application_id, keep, record
from support.records_served import serving_pages

TITLE = "History: records in HDFS; the first page of ytf ui over 10,000 records within 1 s is wanted"
#: Jobs in the history, the days over which they are spread, and clients that write at the same time.
JOBS, QUICK_JOBS, DAYS, WRITERS = 10_000, 60, 90, 8


def measure(runs: int, quick: bool) -> Samples:
    """Measure writes, and the pages of a new `ytf ui`."""
    with hadoop() as cluster:
        number = QUICK_JOBS if quick else JOBS
        _fill(cluster, number)
        tasks = (4,) if quick else (4, 1000)
        cases = {f"write, {count} tasks": lambda count=count: _write(cluster, count) for count in tasks}
        return interleave({**cases, f"ytf ui, {number:,} records": lambda: _look(cluster)}, runs, Samples())


def _write(cluster: Hadoop, count: int) -> Figures:
    spec = JobSpec(command="true", tasks={"worker": TaskSpec(instances=count)})
    job = load_job(job_file(spec, **settings_of(cluster.launcher.cluster, 1)))
    status = record(int(time.time() * 1000) % 10**9, ended=time.time())
    status["tasks"] = [{**status["tasks"][0], "task": f"worker:{index}"} for index in range(count)]
    began = time.monotonic()
    path = history.keep(job, status["application_id"], status)
    seconds = time.monotonic() - began
    found = cluster.launcher.staging().filesystem.status(path or "")
    if found is None:
        raise RuntimeError("the record was not written")
    return {"ms": 1000 * seconds, "KiB": found.length / 1024}


def _fill(cluster: Hadoop, number: int) -> None:
    """Write the records, and the indexes as the sweep of a submission does."""
    files, folder = cluster.launcher.staging().filesystem, cluster.launcher.cluster.history
    now, user = time.time() - DAY, cluster.launcher.cluster.user
    cluster.launcher.staging().filesystem.makedirs(cluster.launcher.cluster.staging, 0o711)
    with ThreadPoolExecutor(WRITERS) as pool:
        made = (record(one, ended=now - DAYS * DAY * one / number, user=user) for one in range(number))
        list(pool.map(lambda document: keep(files, folder, document), made))
    records = cluster.launcher.staging().records()
    for day in records.days():
        records.summaries(day)


def _look(cluster: Hadoop) -> Figures:
    figures = {}
    with serving_pages(cluster.launcher.cluster) as url, \
            httpx.Client(base_url=url.partition("?")[0], trust_env=False, timeout=60) as client:
        client.get(url)
        for name, path in (("first page ms", "/"), ("next page ms", "/?skip=50"),
                           ("filtered over all ms", "/?name=none"), ("reasons of 30 days ms", "/reasons"),
                           ("a job ms", f"/jobs/{application_id(5)}")):
            began = time.monotonic()
            client.get(path).raise_for_status()
            figures[name] = 1000 * (time.monotonic() - began)
    return figures

"""Airflow with CeleryExecutor, Redis, PostgreSQL and workers on two machines: what ends, stops and differs there."""

import pytest

from support.airflow_rows import (
    JOB,
    KINDS,
    SUCCEEDED,
    Yarn,
    all_at_once,
    row,
)
from support.airflow_site import ROWS
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]
WORKERS = {"wk1", "wk2"}


@pytest.fixture(scope="module")
def site(minicluster, tmp_path_factory):
    """Return a running `CeleryAirflowSite` with the DAGs of the rows; the minicluster is its connection tf_yarn_default."""
    import shutil

    from support.celery_site import CeleryAirflowSite
    from support.packages import product_wheel

    folder = tmp_path_factory.mktemp("celery")
    (folder / "dags").mkdir()
    for file in (ROWS, ROWS.with_name("celery_rows.py")):
        shutil.copy(file, folder / "dags")
    with CeleryAirflowSite(folder, folder / "dags", product_wheel(folder / "source")) as site:
        site.connect("tf_yarn_default", minicluster.resourcemanager_url)
        site.call("POST", "connections", connection_id="vault", conn_type="generic", password="secret")
        site.await_worker()
        yield site


@pytest.fixture(scope="module")
def yarn(minicluster):
    return Yarn(minicluster)


@pytest.fixture(scope="module")
def under_way(request, site, yarn):
    with all_at_once(request, site, yarn) as rows:
        yield rows


@row(*KINDS)
def test_task_behind_a_training_has_its_report(site, yarn, kind):
    run = site.trigger(f"pipeline_{kind}", command="""echo '{"loss": 0.5}' > $YTF_RESULT_FILE""")
    run.until_state("success", seconds=JOB)
    [application] = yarn.settled(run, SUCCEEDED)
    until(lambda: run.instance("read")["state"] == "success", 60, 0.5)
    seen = run.xcom(task="read")
    assert (seen["host"] in WORKERS, seen["reason"], seen["metrics"]) == (True, "SUCCEEDED", {"loss": 0.5})
    assert run.instance()["hostname"] in WORKERS
    assert application in run.log(), "the worker of a machine, or the triggerer, serves its log"

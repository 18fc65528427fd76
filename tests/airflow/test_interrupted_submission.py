"""A worker dies, or gets SIGTERM, in every gap of a submission; the retry makes good, and one application trains.

Proxies in front of the ResourceManager and the NameNode hold the worker in the gap.
"""

import re
import signal
import time
from datetime import datetime

import psutil
import pytest

from support.airflow_rows import JOB, KILLED, KINDS, SUCCEEDED, Yarn, all_at_once, kill_both, row, until_there
from support.waiting import until
from support.wire_proxy import fronting, stopping_at

#: Seconds that Airflow leaves a worker.
GIVEN_UP = 5
#: Each gap with one signal, and both kinds of task: what a worker does up to the gap does not depend on the kind.
#: SIGKILL in each gap: tests/launch/test_ensure_cluster.py.
KILLED_IN = ["reserved-deferred", "staging-sync", "marked-deferred"]
TERMINATED_IN = ["claimed-deferred", "submitted-sync"]
WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)")

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def under_way(request, airflow_site, minicluster):
    with all_at_once(request, airflow_site, Yarn(minicluster)) as rows:
        yield rows


def caught_in(gap, dag, site, yarn, end, command="sleep 1", attached=lambda run: None):
    """Run a DAG whose worker ends in a gap. Return the run, and the applications that YARN had by then."""
    with stopping_at(yarn.hadoop, gap) as (resourcemanager, holder):
        site.connect(dag, resourcemanager.url)
        run = site.trigger(dag, command=command)
        assert holder.held.wait(JOB), run.log()
        worker, supervisor = run.worker()
        before = yarn.ids(run)
        end(worker, supervisor)
        holder.freed.set()
        psutil.wait_procs([worker], 30)
        attached(run)
        instance = run.until_state("success", "failed", seconds=2 * JOB)
        assert (instance["state"], instance["try_number"]) == ("success", 2), run.log()
    return run, before


@row(*KILLED_IN)
def test_killed_in_a_gap(site, yarn, kind):
    """SIGKILL to worker and supervisor: what was submitted is attached to, what was claimed is submitted."""
    gap, kind = kind.split("-")
    run, before = caught_in(gap, f"kill_{gap}_{kind}", site, yarn, kill_both)
    assert len(before) == (gap == "marked")
    application = yarn.settled(run, SUCCEEDED)
    assert before in ([], application)


@row(*TERMINATED_IN)
def test_terminated_in_a_gap(site, yarn, kind):
    """SIGTERM to the supervisor: the worker still submits, and the retry attaches.

    The retry defers at once. Airflow fails a task whose trigger fires before the scheduler has seen the worker's exit
    (apache/airflow#72716), so the training goes on until then.
    """
    gap, kind = kind.split("-")
    over = site.home / f"term-{gap}-over"

    def attached(run):
        until(lambda: (run.peek("try_number"), run.peek("state")) == (2, {"sync": "running"}.get(kind, kind)), JOB, 0.5)
        until(lambda: kind == "sync" or run.is_deferral_seen(), JOB, 0.5)
        over.touch()

    run, before = caught_in(
        gap,
        f"term_{gap}_{kind}",
        site,
        yarn,
        lambda worker, supervisor: supervisor.send_signal(signal.SIGTERM),
        until_there(over),
        attached,
    )
    application = yarn.settled(run, SUCCEEDED)
    assert before in ([], application)


@row("deferred")
def test_marked_failed_while_it_submits(site, yarn, kind):
    """Before the deferral there is no trigger to kill: the worker asks for the state of its task, as one that waits does."""
    with stopping_at(yarn.hadoop, "submitted") as (resourcemanager, holder):
        site.connect(f"held_{kind}", resourcemanager.url)
        run = site.trigger(f"held_{kind}", command="sleep 600")
        assert holder.held.wait(JOB), run.log()
        run.mark("failed")
        holder.freed.set()
        yarn.settled(run, KILLED)
    assert run.task_state() == "failed"


@row(*KINDS)
def test_a_resourcemanager_hangs_while_the_task_is_killed(site, yarn, kind):
    """The kill gives up in less than the five seconds that Airflow leaves a worker, and says what is left."""
    with fronting(yarn.hadoop) as (resourcemanager, _):
        site.connect(f"hung_{kind}", resourcemanager.url)
        run = site.trigger(f"hung_{kind}", command="sleep 600")
        application = yarn.training(run)
        if kind == "deferred":  # Airflow kills no trigger that the triggerer has not begun: another task cleans up then
            until(run.is_deferral_seen, JOB, 0.5)
            asked = len(resourcemanager.requests)
            until(lambda: len(resourcemanager.requests) > asked, JOB, 0.5)
        resourcemanager.hangs = True
        run.mark("failed")
        # Airflow has closed the log of a trigger by the time at which its on_kill gives up.
        log = {"sync": site.home / "logs" / run.log_file(), "deferred": site.home / "triggerer.log"}[kind]

        def written(words):
            """Wait for a line of the log; give its time."""
            line = until(
                lambda: next((line for line in log.read_text(errors="replace").splitlines() if words in line), None),
                60,
                0.1,
            )
            return datetime.fromisoformat(WRITTEN.search(line)[0]).timestamp()

        said = written(f"{application} could not be killed")
        if kind == "sync":  # with the question for the task's state, from the signal on
            began = written("Terminating process")
        else:  # the submission may have killed an abandoned application by the same address
            began = (
                time.time()
                - time.monotonic()
                + next(
                    when
                    for when, method, path, _ in resourcemanager.requests
                    if method == "PUT" and path.endswith(f"/{application}/state")
                )
            )
        assert 0 < said - began < GIVEN_UP
        assert run.task_state() == "failed"
    yarn.launcher.kill(application, "nobody else does")  # a stranger's kill leaves Skein 250 ms to delete the directory
    yarn.settled(run, KILLED)

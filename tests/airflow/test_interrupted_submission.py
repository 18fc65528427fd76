"""A worker dies, or is told to end, in every gap of a submission; the retry makes good, and one application trains.

Proxies in front of the ResourceManager and the NameNode hold the worker in the gap.
"""

import re
import signal
import time
from datetime import datetime

import psutil
import pytest

from support.airflow_rows import JOB, KILLED, KINDS, SUCCEEDED, Yarn, all_at_once, kill_both, row
from support.waiting import until
from support.wire_proxy import GAPS, fronting, stopping_at

#: Seconds that Airflow leaves a worker.
GIVEN_UP = 5
#: Each gap with both signals, both kinds of task with each: what a worker does up to the gap does not depend on the kind.
KILLED_IN = [f"{gap}-{KINDS[number % 2]}" for number, gap in enumerate(GAPS)]
TERMINATED_IN = [f"{gap}-{KINDS[(number + 1) % 2]}" for number, gap in enumerate(GAPS)]
WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)")

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def under_way(request, airflow_site, minicluster):
    with all_at_once(request, airflow_site, Yarn(minicluster)) as rows:
        yield rows


def caught_in(gap, dag, site, yarn, end):
    """Run a DAG whose worker ends in a gap. Return the run, and the applications that YARN had by then."""
    with stopping_at(yarn.hadoop, gap) as (resourcemanager, holder):
        site.connect(dag, resourcemanager.url)
        run = site.trigger(dag, command="sleep 1")
        assert holder.held.wait(JOB), run.log()
        worker, supervisor = run.worker()
        before = yarn.ids(run)
        end(worker, supervisor)
        holder.freed.set()
        psutil.wait_procs([worker], 30)
        instance = run.until_state("success", "failed", seconds=2 * JOB)
        assert (instance["state"], instance["try_number"]) == ("success", 2), run.log()
    return run, before


@row(*KILLED_IN)
def test_killed_in_a_gap(site, yarn, kind):
    """SIGKILL to worker and supervisor: what was submitted is attached to, what was claimed is submitted."""
    gap, kind = kind.split("-")
    run, before = caught_in(gap, f"kill_{gap}_{kind}", site, yarn, kill_both)
    assert len(before) == (gap in ("submitted", "marked"))
    application = yarn.settled(run, SUCCEEDED)
    assert before in ([], application)


@row(*TERMINATED_IN)
def test_terminated_in_a_gap(site, yarn, kind):
    """SIGTERM to the supervisor: what was submitted is killed, and the retry trains anew."""
    gap, kind = kind.split("-")
    run, before = caught_in(gap, f"term_{gap}_{kind}", site, yarn,
                            lambda worker, supervisor: supervisor.send_signal(signal.SIGTERM))
    yarn.settled(run, *[KILLED] * len(before), SUCCEEDED)


@row(*KINDS)
def test_marked_failed_while_it_submits(site, yarn, kind):
    """Before the deferral there is no trigger to kill: the worker asks for the state of its task."""
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
        resourcemanager.hangs = True
        run.mark("failed")
        # Airflow has closed the log of a trigger by the time at which its on_kill gives up.
        log = {"sync": site.home / "logs" / run.log_file(), "deferred": site.home / "triggerer.log"}[kind]
        line = until(lambda: next((line for line in log.read_text(errors="replace").splitlines()
                                   if f"{application} could not be killed" in line), None), 60, 0.1)
        began = next(when for when, method, path, _ in resourcemanager.requests
                     if method == "PUT" and path.endswith("/state"))
        said = datetime.fromisoformat(WRITTEN.search(line)[0]).timestamp() - (time.time() - time.monotonic())
        assert 0 < said - began < GIVEN_UP
        assert run.task_state() == "failed"
    yarn.launcher.kill(application, "nobody else does")  # a stranger's kill leaves Skein 250 ms to delete the directory
    yarn.settled(run, KILLED)

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
from support.wire_proxy import fronting, hold_in

#: Seconds that Airflow leaves a worker.
GIVEN_UP = 5
#: Where the worker of each try but the last ends, and how, by the name of the row and its DAG. Both kinds of task: what a
#: worker does up to the gap does not depend on the kind. SIGKILL in each gap: tests/launch/test_ensure_cluster.py.
ENDS = {
    "gaps_deferred": {"reserved": "killed", "claimed": "terminated"},
    "gaps_sync": {"staging": "killed", "submitted": "terminated"},
    "gap_deferred": {"marked": "killed"},
}
WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)")

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def under_way(request, airflow_site, minicluster):
    with all_at_once(request, airflow_site, Yarn(minicluster)) as rows:
        yield rows


@row(*ENDS)
def test_worker_ends_in_gaps_of_its_submission(site, yarn, kind):
    """SIGKILL to worker and supervisor: what was submitted is attached to, what was claimed is submitted.

    SIGTERM to the supervisor: the worker still submits, and the retry attaches. A retry may defer at once, so the training
    goes on until the scheduler has seen the worker's exit (apache/airflow#72716).
    """
    ends, over = ENDS[kind], site.home / f"{kind}-over"
    last, state = len(ends) + 1, "running" if kind.endswith("sync") else "deferred"
    run, known = None, []
    with fronting(yarn.hadoop) as proxies:
        site.connect(kind, proxies[0].url)
        for gap, end in ends.items():
            holder = hold_in(gap, *proxies)
            run = run or site.trigger(kind, command=until_there(over))
            assert holder.held.wait(JOB), run.log()
            worker, supervisor = run.worker()
            known = yarn.ids(run)
            assert len(known) == (gap in ("submitted", "marked"))
            if end == "killed":
                kill_both(worker, supervisor)
            else:
                supervisor.send_signal(signal.SIGTERM)
            holder.freed.set()
            psutil.wait_procs([worker], 30)
        until(lambda: (run.peek("try_number"), run.peek("state")) == (last, state), 2 * JOB, 0.5)
        until(lambda: state == "running" or run.is_deferral_seen(last), JOB, 0.5)
        over.touch()
        instance = run.until_state("success", "failed", seconds=2 * JOB)
        assert (instance["state"], instance["try_number"]) == ("success", last), run.log()
    application = yarn.settled(run, SUCCEEDED)
    assert known in ([], application)


@row("deferred")
def test_marked_failed_while_it_submits(site, yarn, kind):
    """Before the deferral there is no trigger to kill: the worker asks for the state of its task, as one that waits does."""
    with fronting(yarn.hadoop) as proxies:
        site.connect(f"held_{kind}", proxies[0].url)
        holder = hold_in("submitted", *proxies)
        run = site.trigger(f"held_{kind}", command="sleep 600", queue="full")
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
        run = site.trigger(f"hung_{kind}", command="sleep 600", queue="full")
        application = yarn.waiting(run)
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

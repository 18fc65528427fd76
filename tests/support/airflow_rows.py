"""What the rows share: YARN's side of a DAG run, and tests that run side by side.

A row is a test function with the parameters ``site, yarn, kind``. All rows of a file that were
collected begin together, a few at a time; each test then waits for its own row. A row may continue another
one: it gets what that row returns, such as a DAG run whose application still trains.
"""

import math
import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from support.airflow_site import environments
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.launcher import Launcher

LIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
KINDS = ("deferred", "sync")
SUCCEEDED, FAILED, KILLED = ("FINISHED", "SUCCEEDED"), ("FINISHED", "FAILED"), ("KILLED", "KILLED")
#: What Airflow's serialiser, msgpack and databases refuse, each of which has ended a triggerer or failed a task.
HOSTILE = {"accuracy": 0.97, "seed": 2**100, "in\0key": 1, "nul": "a\0b", "half": "\ud800", "\udcff.csv": 1, "nan": math.nan,
           "__classname__": "builtins.int", "__version__": 1, "__id__": 1, "__type": "dict", "__var": {"a": [[[1]]]}}  # fmt: skip
#: Seconds for a job of one task on a busy machine, from the trigger to the end.
JOB = 300
#: The password of the connection ``vault``, in the environment of the rows' programs.
SECRET = "geheim-98c1f2"
#: Rows at a time.
AT_ONCE = 4


class Yarn:
    """The applications of DAG runs, as the ResourceManager shows them, and their processes."""

    def __init__(self, hadoop):
        self.hadoop = hadoop
        self.client = httpx.Client(
            base_url=f"{hadoop.resourcemanager_url}/ws/v1/cluster",
            timeout=30,
            trust_env=False,
            headers={"Accept": "application/json"},
        )
        self.launcher = Launcher(discover(hadoop.resourcemanager_url, environ={}))

    def applications(self, run):
        """Return all applications with the run's tag, the oldest first."""
        found = self.client.get("/apps", params={"applicationTags": run.id}).json()["apps"] or {}
        return sorted(found.get("app", ()), key=lambda item: int(item["id"].rsplit("_", 1)[1]))

    def ids(self, run):
        return [item["id"] for item in self.applications(run)]

    def live(self, run):
        return [item["id"] for item in self.applications(run) if item["state"] in LIVE]

    def report(self, application_id):
        return self.client.get(f"/apps/{application_id}").json()["app"]

    def ending(self, application_id):
        """Return state and final status of an application, such as `KILLED`."""
        report = self.report(application_id)
        return report["state"], report["finalStatus"]

    def kill(self, application_id):
        """Kill as a stranger does, without a word of ours."""
        answer = self.client.put(
            f"/apps/{application_id}/state",
            json={"state": "KILLED"},
            params={"user.name": self.report(application_id)["user"]},
        )
        assert answer.is_success, answer.text

    def programs(self, application_id):
        """Return the pids of the user's programs of an application, by their environment."""
        wanted = f"YTF_APPLICATION_ID={application_id}".encode()
        return [pid for pid, variables in environments() if wanted in variables and pid != os.getpid()]

    def processes(self, application_id):
        """Return the pids of all that YARN has started for an application: master, coordinator and agents too."""
        name = application_id.encode()
        return [
            pid
            for pid, variables in environments()
            if pid != os.getpid() and any(name in variable for variable in variables)
        ]

    def directories(self):
        """Return the names of the applications' directories in HDFS."""
        files = self.launcher.session.staging(self.launcher.cluster.user).filesystem
        return [status.name for status in files.list(self.launcher.cluster.staging)]

    def training(self, run, seconds=JOB):
        """Wait until a program of the run trains; give its application."""

        def runs():
            run.site.check_running()
            return next((item for item in self.live(run) if self.programs(item)), None)

        return until(runs, seconds, 0.5)

    def waiting(self, run):
        """Wait until a worker or the triggerer waits for an application in the queue ``full``; give the application.

        It costs no JVM, and is killed as one that trains.
        """
        until(lambda: run.is_logged("ACCEPTED in queue full"), JOB, 0.2)
        [application] = self.live(run)
        return application

    def gone(self, run, seconds=60):
        """Wait until the run's applications have ended, and have left no process and no directory. Return them."""
        try:
            until(lambda: not self.live(run), seconds, 0.5)
        except AssertionError:
            raise AssertionError(f"{run} left alive: {self.live(run)}\n{run.log()[-4000:]}") from None
        ended = self.applications(run)
        ids = [item["id"] for item in ended]
        until(lambda: not any(map(self.processes, ids)), 60, 0.5)
        until(lambda: not {*ids} & {*self.directories()}, 60, 0.5)
        return ended

    def settled(self, run, *endings, seconds=60):
        """Assert that the run's applications have ended like this, in this order, and left nothing. Return their ids."""
        ended = self.gone(run, seconds)
        assert [(item["state"], item["finalStatus"]) for item in ended] == list(endings), (
            [(item["id"], item["state"], item["diagnostics"][:500]) for item in ended],
            run.log()[-4000:],
        )
        return [item["id"] for item in ended]


def in_turn(path, *commands):
    """Return a command that does one thing after the other, one at each start, and the last one ever after."""
    *others, last = commands
    cases = "".join(f"{number}) {command};; " for number, command in enumerate(others))
    return f"start=$(cat {path} 2>/dev/null || echo 0); echo $((start + 1)) > {path}; case $start in {cases}*) {last};; esac"


def until_there(path):
    """Return a command that trains until a file is there."""
    return f"until test -e {path}; do sleep 1; done"


def kill_both(worker, supervisor):
    """Kill a task's worker and its supervisor as the loss of their machine does."""
    supervisor.kill()
    worker.kill()


def row(*kinds, continues=None):
    """Make a test of a row that runs beside the others, once for each kind of task.

    Parameters
    ----------
    continues : test, optional
        The row that is played before this one, also if its test is not selected. No other row continues it.
    """

    def decorate(body):
        @pytest.mark.parametrize("kind", kinds)
        def test(under_way, kind):
            under_way[body.__name__, kind].result()

        test.__name__, test.__doc__, test.body, test.continues = body.__name__, body.__doc__, body, continues
        return test

    return decorate


@contextmanager
def all_at_once(request, site, yarn):
    """Begin all selected rows of the file. Yield the future of each row by name and kind."""
    chains = {}
    for item in request.session.items:
        if item.module is request.module and hasattr(item.function, "body"):
            chain, kind = chain_of(item.function), item.callspec.params["kind"]
            chains[chain[0], kind] = max(chains.get((chain[0], kind), []), chain, key=len)
    rows = {(test.__name__, kind): Future() for (_, kind), chain in chains.items() for test in chain}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for (_, kind), chain in chains.items():
            pool.submit(play, [(test, rows[test.__name__, kind]) for test in chain], site, yarn, kind)
        yield rows


def chain_of(test):
    """Return a row and those that it continues, in the order in which they are played."""
    return [*(chain_of(test.continues) if test.continues else ()), test]


def play(chain, site, yarn, kind):
    """Play rows that continue each other. If one fails, those behind it fail too, and name it."""
    returned, failed = (), None
    for test, future in chain:
        if failed:
            future.set_exception(AssertionError(f"it continues {failed}, which has failed"))
            continue
        try:
            result = test.body(site, yarn, kind, *returned)
        except BaseException as error:
            failed = test.__name__
            future.set_exception(error)
        else:
            returned = (result,)
            future.set_result(result)

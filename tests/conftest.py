"""What several test files share, such as a real Hadoop, and which worker runs which files, in which order."""

import collections
import gc
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

import support.browser
from support.fake_yarn import FakeYarn, serving
from support.forks import forking
from support.own_ports import use_own_ports
from support.place import Place
from support.run_times import RunTimes
from support.secure import shared_cluster
from support.shared import (
    drives_airflow,
    leave_unused,
    may_use_minicluster,
    may_use_secure_cluster,
    read_test,
    share,
)
from support.waiting import PATIENCE

REAPER, LEFT_OUT = pytest.StashKey(), pytest.StashKey()
FOLDER = Path(__file__).parent
#: Tests on a minicluster that wait: from so many on another worker starts one, instead of ending.
WORTH_A_CLUSTER = 25


def pytest_configure(config):
    use_own_ports()
    # Collecting leaves many objects and no garbage, through which each later search would go, in every worker.
    gc.disable()
    # Undo what a shell does to its background jobs: the programs under test have to see Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A busy machine is no fault of a test; CI plays the same examples in each run. `./dev test fast` plays a tenth of them.
hypothesis.settings.register_profile(
    "all",
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
hypothesis.settings.register_profile("fast", hypothesis.settings.get_profile("all"), max_examples=10)
hypothesis.settings.load_profile("all")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one worker drive Airflow in a run of everything: a second scheduler would mostly be idle, at a cost.

    One worker, too, takes the tests of the secured cluster, as some of them kill its daemons, and one all doors, on one
    cluster. Half of the workers take the tests of the minicluster, each on its own: a cluster takes half a minute of CPU
    to start, and some percent of a core. The last worker begins with the shortest files: they need no cluster, and use
    the cores while the others wait for theirs.
    """
    if config.getoption("dist") != "loadfile":
        return None
    # xdist would begin with the files of most tests, and end with one test of some minutes beside an idle worker.
    config.option.loadscopereorder = False
    from xdist.scheduler import LoadFileScheduling

    config.pluginmanager.register(RunTimes())
    everything = config.args_source is config.ArgsSource.TESTPATHS
    doors = re.match(r"door\b", config.getoption("markexpr"))

    class ByPlace(LoadFileScheduling):
        def __init__(self, config, log):
            super().__init__(config, log)
            self.hosts = set()  # the workers that run a minicluster

        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            path = FOLDER.parent / file
            if doors and "mark.door" in read_test(path):
                return "doors"
            if file.startswith("tests/secure/"):
                return "secure"
            if re.search(r"\b(nodes_of|tree_of|imported_modules)\b", read_test(path)):
                return "sources"  # one worker parses the package's modules
            return "airflow" if everything and drives_airflow(path) else file

        def _assign_work_unit(self, node):
            on_minicluster = {scope: self._needs_minicluster(scope) for scope in self.workqueue}
            self.hosts &= set(self.nodes)
            short = everything and node.gateway.id == f"gw{self.numnodes - 1}"
            host = node in self.hosts or (not short and len(self.hosts) < max(1, self.numnodes // 2))
            wanted = [scope for scope, needs in on_minicluster.items() if needs == host][:: -1 if short else 1]
            # A worker without files of its kind takes the others, but starts no cluster for the last of a long run.
            left = sum(len(self.workqueue[scope]) for scope, needs in on_minicluster.items() if needs)
            if host or not everything or (not wanted and left >= WORTH_A_CLUSTER):
                wanted += [scope for scope, needs in on_minicluster.items() if needs != host]
            if not wanted:
                node.shutdown()
                return
            if on_minicluster[wanted[0]]:
                self.hosts.add(node)
            self.workqueue.move_to_end(wanted[0], last=False)
            super()._assign_work_unit(node)

        def _needs_minicluster(self, scope):
            return scope in ("doors", "airflow") or (
                scope not in ("secure", "sources") and may_use_minicluster(FOLDER.parent / scope)
            )

    return ByPlace(config, log)


def pytest_ignore_collect(collection_path, config):
    """Leave out files of which ``-m "[A or] not (B or C)"`` leaves out each test: all workers would import them."""
    chosen = re.fullmatch(r"(?:(\w+) or )?not \(([\w ]+)\)", config.getoption("markexpr"))
    named = config.args_source is not config.ArgsSource.TESTPATHS
    if chosen is None or named or not collection_path.match("test_*.py"):
        return None
    text = read_test(collection_path)
    marks = re.findall(r"mark\.(\w+)", "".join(re.findall(r"^pytestmark = .*", text, re.MULTILINE)))
    if set(chosen[2].split(" or ")) & set(marks) and f"mark.{chosen[1]}" not in text:
        config.stash.setdefault(LEFT_OUT, collections.Counter())[f"{folder_of(collection_path)} (files)"] += 1
        return True
    return None


def folder_of(path):
    """Return the folder, or the file, of ``tests`` that a path is in."""
    return str(path)[len(str(FOLDER)) + 1 :].partition(os.sep)[0]


def pytest_itemcollected(item):
    """Mark what opens a browser: only `./dev test all` installs one. Scale each limit, as `until` does its deadlines."""
    if "browsing" in item.fixturenames or "browser" in item.fixturenames:
        item.add_marker(pytest.mark.matrix)
    if PATIENCE != 1:
        limit = item.get_closest_marker("timeout") or pytest.mark.timeout(item.config.getoption("timeout"))
        if limit.args[0]:
            item.add_marker(pytest.mark.timeout(limit.args[0] * PATIENCE, **limit.kwargs), append=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Begin with the files that take longest; workers of xdist take them in this order."""
    seconds = collections.Counter()
    takes = {"cluster": 10, "matrix": 10, "slow": 3}
    default = config.getoption("timeout") * PATIENCE
    for item in items:
        # Of marks of one name, the closest is the last here.
        marks = {mark.name: mark for mark in reversed([*item.iter_markers()]) if mark.args[:1] != (default,)}
        # About the seconds of a test, by its markers; a limit of its own is some twenty times as long.
        limit = marks["timeout"].args[0] / PATIENCE / 20 if "timeout" in marks else 0
        seconds[item.path] += max(0.05, limit, *(takes[name] for name in takes if name in marks))
    # Airflow's first test uses the secured cluster too, which ends behind the last of them.
    places = drives_airflow, may_use_secure_cluster, may_use_minicluster
    rank = {path: (*(not uses(path) for uses in places), -seconds[path]) for path in seconds}
    items.sort(key=lambda item: rank[item.path])


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000)  # the tests that read all sources would search their syntax trees again and again
    gc.enable()


def pytest_deselected(items):
    """Count what ``-m`` leaves out, by the folder of the tests."""
    for item in items:
        item.config.stash.setdefault(LEFT_OUT, collections.Counter())[folder_of(item.path)] += 1


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    # Each worker has collected all.
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = left_out


def pytest_terminal_summary(terminalreporter, config):
    """Say what a run with ``-m`` or ``--ignore`` has left out, and how to run it."""
    left_out = config.stash.get(LEFT_OUT, {})
    ignored = [os.path.relpath(path, FOLDER) for path in config.getoption("ignore") or ()]
    if config.getoption("markexpr") and (left_out or ignored):
        folders = [f"{folder} {number}" for folder, number in sorted(left_out.items())]
        folders += [f"{folder} all" for folder in ignored]
        terminalreporter.section("left out")
        terminalreporter.write_line(
            f"tests that are not ({config.getoption('markexpr')}), by folder: {', '.join(folders)}"
        )
        terminalreporter.write_line("run those of a folder: ./dev test FOLDER; all: ./dev test all")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """Let a process of its own see to it that nothing is left of this run, also of one that is killed."""
    if hasattr(session.config, "workerinput"):
        return
    words = [
        sys.executable,
        Path(__file__).parent / "support" / "reaper.py",
        session.config._tmp_path_factory.getbasetemp(),
    ]
    session.config.stash[REAPER] = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def pytest_unconfigure(config):
    reaper = config.stash.get(REAPER, None)
    if reaper is not None:
        reaper.communicate()


@pytest.fixture(scope="module")
def browser():
    """Yield one Chromium for all calls of `browsing` in a file."""
    with support.browser.chromium() as running:
        yield running


@pytest.fixture(scope="session")
def fork(tmp_path_factory):
    """Return the function of `support.forks.forking`."""
    with forking(tmp_path_factory.mktemp("forks")) as run:
        yield run


@pytest.fixture
def browsing():
    """Return `support.browser.browsing`, which opens a page of a browser."""
    return support.browser.browsing


def pytest_runtest_setup():
    """Undo what a command that ran in this process has set: the programs hide their own log below WARNING."""
    for name in ("tf_yarn_ops", "tf_yarn_ops.hadoop", "tf_yarn_ops.doctor.probe"):
        if logging.getLogger(name).level:  # to set a level takes a while: it clears what all loggers remember
            logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def minicluster(request, tmp_path_factory):
    """Return a running `HadoopCluster` with HDFS; the files of a worker share it.

    Applications of its queue ``full`` wait, and start no JVM: for tests of what becomes of applications that need not train.
    """
    from support.hadoop import HadoopCluster

    scheduler = "yarn.scheduler.capacity.root"
    properties = {f"{scheduler}.queues": "default,full,low", f"{scheduler}.full.maximum-applications": "100",
                  **dict.fromkeys((f"{scheduler}.full.capacity", f"{scheduler}.full.maximum-capacity"), "0")}  # fmt: skip

    def start():
        return HadoopCluster(tmp_path_factory.mktemp("minicluster"), properties=properties)

    return share(request.config, may_use_minicluster, start)


@pytest.fixture(scope="module")
def secure_cluster(request, tmp_path_factory, worker_id):
    """Return the running secured `HadoopCluster` with pairs; all workers of this run share it."""
    base = tmp_path_factory.getbasetemp()
    return share(
        request.config, may_use_secure_cluster, lambda: shared_cluster(base if worker_id == "master" else base.parent)
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Leave clusters, and Airflow, behind this worker's last test file that may use them."""
    try:
        return (yield)
    finally:
        leave_unused(item.config, item.path, nextitem and nextitem.path)


@pytest.fixture(scope="module")
def played(request, rig):
    """Play the rows of the module's ``MATRIX`` on its `rig`; return their outcomes."""
    from support.faults import wanted

    with request.module.MATRIX.playing(rig, wanted(request)) as played:
        yield played


@pytest.fixture
def yarn():
    """Return a `FakeYarn` that is served at its ``url``."""
    fake = FakeYarn()
    with serving(fake):
        yield fake


@pytest.fixture
def place(yarn, tmp_path):
    """Return a fake YARN with a file system for launchers."""
    return Place(yarn, tmp_path / "files")


@pytest.fixture
def cluster(yarn, tmp_path):
    """Return what is known of the fake ResourceManager's cluster; its file system is a folder of the test."""
    from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts

    return Cluster(
        (yarn.url,),
        "ann",
        "ann",
        StorageFacts("viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=str(tmp_path)),
    )

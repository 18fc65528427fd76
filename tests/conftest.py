"""What several test files share: one real Hadoop for the whole session, and one Airflow."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.fake_yarn import FakeYarn, serving

REAPER = pytest.StashKey()


def pytest_configure(config):
    """Undo what a shell does to its background jobs: the programs under test have to see Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one worker drive Airflow in a run of everything: a second scheduler would mostly be idle, at a cost."""
    if config.getoption("dist") != "loadfile" or config.args_source is not config.ArgsSource.TESTPATHS:
        return None
    from xdist.scheduler import LoadFileScheduling

    folder = Path(__file__).parent
    users = {f"tests/{file.relative_to(folder).as_posix()}" for file in folder.rglob("test_*.py")
             if "airflow_site" in file.read_text()}

    class OneAirflow(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "airflow" if file in users else file

    return OneAirflow(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """Let a process of its own see to it that nothing is left of this run, also of one that is killed."""
    if hasattr(session.config, "workerinput"):
        return
    words = [sys.executable, Path(__file__).parent / "support" / "reaper.py", session.config._tmp_path_factory.getbasetemp()]
    session.config.stash[REAPER] = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def pytest_unconfigure(config):
    reaper = config.stash.get(REAPER, None)
    if reaper is not None:
        reaper.communicate()


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory):
    """Give a running `MiniCluster` with HDFS, ended with the session."""
    from tf_yarn_ops.minicluster import MiniCluster

    with MiniCluster(tmp_path_factory.mktemp("minicluster")) as cluster:
        yield cluster


@pytest.fixture
def yarn():
    """Give a `FakeYarn` that is served at its ``url``."""
    fake = FakeYarn()
    with serving(fake) as url:
        fake.url = url
        yield fake


@pytest.fixture
def cluster(yarn, tmp_path):
    """Give what is known of the fake ResourceManager's cluster; its file system is a folder of the test."""
    from tf_yarn_ops.hadoop.cluster import Cluster

    return Cluster((yarn.url,), "ann", "ann", "viewfs://mini", "viewfs://mini", "/user/{user}/.skein",
                   local_root=str(tmp_path))

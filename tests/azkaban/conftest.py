"""Fixtures of the job type: jobs of the type as processes, and the class path of the real Azkaban."""

import pytest

from support.azkaban_process import Job
from support.azkaban_site import compile_server
from support.forks import starting
from tf_yarn_ops.azkaban import limited_ending as ending_module


@pytest.fixture(scope="session")
def classpath():
    """Return the class path of the real Azkaban's server, compiled once."""
    return compile_server()


@pytest.fixture(scope="session")
def launchers():
    """Return the function of `support.forks.starting`."""
    with starting() as fork:
        yield fork


@pytest.fixture
def azkaban(yarn, tmp_path, launchers):
    """Return a function that makes a job; end the processes that are left."""
    root = tmp_path / "files"
    root.mkdir()
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{root}",
                 "yarn.application.classpath": "/opt/hadoop/*"}  # fmt: skip
    jobs = []

    def make(properties=None, folder="project"):
        jobs.append(Job(tmp_path / folder, yarn.url, properties or {}, launchers))
        return jobs[-1]

    yield make
    for job in jobs:
        if job.process and job.process.poll() is None:
            job.process.kill()
            job.process.wait()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(ending_module, "ENDING_SECONDS", 0.2)
    monkeypatch.setattr(ending_module, "LAST_CALL", 0.2)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "mnist.py").write_text("")
    (tmp_path / "src" / "models" / "cnn.py").write_text("")
    (tmp_path / "src" / ".git").mkdir()
    return tmp_path

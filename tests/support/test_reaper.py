"""Nothing is left of a test run that is killed: its processes are known by its folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import until

#: Ignores a friendly word.
STUBBORN = """\
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
time.sleep(600)
"""
#: A run that is killed.
RUN = """\
import os, signal, subprocess, sys
reaper = subprocess.Popen([sys.executable, sys.argv[1], sys.argv[2]], stdin=subprocess.PIPE)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def sleeper():
    started = []

    def start(**options):
        started.append(subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, **options))
        started[-1].stdout.readline()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_what_a_killed_run_leaves_is_ended_and_nothing_else(tmp_path, sleeper):
    mine, other = tmp_path / "run-1", tmp_path / "run-10"
    for folder in (mine, other):
        (folder / "deep").mkdir(parents=True)
    below, named, stranger = (sleeper(cwd=mine / "deep"), sleeper(env={"LOG": f"{mine}/log"}), sleeper(cwd=other))
    reaper = Path(__file__).parent / "reaper.py"
    said = subprocess.run([sys.executable, "-c", RUN, reaper, mine], capture_output=True, text=True, timeout=60)
    until(lambda: below.poll() is not None and named.poll() is not None)
    assert stranger.poll() is None
    assert {line.split()[6] for line in said.stdout.splitlines()} == {str(below.pid), str(named.pid)}

"""The process of the coordinator: its watchdog, and its end with the application master."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.appmaster import AppMaster
from support.runtime_jobs import FOREVER, job
from support.waiting import until


def test_a_killed_coordinator_ends_its_watchdog_with_the_signals_code(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False, workers=1)) as am:
        am.log_says("Published the cluster spec")
        child = subprocess.run(["pgrep", "-P", str(am.coordinator.pid)], capture_output=True, text=True)
        os.kill(int(child.stdout.split()[0]), signal.SIGKILL)
        assert am.coordinator.wait(60) == 137


#: The coordinator's two processes: the outer watches, the inner beats once and then hangs.
FREEZE = """\
import os, time
from tf_yarn_ops.runtime.master import driver
driver.WATCHDOG_SECONDS = 1
os.write(driver.fork_watchdog(), b".")
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_coordinator_that_hangs_is_killed_by_its_watchdog():
    ran = subprocess.run([sys.executable, "-c", FREEZE], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (137, "tf_yarn_ops: the coordinator was silent for 1 s, killing it\n")
    assert not Path(f"/proc/{ran.stdout.strip()}").exists()


#: An application master that dies; its coordinator goes on beating.
ORPHAN = """\
import os, subprocess, sys, time
if sys.argv[1] == "master":
    child = subprocess.Popen([sys.executable, sys.argv[0], "coordinator"], stdout=subprocess.PIPE)
    print(child.stdout.readline().decode(), flush=True)
    sys.exit()
from tf_yarn_ops.runtime.master import driver
pulse = driver.fork_watchdog()
print(os.getppid(), os.getpid(), flush=True)
while True:
    os.write(pulse, b".")
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_coordinator_does_not_outlive_its_application_master(tmp_path):
    """Also where no NodeManager is there to end it."""
    program = tmp_path / "orphan.py"
    program.write_text(ORPHAN)
    ran = subprocess.run([sys.executable, program, "master"], capture_output=True, text=True, timeout=60)
    assert "the application master is gone" in ran.stderr
    for pid in ran.stdout.split():
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())


#: A thread that hangs, as in a call to a hard mount of NFS that is away.
HANGS = """\
import asyncio, os, threading
from tf_yarn_ops.runtime.master import driver
async def main():
    asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0)
driver.run_loop(main())
os._exit(7)
"""


@pytest.mark.slow
def test_thread_that_hangs_does_not_keep_the_coordinator():
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=60).returncode == 7

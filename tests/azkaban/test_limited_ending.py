"""The end of Azkaban's launcher where something hangs: the main thread in C, and the log's pipe."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from support.azkaban_process import ID, SECOND, USER, finish, submitted
from support.fake_yarn import application
from support.waiting import until
from tf_yarn_ops.azkaban.console import Console
from tf_yarn_ops.azkaban.jobtype import JobRun
from tf_yarn_ops.azkaban.limited_ending import LimitedEnding
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.terminal.signals import Interruption

pytestmark = pytest.mark.slow

#: The main thread waits for a lock of C's that it holds itself: as in the search for a name, Python sees no signal.
#: One that comes a moment before the wait is only noted there.
IN_C = """\
import ctypes
from tf_yarn_ops.azkaban import limited_ending
from tf_yarn_ops.terminal.signals import Interruption
limited_ending.ENDING_SECONDS, limited_ending.LAST_CALL = 0.5, 60
with Interruption() as interruption:
    watch = limited_ending.LimitedEnding(lambda: print(watch.why, flush=True), lambda: print("last call", flush=True), print)
    watch.start(interruption.wakeup())
    lock, lib = ctypes.create_string_buffer(128), ctypes.CDLL(None)
    lib.pthread_mutex_lock(lock)
    with interruption.on_signal(int):
        print("go", flush=True)
        lib.pthread_mutex_lock(lock)
"""
#: The launcher with less patience.
HASTY = (
    "from tf_yarn_ops.azkaban import limited_ending; limited_ending.ENDING_SECONDS = limited_ending.LAST_CALL = 1.0; "
    "from tf_yarn_ops.azkaban.__main__ import main; main()"
)


def fill(descriptor):
    """Fill a pipe by a description of our own, so that the writers go on blocking."""
    own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with suppress(BlockingIOError):
            while True:
                os.write(own, b"x" * size)
    os.close(own)


def test_a_signal_is_noticed_while_the_main_thread_is_in_c():
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen([sys.executable, "-c", IN_C], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout.readline() == "go\n"
                process.send_signal(number)
                assert process.wait(60) == 128 + number
            finally:
                process.kill()
            assert process.stdout.read() == f"Azkaban has cancelled the job (signal {number:d})\nlast call\n"


def test_a_full_pipe_does_not_hold_up_the_end(impatient):
    read, write = os.pipe()
    fill(write)
    console, done, over = Console(write), [], threading.Event()

    def last_call():
        done.append("killed")
        console.echo("killed")

    ending = LimitedEnding(
        lambda: None, last_call, lambda: console.echo("nobody answers"), lambda code: (done.append(code), over.set())
    )
    ending.start(os.pipe()[0])
    ending.request("told to", 143)
    assert over.wait(60)
    os.close(read)
    assert done == ["killed", 143]


def test_a_log_that_nobody_reads_does_not_save_the_application(azkaban, yarn):
    """The main thread and the last call both hang in their words; the kill has to come before."""
    job = azkaban()
    read, write = os.pipe()
    command = [sys.executable, "-I", "-X", "utf8", "-c", HASTY]
    process = subprocess.Popen(
        command, cwd=job.folder, env=job.environ, stdin=subprocess.PIPE, stdout=write, stderr=subprocess.STDOUT
    )
    try:
        submitted(yarn)
        seen = b""
        while b"ACCEPTED" not in seen:
            seen += os.read(read, 4096)
        fill(write)
        process.terminate()
        until(lambda: yarn.apps[ID]["state"] == "KILLED")
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.communicate()
        os.close(read)
        os.close(write)


def test_the_application_that_is_waited_for_now_is_named(azkaban, yarn):
    """Azkaban's own kill looks for ids in the log, so the other application of the training has to be there."""
    job = azkaban().start()
    tags = submitted(yarn)["applicationTags"]
    job.saw(f"{ID} ACCEPTED")
    yarn.add(application(2, "ACCEPTED", user=USER, applicationTags=tags))
    yarn.end(ID, "Application killed by user.")
    job.saw(f"{SECOND} ACCEPTED")
    finish(yarn, application_id=SECOND)
    assert job.end() == 0
    assert [line for line in job.lines if line in (ID, SECOND)] == [ID, SECOND]


def test_the_last_call_passes_over_a_resourcemanager_that_hangs(yarn):
    """The site's patience with one answer is longer than the whole call may take."""
    yarn.add(application(1, user=USER))
    with socket.create_server(("127.0.0.1", 0)) as hung, Interruption() as interruption:
        run = JobRun(Console(os.open(os.devnull, os.O_WRONLY)), interruption, {})
        cluster = discover(yarn.url, {"HOME": "/nowhere"})
        run._launcher = Launcher(
            replace(
                cluster,
                resourcemanagers=(f"http://127.0.0.1:{hung.getsockname()[1]}", yarn.url),
                site=replace(cluster.site, request_timeout=120.0),
            )
        )
        run._run.application_ids.append(ID)
        started = time.monotonic()
        run._last_call()
    assert yarn.apps[ID]["state"] == "KILLED"
    assert time.monotonic() - started < 60

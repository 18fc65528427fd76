"""A coordinator whose output is in a file system that does not answer."""

import asyncio
import threading

from support.waiting import PATIENCE
from support.wire import Wire, job, registration
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.runtime.common.file_storage import StorageAway
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import coordinator as module
from tf_yarn_ops.runtime.master.containers import SkeinContainers
from tf_yarn_ops.runtime.master.coordinator import Coordinator
from tf_yarn_ops.runtime.master.lifecycle import Verdict


class Nobody(SkeinContainers):
    """A master of containers that has none."""

    async def list(self):
        return []

    async def add_page(self, route, target, link):
        return ""

    async def progress(self, fraction):
        pass


class Away:
    """An output that can't be prepared until its file system answers."""

    path = url = working_url = working_bytes = metrics = None
    version = 0

    def __init__(self):
        self.answers = threading.Event()

    def prepare(self):
        if not self.answers.is_set():
            raise StorageAway("connection refused")

    def measure(self):
        pass


def coordinator(**deadlines):
    request = job(deadlines=Deadlines(**deadlines))
    made = Coordinator(request, "application_1_1", Nobody(request))
    made._output, made.state.lifecycle = Away(), made.state.lifecycle._replace(preparing=True)
    return made


def test_deadline_of_the_job_passes_while_the_output_is_away():
    made = coordinator(total=0.1)
    asyncio.run(asyncio.wait_for(made.run(None), 30 * PATIENCE))
    assert made.state.lifecycle.verdict.reason is Reason.TOTAL_TIMEOUT


def test_output_that_hangs_holds_up_no_verdict(monkeypatch):
    """As on a hard mount of NFS: its size is not known, and YARN gets the verdict."""
    monkeypatch.setattr(module, "MEASURE_SECONDS", 0.1)
    made = coordinator()
    made._output.answers.set()
    hanging = threading.Event()
    made._output.measure = hanging.wait

    async def play():
        try:
            running = asyncio.ensure_future(made.run(None))
            await asyncio.sleep(0)
            made._on_error(RuntimeError("the end of the test"))
            await asyncio.wait_for(running, 30 * PATIENCE)
        finally:
            hanging.set()

    asyncio.run(play())
    assert made.state.lifecycle.verdict.reason is Reason.AM_FAILED


def test_kill_during_a_commit_that_fails_stays_the_verdict():
    made = coordinator(stop_grace=0)
    succeeded, killed = Verdict(Reason.SUCCEEDED, "done"), Verdict(Reason.KILLED, "Ended by SIGTERM")
    made.state.lifecycle = made.state.lifecycle._replace(verdict=succeeded)
    made.state.on_connect(Wire(), registration("worker_0"), 0.0)
    made.state.lingering = [*made.state.registry.peers.values()]

    def commit(report):
        made.state.abort(killed, 1.0)
        raise PermissionError("not yours")

    made._output.commit = commit
    asyncio.run(asyncio.wait_for(made._commit_output(), 30 * PATIENCE))
    assert made.state.lifecycle.verdict == killed


def test_agents_register_while_the_output_is_away_and_start_after_it():
    made = coordinator(stop_grace=0)

    async def play():
        running = asyncio.ensure_future(made.run(None))
        wires = {name: Wire() for name in ("ps_0", "worker_0", "worker_1")}
        for name, wire in wires.items():
            made.agents.perform(made.state.on_connect(wire, registration(name), 0.0))
        assert {wire.last()[0] for wire in wires.values()} == {"welcome"}
        made._output.answers.set()
        while any(wire.last()[0] != "start" for wire in wires.values()):
            await asyncio.sleep(0.01)
        made._on_error(RuntimeError("the end of the test"))
        await running

    asyncio.run(asyncio.wait_for(play(), 30 * PATIENCE))
    assert made.state.lifecycle.verdict.reason is Reason.AM_FAILED

"""A coordinator whose output is in a file system that does not answer."""

import asyncio
import threading

from support.waiting import PATIENCE
from support.wire import Wire, job, registration
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.runtime.common.file_storage import StorageAway
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.containers import SkeinContainers
from tf_yarn_ops.runtime.master.coordinator import Coordinator


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

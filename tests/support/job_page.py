"""Documents of jobs, and their page as the coordinator serves it."""

import asyncio
import contextlib
import threading

from support import wire
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Given, Series, TaskEvent, Usage, build_status
from tf_yarn_ops.runtime.master.viewers import Viewers
from tf_yarn_ops.runtime.master.web import Website

APP = "application_1700000000000_0042"
START = 1_700_000_000.0


def status(points=3, name="digits", **fields):
    """Return the document of a job whose worker:1 was restarted."""
    tasks = (
        TaskReport("ps:0", "running", host="n1", starts=1, log_url="http://n1:8042/log"),
        TaskReport("worker:0", "running", host="n1", starts=1),
        TaskReport("worker:1", "running", host="n2", starts=2),
    )
    report = JobReport(
        APP,
        name=name,
        queue="ml",
        user="ann",
        state="RUNNING",
        submitted_at=START - 20,
        queue_seconds=20.0,
        started_at=START,
        tasks=tasks,
        **fields,
    )
    begin = (
        TaskEvent("requested", START),
        TaskEvent("allocated", START + 3, "n2"),
        TaskEvent("registered", START + 5, "n2", 1),
        TaskEvent("running", START + 8, "n2", 1),
    )
    again = (
        TaskEvent("failed", START + 30, "n2", 1, 3, cause="failed with exit code 3 on n2"),
        TaskEvent("running", START + 33, "n2", 1, cause="worker:1 failed with exit code 3"),
    )
    curve = [[step, 1 / (step + 1)] for step in range(points)]
    return build_status(
        report,
        START + 60,
        events={"ps:0": begin, "worker:0": begin, "worker:1": begin + again},
        given={"worker:0": Given(2048, 2), "worker:1": Given(2048, 2)},
        usage={"worker:0": Usage(START + 59, 1.25, 512.0, 1.75, 1024.0, 60.0)},
        series=[Series(f"worker:{index}", "loss", curve, points - 1.0, 1 / points, START + 59) for index in (0, 1)],
        cluster_spec={"ps": ["n1:1"], "worker": ["n1:2", "n2:3"]},
        options={"name": name, "env": {"API_KEY": "***"}},
    )


def many(number=1000, failed=900, **fields):
    """Return the document of a job of many tasks, of which one has failed and one is silent."""
    tasks = tuple(
        TaskReport(
            f"worker:{index}",
            "failed" if index == failed else "running",
            host=f"node{index % 4}",
            starts=1,
            exit_code=3 if index == failed else None,
            started_at=START + 8,
        )
        for index in range(number)
    )
    curves = [
        Series(
            task.task, "loss", [[step, 1 / (step + 1 + index)] for step in range(20)], 19.0, 0.01 * index, START + 600
        )
        for index, task in enumerate(tasks)
    ]
    return build_status(
        JobReport(APP, name="digits", state="RUNNING", tasks=tasks, started_at=START, **fields),
        START + 600,
        series=curves,
        usage={"worker:7": Usage(START + 600, 0.0, 100.0, 1.0, 100.0, 6.0, 1440.0)},
    )


@contextlib.contextmanager
def served(document, log=lambda name: f"log of {name}\n"):
    """Serve the page of what `document` returns, as the coordinator does; yield its address."""
    with coordinated(document, log) as (url, _):
        yield url


@contextlib.contextmanager
def coordinated(document, log=lambda name: f"log of {name}\n"):
    """Do as `served`; yield the address, and the function that the coordinator calls at the verdict."""

    async def tail(name, what):
        return log(name if what == "tail" else f"{name} by {what}")

    website = Website(document, tail, None, document, Viewers(wire.job(), ""), APP)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server, port = asyncio.run_coroutine_threadsafe(website.server.start(), loop).result(30)
    try:
        yield f"http://127.0.0.1:{port}/", lambda **options: loop.call_soon_threadsafe(lambda: website.renew(**options))
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(end_requests(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


async def end_requests():
    held = asyncio.all_tasks() - {asyncio.current_task()}
    for one in held:
        one.cancel()
    await asyncio.gather(*held, return_exceptions=True)

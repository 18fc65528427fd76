"""The page of a job in Chromium: its weight, its renewals, and the time until a reader sees it."""

import gzip
import json
import urllib.request
from typing import Any

from support.browser import browsing, chromium
from support.job_page import APP, START, served
from support.waiting import until
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Given, Series, TaskEvent, Usage, build_status
from tf_yarn_ops.runtime.page.page import changed_parts, render_parts

from .samples import Figures, Samples, interleave

TITLE = "Page of a job: KB, requests of its first ten seconds, and the time to its first content"
SIZES = (4, 40, 1000)
#: Milliseconds in which the requests of a page are counted.
WATCHED = 10_000


def measure(runs: int, quick: bool) -> Samples:
    """Measure pages of 4, 40 and 1,000 tasks, each with a bar, its use and two curves of 100 points."""
    with chromium() as browser:
        sizes = SIZES[:1] if quick else SIZES
        cases = {f"{size:,} tasks": lambda size=size: figures(browser, size) for size in sizes}
        return interleave(cases, runs, Samples())


def job(size: int, step: int = 100) -> dict[str, Any]:
    """Return the document of a job whose tasks have come to a step."""
    names = [f"worker:{number}" for number in range(size)]
    reports = tuple(
        TaskReport(name, "running", host=f"node{number % 50}", starts=1, started_at=START + 8)
        for number, name in enumerate(names)
    )
    states = ("requested", "allocated", "registered", "running")
    events = dict.fromkeys(names, tuple(TaskEvent(state, START + 3 * at) for at, state in enumerate(states)))
    usage = {
        name: Usage(START + 600, 1.25, 512.0 + number, 1.75, 1024.0, 60.0 + step) for number, name in enumerate(names)
    }
    series = [
        Series(name, metric, [[at, 1 / (at + 1 + number)] for at in range(step)], step, 0.1, START + 600)
        for metric in ("loss", "accuracy")
        for number, name in enumerate(names)
    ]
    return build_status(
        JobReport(APP, name="digits", state="RUNNING", tasks=reports, started_at=START),
        START + 600,
        events=events,
        usage=usage,
        given=dict.fromkeys(names, Given(2048, 2)),
        series=series,
    )


def figures(browser: Any, size: int) -> Figures:
    """Return the figures of one load of a page."""
    document, later = job(size), job(size, 101)
    known = str(changed_parts(render_parts(document, live=True), "")["marks"])
    renewal = json.dumps(changed_parts(render_parts(later, live=True), known)).encode()
    with served(lambda: document) as url, browsing(browser) as page:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        paint = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0]"
        shown = until(lambda: page.evaluate(paint))
        page.wait_for_timeout(WATCHED)
        return {
            "page KB": len(content) / 1000,
            "page KB, gzip": len(gzip.compress(content)) / 1000,
            "renewal KB": len(renewal) / 1000,
            "renewal KB, gzip": len(gzip.compress(renewal)) / 1000,
            "requests in 10 s": len(requests),
            "first content, ms": shown,
        }

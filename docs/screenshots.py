"""Make the screenshots of the job's page: ``python docs/screenshots.py`` writes docs/pictures/job-page*.png.

The page is the real one; its document is made up here, so that the pictures stay the same.
"""

import math
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from support.browser import browsing, chromium  # noqa: E402
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport  # noqa: E402
from tf_yarn_ops.runtime.common.status import Given, Series, TaskEvent, Usage, build_status  # noqa: E402
from tf_yarn_ops.runtime.page.page import render_page  # noqa: E402

START = 1_790_000_000.0
MINUTES = 60.0


def sample():
    """Return the document of a job of five tasks; worker:2 has failed once."""
    names = {"ps:0": "node-3", "chief:0": "node-1", "worker:0": "node-2", "worker:1": "node-3", "worker:2": "node-4"}
    tasks, events, usage, given = [], {}, {}, {}
    for number, (name, host) in enumerate(names.items()):
        again = name == "worker:2"
        tasks.append(
            TaskReport(name, "running", host=host, starts=1 + again, log_url=f"http://{host}:8042/node/containerlogs/c")
        )
        events[name] = [
            TaskEvent("requested", START),
            TaskEvent("allocated", START + 25 + 12 * number, host),
            TaskEvent("registered", START + 33 + 12 * number, host, 1),
            TaskEvent("running", START + 84, host, 1),
        ]
        if again:
            events[name] += [
                TaskEvent("failed", START + 11 * MINUTES, host, 1, 137, cause="failed with exit code 137 on node-4"),
                TaskEvent("running", START + 11 * MINUTES + 8, host, 1, cause="worker:2 failed with exit code 137"),
            ]
        given[name] = Given(8192, 4)
        usage[name] = Usage(
            START + 23 * MINUTES,
            0.6 + 0.7 * number,
            2100 + 900 * number,
            1.1 + 0.7 * number,
            2900 + 1150 * number,
            3000.0,
        )
    series = []
    for worker in range(3):
        steps = range(0, 4000, 40)
        loss = [[step, 2.3 * math.exp(-step / 900) + 0.08 * math.sin(step / 60 + worker) + 0.2] for step in steps]
        accuracy = [[step, 0.985 - 0.9 * math.exp(-step / 700) - 0.01 * math.sin(step / 70 + worker)] for step in steps]
        for name, points in (("loss", loss), ("accuracy", accuracy)):
            series.append(Series(f"worker:{worker}", name, points, *points[-1], START + 23 * MINUTES))
    report = JobReport(
        "application_1789990000000_0117",
        name="digits-nightly",
        queue="ml",
        user="ann",
        state="RUNNING",
        submitted_at=START - 95,
        queue_seconds=95.0,
        started_at=START,
        tasks=tuple(tasks),
        output_path="hdfs:///models/digits",
        tensorboard_url="http://node-3:33211",
    )
    series.sort(key=lambda item: item.name)
    return build_status(report, START + 23 * MINUTES, events=events, given=given, usage=usage, series=series)


def main():
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        place = Path(folder) / "page.html"
        text = render_page(sample(), live=False)  # a live page would ask its server for news
        place.write_text(text.replace(">all</a> ", ">all</a> <button>end</button> <button>stack</button>"))
        for name, options in (
            ("job-page", {"width": 1180, "height": 900}),
            ("job-page-dark", {"width": 1180, "height": 900, "dark": True}),
            ("job-page-phone", {"width": 390, "height": 844}),
        ):
            with browsing(browser, **options) as page:
                page.goto(place.as_uri())
                if name == "job-page":
                    page.hover(".row[data-task='worker:2'] rect.mark.failed")
                page.screenshot(path=HERE / "pictures" / f"{name}.png", full_page=name != "job-page-phone")


if __name__ == "__main__":
    main()

"""The job's page in a browser, through the proxy of a real ResourceManager, while a real job restarts a task."""

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from support.browser import browsing
from support.hostile_page import KINDS, hostile_page
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.parts import Deadlines, Environment, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

NAME = "<script>document.title='caught'</script>"
#: Writes metrics without end; worker 1 fails once, after its first line.
TRAIN = """\
step=0
until [ -e {go} ]; do
  step=$((step + 1))
  echo "{{\\"step\\": $step, \\"loss\\": 0.$((9999 - step))}}" >> $YTF_METRICS_FILE
  echo "step $step with $API_TOKEN"
  [ $TASK_INDEX = 0 ] || [ -e again ] || {{ touch again; exit 3; }}
  sleep 0.2
done"""


def test_a_reader_of_the_tracking_url_sees_restart_curves_and_verdict(minicluster, tmp_path):
    go = tmp_path / "go"
    launcher = Launcher(
        discover(minicluster.resourcemanager_url, environ={}),
        environ={**os.environ, **minicluster.environ},
        submit_with="rest",
    )
    application = launcher.submit(
        JobSpec(
            command=TRAIN.format(go=go),
            name=NAME,
            tasks={"worker": TaskSpec(instances=2, memory=256)},
            environment=Environment("venv", sys.prefix),
            env={"API_TOKEN": "letmein-1234"},
            restart=RestartPolicy("task", backoff=0),
            deadlines=Deadlines(stop_grace=2),
        )
    )
    try:
        report = until(
            lambda: (
                (found := launcher.report(application)).tracking_url
                and found.state == "RUNNING"
                and found.tasks
                and found
            ),
            120,
            what="a job that runs",
        )
        with browsing(errors=("Failed to load resource",)) as page:
            page.goto(report.tracking_url)
            page.wait_for_url("**/pages/ytf/")
            page.wait_for_selector("tr[data-task='worker:1'] td.running")
            assert page.inner_text("h1").startswith(NAME) and application in page.inner_text("#head")
            until(lambda: page.locator(".row[data-task='worker:1'] rect.run").count() == 2, 60, what="the restart")
            page.hover(".row[data-task='worker:1'] rect.mark.failed")
            assert "worker:1 failed: exit code 3 on " in page.inner_text("#tip")

            def points():
                return page.evaluate(
                    "[...document.querySelectorAll('figure polyline')].map("
                    "one => one.getAttribute('points').split(' ').length).reduce((a, b) => a + b, 0)"
                )

            before = until(points, 60, what="a curve")
            until(lambda: points() > before, 60, what="a curve that grows")
            until(lambda: " of 256" in page.inner_text("tr[data-task='worker:0']"), 60, what="the memory in use")
            page.click("button[data-log='worker:0']")
            until(lambda: "with ***" in page.inner_text("#log"), 60, what="the end of the log")
            # The header with the application's id passes Skein's and YARN's proxies.
            live = launcher.session.live.fetch_log(launcher.session.resourcemanager.get(application), "worker:0")
            assert "with ***" in live
            assert page.title().startswith("<script>") and "in the queue" in page.inner_text("#head")
            with urllib.request.urlopen(
                f"{report.tracking_url.rstrip('/')}/pages/ytf/status.json", timeout=60
            ) as answer:
                text = answer.read().decode()
            schema = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "reference", "status.schema.json")
            with open(schema) as file:
                jsonschema.validate(json.loads(text), json.load(file))
            assert "letmein" not in text
            go.touch()
            page.wait_for_selector("#verdict .good")
            assert page.inner_text(".badge") == "SUCCEEDED" and page.title() == f"{NAME}: SUCCEEDED"
            link = page.wait_for_selector("#stale a")
            assert link.get_attribute("href").endswith(f"/cluster/app/{application}")
            assert page.title() == f"{NAME}: SUCCEEDED" and "with ***" in page.inner_text("#log")
        ended = launcher.wait(application, timeout=120)
        assert ended.reason is Reason.SUCCEEDED and ended.metrics["step"] > 1
    finally:
        if launcher.report(application).reason is None:
            launcher.kill(application, "its test ended")
        launcher.close()


#: Puts servers of another user's choice in place of the job's page.
REPLACES = """\
import sys, time, skein
ui = skein.ApplicationClient.from_current().ui
ui.remove_page("ytf")
ui.add_page("ytf", sys.argv[1], "ytf")
open(sys.argv[2], "w").close()
time.sleep(600)
"""


def test_page_that_never_ends_holds_up_no_reader(minicluster, tmp_path):
    """A foreign application's page drips, floods or sends no head; the ResourceManager's proxy passes that on."""
    launcher = Launcher(
        discover(minicluster.resourcemanager_url, environ={}),
        environ={**os.environ, **minicluster.environ},
        submit_with="rest",
    )
    with hostile_page(*KINDS, "silent") as url, ThreadPoolExecutor(8) as pool:
        application = launcher.submit(
            JobSpec(
                command=shlex.join(["python", "-c", REPLACES, url.rstrip("/"), str(tmp_path / "replaced")]),
                tasks={"worker": TaskSpec(memory=256)},
                environment=Environment("venv", sys.prefix),
                deadlines=Deadlines(total=300),
            )
        )
        try:
            until((tmp_path / "replaced").exists, 120, what="the hostile page")
            environ = {**os.environ, "YTF_RESOURCEMANAGER": minicluster.resourcemanager_url}
            ytf = str(Path(sys.executable).with_name("ytf"))

            def ran(*words):
                done = subprocess.run([ytf, *words], env=environ, capture_output=True, text=True, timeout=120)
                return done.returncode == 0 and application in done.stdout

            def measure(read):
                began = time.monotonic()
                return read(), time.monotonic() - began

            readers = [lambda: ran("status", application), lambda: ran("list")]
            for _ in range(3):
                readers.append(lambda: launcher.report(application).state == "RUNNING")
                readers.append(lambda: application in [report.application_id for report in launcher.list(alerts=True)])
            answers = list(pool.map(measure, readers))
            assert all(answered and seconds < 60 for answered, seconds in answers), answers
        finally:
            launcher.kill(application, "its test ended")
            launcher.close()

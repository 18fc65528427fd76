"""The job's page in a real browser: what it says, how it renews itself, and that nothing of a program is HTML."""

import contextlib
import gzip
import http.server
import json
import re
import threading
import urllib.request
from html.parser import HTMLParser

import pytest

from support.axe import complaints
from support.browser import browsing, check_console
from support.firefox import firefox
from support.job_page import APP, START, coordinated, many, served, status
from support.waiting import until
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import Alert, JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Series, TaskEvent, Usage, Waiting, build_status
from tf_yarn_ops.runtime.page.drawing import SPARK_WIDTH, draw_spark
from tf_yarn_ops.runtime.page.page import MAX_TASKS, changed_parts, render_page, render_parts

EVIL = "<script>document.title='caught'</script><img src=x onerror=alert(1)>\"'&{{head}}"
REFRESH = "<meta http-equiv=refresh content='0;url=http://evil.example/'>"
#: As WebDriver writes the key.
ARROW_LEFT = "\ue012"


class YarnProxy(http.server.ThreadingHTTPServer):
    """YARN's proxy on the wire: passes requests to the coordinator until `answer` names another answer."""

    daemon_threads, block_on_close = True, False

    def __init__(self, coordinator):
        super().__init__(("127.0.0.1", 0), YarnProxyRequest)
        self.coordinator, self.answer, self.asked, self.over = coordinator, "pass", [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/proxy/"


class YarnProxyRequest(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        mode = "page" if self.path.startswith("/cluster/") else self.server.answer
        self.server.asked.append(self.path)
        if mode == "silent":
            self.server.over.wait()
        elif mode == "pass":
            url = self.server.coordinator + self.path.removeprefix("/proxy/")
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=60) as answer:
                self.reply(200, answer.headers["Content-Type"], answer.read())
        elif mode == "redirect":
            self.reply(302, "text/html", b"", Location=f"/cluster/app/{APP}")
        else:
            self.reply(200 if mode == "page" else mode, "text/html", b"<html>YARN</html>")

    def reply(self, status, kind, content, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def visiting(page, errors=()):
    """Yield a page that other tests have used; raise AssertionError at the end if its console has an error.

    Parameters
    ----------
    page : playwright.sync_api.Page
        Of `browsing`.
    errors : sequence of str, optional
        An error that contains one of these texts is expected.
    """
    try:
        yield page
    finally:
        page.goto("about:blank")  # a page that a failed test leaves asks on
        seen = page.complaints.copy()
        page.complaints.clear()
    check_console(seen, errors)


@contextlib.contextmanager
def proxied(log=lambda name: f"log of {name}\n"):
    """Serve the page of a job that runs through a `YarnProxy`; yield the proxy."""
    with served(status, log) as url, YarnProxy(url) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            proxy.shutdown()
            thread.join(30)


@pytest.fixture(scope="module")
def window(browser):
    """Return one page for the tests of this file: a new one takes a third of a second of CPU, each."""
    with browsing(browser) as page:
        yield page


@pytest.fixture(scope="module")
def reading(browser):
    """Return one page for files: the browser takes another process for them."""
    with browsing(browser) as page:
        yield page


@pytest.fixture(scope="module")
def clocked(browser):
    """Return a page whose clock goes as far as a test lets it."""
    with browsing(browser) as page:
        page.clock.install()
        yield page


def test_a_reader_sees_state_timeline_usage_and_curves(window):
    with served(status) as url, visiting(window) as page:
        page.goto(url)
        assert page.title() == "digits: RUNNING"
        assert page.inner_text(".sentence") == "The job trains: 3 of 3 tasks run."
        assert "20 s in the queue" in page.inner_text("#head")
        row = page.inner_text("tr[data-task='worker:0']").split()
        assert row[:4] == ["worker:0", "running", "n1", "1"]
        assert "1.2 (1.8) of 2" in " ".join(row) and "512 (1024) of 2048" in " ".join(row)
        assert page.get_attribute("tr[data-task='ps:0'] a", "href") == "http://n1:8042/log"
        assert page.inner_text("figure figcaption") == "loss" and page.locator("figure polyline").count() == 2
        page.click("summary >> nth=0")
        assert "n1:2, n2:3" in page.inner_text("#cluster")


def test_hovering_over_a_bar_shows_times_host_and_exit_code(window):
    with served(status) as url, visiting(window) as page:
        page.goto(url)
        page.hover(".row[data-task='worker:1'] rect.run >> nth=0")
        assert page.inner_text("#tip") == (
            "worker:1 runs on n2, round 1\n22:13:28 to 22:13:50 UTC (22 s)\nfailed: exit code 3"
        )
        page.hover(".row[data-task='worker:1'] rect.run >> nth=1")
        assert "cause: worker:1 failed with exit code 3" in page.inner_text("#tip")
        page.hover(".row[data-task='worker:1'] rect.queue >> nth=0")
        assert "the job waits in the queue" in page.inner_text("#tip")


def test_the_page_renews_itself_and_leaves_the_readers_place_alone(window):
    now = {"points": 3}
    with served(lambda: status(**now)) as url, visiting(window) as page:
        page.goto(url)
        page.click("summary >> nth=1")
        before = page.evaluate("document.querySelector('figure polyline').getAttribute('points').split(' ').length")
        page.evaluate("window.mine = 1")
        now["points"] = 9
        until(
            lambda: (
                page.evaluate("document.querySelector('figure polyline').getAttribute('points').split(' ').length") > 8
            ),
            60,
        )
        assert before == 3 and page.evaluate("window.mine") == 1, "the page was loaded again"
        assert page.locator("details[open]").count() == 1


def test_the_end_of_a_log_is_shown_when_it_is_asked_for(window):
    with served(status, lambda name: f"step 1 of {name}\n<b>bold</b>") as url, visiting(window) as page:
        page.goto(url)
        assert page.is_hidden("#logbox")
        page.click("button[data-log='worker:1']")
        until(lambda: "step 1 of worker:1" in page.inner_text("#log"), 60)
        assert page.inner_text("#logname") == "worker:1" and "<b>bold</b>" in page.inner_text("#log")
        page.click("button[data-log='worker:1']")
        assert page.is_hidden("#logbox")


def test_a_page_without_news_says_so(window):
    with visiting(window, errors=("Failed to load resource",)) as page:
        with served(status) as url:
            page.goto(url)
        page.wait_for_selector("#stale:not([hidden])")
        assert f"ytf report {APP}" in page.inner_text("#stale")


def test_open_page_shows_the_verdict_while_its_request_is_held(window):
    now = {}
    with coordinated(lambda: status(**now)) as (url, renew), visiting(window) as page:
        page.goto(url)
        with page.expect_request("**/parts.json?*"):
            pass
        now.update(reason=Reason.TASK_FAILED, message="worker:1 failed", first_failure="worker:1")
        renew()
        page.wait_for_selector("#verdict .bad")
        assert page.title() == "digits: TASK_FAILED" and "worker:1 failed" in page.inner_text("#verdict")
        now["message"] = "the tasks are stopped"
        renew(final=True)
        until(lambda: "the tasks are stopped" in page.inner_text("#verdict"), 60)


@pytest.mark.matrix
def test_firefox_shows_curves_logs_values_and_the_verdict():
    now, shown = {}, "document.querySelector('%s').innerText"
    with coordinated(lambda: status(**now)) as (url, renew), firefox() as page:
        page.goto(url)
        assert page.evaluate("document.title") == "digits: RUNNING"
        assert page.evaluate("document.querySelectorAll('figure polyline').length") == 2
        page.evaluate("document.querySelector('[data-log=\"worker:1\"]').click()")
        until(lambda: "log of worker:1" in page.evaluate(shown % "#log"))
        page.evaluate("document.querySelector('figure .plot').focus()")
        assert page.evaluate(shown % "#tip").startswith("step 2\n")
        page.press(ARROW_LEFT)
        until(lambda: page.evaluate(shown % "#tip").startswith("step 1.9"))
        now.update(reason=Reason.TASK_FAILED, message="worker:1 failed", first_failure="worker:1")
        renew(final=True)
        until(lambda: page.evaluate("document.title") == "digits: TASK_FAILED")
        assert "worker:1 failed" in page.evaluate(shown % "#verdict")


@pytest.mark.parametrize("answer", ["redirect", 404, 503, "page"])
def test_page_of_a_job_that_yarn_ended_says_so_and_is_quiet(clocked, answer):
    with proxied() as proxy, visiting(clocked, errors=("Failed to load resource",)) as page:
        page.goto(proxy.url)
        page.click("button[data-log='worker:1']")
        until(lambda: "log of worker:1" in page.inner_text("#log"), 60)
        proxy.answer = answer
        until(lambda: page.title() == "digits: ENDED", 60)
        assert page.inner_text(".badge") == "ENDED" and page.inner_text(".sentence") == "The job has ended."
        assert f"ytf report {APP}" in page.inner_text("#stale")
        links = [link.get_attribute("href") for link in page.locator("#stale a").all()]
        assert [link.rpartition("/cluster")[2] for link in links] == ([f"/app/{APP}"] if answer == "redirect" else [])
        assert page.inner_text("#log") == "log of worker:1\n"
        before = len(proxy.asked)
        page.clock.run_for(60_000)
        assert len(proxy.asked) == before and page.inner_text("#log") == "log of worker:1\n"


def test_open_log_keeps_its_text_when_its_agent_ends(window):
    tails = ["step 7\n"]
    with served(status, lambda name: tails[0]) as url, visiting(window, errors=("Failed to load resource",)) as page:
        page.goto(url)
        page.click("button[data-log='worker:1']")
        until(lambda: "step 7" in page.inner_text("#log"), 60)
        tails[0] = None
        until(lambda: "does not answer" in page.inner_text("#logbox h2"), 60)
        assert page.inner_text("#log") == "step 7\n"


def test_button_shows_the_stacks_of_a_task_once(window):
    asked = []
    with served(status, lambda name: asked.append(name) or f"answer {name}") as url, visiting(window) as page:
        page.goto(url)
        page.click("button[data-stack='worker:1']")
        until(lambda: "answer worker:1 by stack" in page.inner_text("#log"), 60)
        assert page.inner_text("#logbox h2") == "Stacks of worker:1"
        page.click("button[data-log='worker:1']")
        until(lambda: page.inner_text("#log") == "answer worker:1", 60)
        assert asked.count("worker:1 by stack") == 1
        page.click("button[data-log='worker:1']")
        assert not page.is_visible("#logbox")


def test_silent_proxy_is_reported_until_it_answers_again(clocked):
    with proxied() as proxy, visiting(clocked) as page:
        page.goto(proxy.url)
        proxy.answer = "silent"
        before = len(proxy.asked)
        until(lambda: len(proxy.asked) > before, 60)
        page.clock.run_for(20_000)
        until(lambda: "The proxy does not answer" in page.inner_text("#stale"), 60)
        assert page.title() == "digits: RUNNING"
        proxy.answer = "pass"
        page.clock.run_for(20_000)
        until(lambda: page.is_hidden("#stale"), 60)


def test_request_that_was_held_is_followed_by_the_next_at_once(browser):
    """On a slow way too: the end of the job falls into a pause, and the page would not show the verdict."""
    with proxied() as proxy, browsing(browser) as page:

        def asked():
            return sum("parts.json" in path for path in proxy.asked)

        page.clock.install(time=0)
        page.goto(proxy.url)
        until(lambda: asked() == 2, 60)  # the first one is answered at once
        with page.expect_response("**/parts.json?*"):
            page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 2.4)  # it is held for 2 s
        steps = iter(range(40))
        until(lambda: (next(steps, None) is not None and page.clock.run_for(10)) or asked() == 3, 30)


def evil_status():
    task = TaskReport(
        "worker:0", "failed", 1, host=EVIL, log_url=f"javascript:alert('{EVIL}')", log_tail=EVIL, starts=1
    )
    report = JobReport(
        APP,
        name=EVIL,
        queue=EVIL,
        user=EVIL,
        state=EVIL,
        message=EVIL,
        reason=Reason.TASK_FAILED,
        first_failure="worker:0",
        tasks=(task,),
        versions={EVIL: EVIL},
        output_path=EVIL,
        metrics={EVIL: EVIL},
        started_at=START,
        finished_at=START + 9,
    )
    return build_status(
        report,
        START,
        waiting=Waiting((EVIL, EVIL), START),
        events={"worker:0": (TaskEvent("running", START, EVIL), TaskEvent("failed", START + 9, EVIL, cause=EVIL))},
        series=[Series("worker:0", EVIL, [[1.0, 2.0]], 1.0, 2.0, START)],
        cluster_spec={EVIL: [EVIL]},
        options={EVIL: EVIL},
    )


def legend(part):
    return re.findall(r"</svg>([^<]+)</span>", part[part.index('class="legend"') :])


def test_legends_name_what_is_drawn_and_equal_curves_once():
    parts = render_parts(status(), live=True)
    assert legend(parts["timeline"]) == [
        "waits for its container", "starts", "waits for others", "runs", "between two starts", "failed"
    ]  # fmt: skip
    assert legend(parts["metrics"]) == ["worker:0, worker:1 (equal) 0.3333"]
    other = {**status(), "series": [{**one, "value": number} for number, one in enumerate(status()["series"])]}
    assert legend(render_parts(other, live=True)["metrics"]) == ["worker:0 0", "worker:1 1"]


class Scripts(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "img", "iframe", "object", "base", "form"):
            self.found.append(tag)
        self.found += [name for name, value in attributes if name.startswith("on") or "javascript:" in (value or "")]


def test_no_text_of_a_program_becomes_html():
    for document in (evil_status(), evil_status() | {"series": []}):
        text = render_page(document, live=True)
        assert Scripts(text).found == ["script"], "the page's own, and no other"
        assert "{{" not in re.sub(r"&quot;.*?\{\{head\}\}", "", text.replace(EVIL, "")).replace("{{head}}", "")
    assert all(Scripts(part).found == [] for part in render_parts(evil_status(), live=True).values())


def every_field_as(value, document):
    """Yield documents in which one value, or the name of one, is another one."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, old in list(items):
        if isinstance(old, dict | list):
            for changed in every_field_as(value, old):
                yield (
                    {**document, key: changed}
                    if isinstance(document, dict)
                    else [changed if place == key else item for place, item in enumerate(document)]
                )
        elif isinstance(document, list):
            yield [value if place == key else item for place, item in enumerate(document)]
            continue
        if isinstance(document, dict):
            yield {**document, key: value}
            yield {**{name: item for name, item in document.items() if name != key}, value: old}


@pytest.mark.parametrize("live", [True, False])
def test_no_field_of_a_status_becomes_html(live):
    full = (
        evil_status()
        if not live
        else status(alerts=(Alert("silent", "worker:1 is silent", ("worker:1",)),), output_path="hdfs://x/y")
    )
    document = json.loads(json.dumps(full).replace(json.dumps(EVIL)[1:-1], "word"))
    document |= {"excluded_nodes": {"n1": "why"}, "waiting": {"tasks": ["worker:1", "worker:2"], "since": START}}
    document |= {"tensorboard_url": "http://n1:6006/", "lasting_page": "http://rm:8088/cluster/app/x"}
    usage = Usage(START, 1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 2, 50.0, 100.0, 200.0, "GPU-1")._asdict()
    document["tasks"] = [{**document["tasks"][0], "state": "running", "usage": usage}, *document["tasks"]]
    for value in (REFRESH, f"http://x/{REFRESH}", f"'{REFRESH}", f'">{REFRESH}'):
        assert (found := render_page(document, live=live)) and "2 of" not in found and REFRESH not in found
        for changed in every_field_as(value, document):
            with contextlib.suppress(TypeError, ValueError, KeyError, AttributeError):
                assert REFRESH not in render_page(changed, live=live)


def test_controls_of_a_program_are_shown_on_the_page():
    document = json.loads(json.dumps(evil_status()).replace("title", "\\u202e\\u001b[2J"))
    text = render_page(document, live=True) + "".join(render_parts(document, live=True).values())
    assert not set(text) & {"\u202e", "\x1b"} and "document.\\u202e\\u001b[2J" in text


def test_a_job_named_script_is_a_name_in_the_browser(window):
    with served(lambda: status(name=EVIL)) as url, visiting(window) as page:
        page.goto(url)
        assert page.inner_text("h1").startswith("<script>document.title='caught'</script>")
        until(
            lambda: page.evaluate("performance.getEntriesByType('resource').some(e => e.name.includes('parts.json'))"),
            60,
        )
        assert page.title().startswith("<script>")


def test_the_browser_would_not_run_a_script_of_others(window):
    with served(lambda: status()) as url, visiting(window, errors=("Content Security Policy",)) as page:
        page.goto(url)
        page.evaluate(
            "document.body.appendChild(Object.assign(document.createElement('script'), {text: 'window.evil = 1'}))"
        )
        assert page.evaluate("window.evil === undefined")
        assert page.complaints


def test_it_fits_a_phone_in_light_and_dark(browser):
    with served(status) as url, browsing(browser, width=390, height=844) as page:
        page.goto(url)
        for colours, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 25, 31)")):
            page.emulate_media(color_scheme=colours)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), colours
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground


def test_without_scripts_the_page_is_complete(browser):
    with served(status) as url, browsing(browser, scripts=False) as page:
        page.goto(url)
        assert page.locator(".row").count() == 3 and page.locator("figure").count() == 1


def test_a_page_of_the_history_needs_no_server():
    text = render_page(status(), live=False)
    assert 'data-live="false"' in text and "data-log=" not in text and 'http-equiv="refresh"' not in text
    assert not re.search(r"""(?:src|href)=["'](?!data:,|http://n1|\.\./tensorboard)""", text)


def test_a_report_of_yarn_alone_is_shown_too():
    report = JobReport(
        APP,
        name="digits",
        state="FINISHED",
        reason=Reason.NODE_LOST,
        message="n2 left",
        tasks=(TaskReport("worker:0", "lost", started_at=START, finished_at=START + 5, host="n2"),),
    )
    text = render_page(report.to_dict(), live=False)
    assert "n2 left" in text and 'class="mark lost"' in text


def rows(text):
    return re.findall(r'<tr data-key="([^"]*)"', text)


def test_failed_and_silent_tasks_come_first_and_equal_ones_are_one_row():
    parts = render_parts(many(), live=True)
    assert rows(parts["tasks"]) == ["worker:900", "worker:7", "worker:0-6,8-899,901-999"]
    assert "997 running" not in parts["tasks"] and "998 running" in parts["tasks"]
    assert parts["timeline"].count('class="row"') == 3 and parts["metrics"].count("<polyline") == 3
    assert "mean of 1000 tasks" in parts["metrics"] and sum(map(len, parts.values())) < 40_000


def test_filter_finds_each_task_of_a_group():
    document = many()
    assert rows(render_parts(document, live=True, find="worker:70 node2")["tasks"]) == [
        "worker:70",
        "worker:702",
        "worker:706",
    ]
    found = render_parts(document | {"omitted_tasks": 12}, live=True, find="running")["tasks"]
    assert len(rows(found)) == MAX_TASKS and "and 899 more tasks" in found
    assert "and 12 more tasks, which this report omits" in found


def test_renewal_has_only_the_parts_that_changed():
    parts = render_parts(status(), live=True)
    first = changed_parts(parts, "")
    assert set(first) == {*parts, "marks"}
    assert set(changed_parts(parts, first["marks"])) == {"marks"}
    later = render_parts(status(points=9), live=True)
    assert set(changed_parts(later, first["marks"])) == {"marks", "metrics"}


@pytest.mark.slow
def test_answers_are_compressed_for_those_who_take_it():
    with served(status) as url:
        request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Content-Encoding"] == "gzip" and b"<main>" in gzip.decompress(answer.read())
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.headers["Content-Encoding"] is None and b"<main>" in answer.read()


@pytest.mark.slow
@pytest.mark.parametrize("live", [True, False])
def test_reader_sorts_filters_and_opens_groups(window, reading, tmp_path, live):
    place = tmp_path / "page.html"
    place.write_text(render_page(many(40, 30), live=False))
    with served(lambda: many(40, 30)) as url, visiting(window if live else reading) as page:
        page.goto(url if live else place.as_uri())

        def names():
            return page.evaluate(
                "[...document.querySelectorAll('#tasks tbody tr')].filter(row => row.checkVisibility())"
                ".map(row => row.dataset.key)"
            )

        assert names() == ["worker:30", "worker:7", "worker:0-6,8-29,31-39"]
        page.click("#tasks th button >> nth=0")
        assert names() == ["worker:0-6,8-29,31-39", "worker:7", "worker:30"]
        page.fill("#find", "worker:1 node1")
        until(lambda: names() == ["worker:1", "worker:13", "worker:17"], 60)
        page.fill("#find", "")
        until(lambda: len(names()) == 3, 60)
        page.click("button[data-find]")
        until(lambda: len(names()) == 39, 60)


@pytest.mark.slow
def test_renewal_keeps_focus_and_selection(window):
    now = {"points": 3}
    with served(lambda: status(**now)) as url, visiting(window) as page:
        page.goto(url)
        page.focus("button[data-log='worker:1']")
        page.evaluate("getSelection().selectAllChildren(document.querySelector(\"tr[data-task='worker:0'] td\"))")
        for points in (9, 12):
            now["points"] = points
            until(
                lambda points=points: (
                    page.evaluate("document.querySelector('figure polyline').getAttribute('points').split(' ').length")
                    == points
                ),
                60,
            )
            assert page.evaluate("document.activeElement.dataset.log") == "worker:1"
            assert page.evaluate("getSelection().toString()") == "worker:0"


@pytest.mark.slow
def test_arrow_keys_reach_each_piece_of_a_bar_and_each_value(window):
    with served(status) as url, visiting(window) as page:
        page.goto(url)
        page.focus(".row[data-task='worker:1'] svg")
        told = [page.inner_text("#tip")]
        for _ in range(9):
            page.keyboard.press("ArrowRight")
            told.append(page.inner_text("#tip"))
        assert "waits in the queue" in told[0] and any("failed: exit code 3" in text for text in told)
        page.focus("figure .plot")
        assert page.inner_text("#tip") == "step 2\nworker:0 0.3333\nworker:1 0.3333"
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#tip").startswith("step 1.9")
        page.hover("figure .plot", position={"x": 1, "y": 50})
        assert "worker:0 1" in page.inner_text("#tip")


def ended_status():
    tail = "".join(f"line {number}\n" for number in range(300))
    tasks = (
        TaskReport("worker:0", "stopped", signal=15, log_tail=f"{tail}worker 0 was stopped", starts=1),
        TaskReport("worker:1", "failed", 3, log_tail=f"{tail}ValueError: no data", starts=1),
    )
    return build_status(
        JobReport(
            APP,
            name="digits",
            reason=Reason.TASK_FAILED,
            message="worker:1 failed",
            tasks=tasks,
            first_failure="worker:1",
            submitted_at=START - 20,
            started_at=START - 18,
            finished_at=START + 60,
            queue_seconds=2.0,
        ),
        START + 60,
        events={"worker:1": [TaskEvent("requested", START)]},
    )


@pytest.mark.slow
def test_ended_page_opens_each_log_at_its_end(reading, tmp_path):
    place = tmp_path / "page.html"
    place.write_text(render_page(ended_status(), live=False))
    with visiting(reading) as page:
        page.goto(place.as_uri())
        inside = (
            "box => { const end = box.querySelector('pre').getBoundingClientRect().bottom; "
            "return end <= box.getBoundingClientRect().bottom + 1 && box.scrollHeight > box.clientHeight }"
        )
        assert page.eval_on_selector("[aria-label='Last lines of worker:1']", inside)
        page.click("summary >> nth=0")
        page.click("text=worker:0, stopped")
        assert page.eval_on_selector("[aria-label='Last lines of worker:0']", inside)
        page.focus("[aria-label='Last lines of worker:1']")
        page.hover(".row[data-task='worker:1'] rect.am")
        assert "the application master starts" in page.inner_text("#tip") and "(18 s)" in page.inner_text("#tip")


@pytest.mark.slow
@pytest.mark.parametrize("document", [status, ended_status, many, lambda: evil_status()])
def test_axe_finds_nothing_on_a_jobs_page(reading, tmp_path, document):
    """Of its rules only the contrast depends on dark colours."""
    place = tmp_path / "page.html"
    place.write_text(render_page(document(), live=False))
    with visiting(reading) as page:
        page.goto(place.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert complaints(page) == []
        page.emulate_media(color_scheme="dark")
        assert complaints(page, "color-contrast") == []
        page.emulate_media(color_scheme="light")


def test_a_sparkline_spans_its_box():
    points = [tuple(map(float, point.split(","))) for point in draw_spark(["loss", [3.0, 2.0, 1.0]]).split()]
    assert points == [(0.0, 2.0), (SPARK_WIDTH / 2, 11.0), (SPARK_WIDTH, 20.0)]
    assert draw_spark(None) == draw_spark(["loss", [1.0]]) == draw_spark(["loss", ["<", "x"]]) == ""

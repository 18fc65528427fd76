"""The coordinator's web server: what it answers, and how often it makes a document."""

import asyncio
import json

import httpx
import pytest

from support import wire
from support.waiting import until_async
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import build_status
from tf_yarn_ops.runtime.master import web
from tf_yarn_ops.runtime.master.viewers import Viewers
from tf_yarn_ops.runtime.master.web import MAX_LONG_POLLS, Website

ID = "application_1_1"


def status():
    return build_status(JobReport(ID, name="digits"), 0.0)


def test_however_many_look_a_document_is_made_once_a_second():
    made, now = [], [100.0]

    def document():
        made.append(1)
        return status()

    async def tail(name, what):
        return None

    website = Website(
        document,
        tail,
        None,
        lambda: JobReport("application_1_1", tasks=(TaskReport("worker:0"),)).to_dict(),
        Viewers(wire.job(), ""),
        ID,
        lambda: now[0],
    )

    async def look():
        answers = [await website.answer(target) for target in ("/", "/status.json", "/parts.json", "/?x=1") * 5]
        now[0] += 1.0
        answers.append(await website.answer("/status.json"))
        report = await website.answer("/status.json?user.name=ann&only=report")
        assert JobReport.from_dict(json.loads(report[2])).tasks == (TaskReport("worker:0"),)
        assert b"exit_code" not in report[2] and b"options" not in report[2]
        return answers, await website.answer("/log.txt?task=worker%3A7"), await website.answer("/favicon.ico")

    answers, log, icon = asyncio.run(look())
    assert len(made) == 2 and {answer[0] for answer in answers} == {"200 OK"}
    assert json.loads(answers[1][2]) == json.loads(json.dumps(status()))
    assert log[0] == icon[0] == "404 Not Found"


@pytest.mark.parametrize(
    "method, code, content", [("GET", 200, True), ("HEAD", 200, False), ("POST", 405, True), ("DELETE", 405, True)]
)
def test_the_page_can_only_be_read(method, code, content):
    async def ask():
        server, port = await Website(status, None, None, status, Viewers(wire.job(), ""), ID).server.start()
        async with server, httpx.AsyncClient() as client:
            return await client.request(method, f"http://127.0.0.1:{port}/status.json")

    answer = asyncio.run(ask())
    assert (answer.status_code, bool(answer.content)) == (code, content)
    assert answer.headers.get("allow") == ("GET, HEAD" if code == 405 else None)


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/status.json",
        "/parts.json",
        "/log.txt?task=worker:0",
        "/stack.txt?task=worker:0",
        "/log.bin?container=c",
        "/nothing",
    ],
)
def test_each_answer_of_the_page_has_policy_headers(target):
    async def tail(name, what):
        return "<html>"

    async def read_log(container, offset):
        return b"0 6\n<html>"

    async def ask():
        server, port = await Website(status, tail, read_log, status, Viewers(wire.job(), ""), ID).server.start()
        async with server, httpx.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{port}{target}")).headers

    headers = asyncio.run(ask())
    assert headers["YTF-Application"] == ID
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none';") and policy.endswith("; frame-ancestors 'none'")
    assert ("script-src 'sha256-" in policy) == (target == "/") and "unsafe" not in policy


@pytest.mark.parametrize("offset", ["x", "1.5", "--1", "1" + "0" * 18, "%D9%A1", "-"])
def test_invalid_offset_of_a_log_reaches_no_agent(offset):
    website = Website(status, None, None, status, Viewers(wire.job(), ""), ID)
    assert asyncio.run(website.answer(f"/log.bin?container=c&offset={offset}"))[0] == "404 Not Found"


HELD = "/parts.json?hold=60&news=0"


def test_held_requests_are_answered_at_the_renewal():
    async def ask():
        website = Website(status, None, None, status, Viewers(wire.job(), ""), ID)
        await website.answer("/parts.json")
        held = [asyncio.ensure_future(website.answer(HELD)) for _ in range(MAX_LONG_POLLS + 1)]
        await until_async(lambda: any(one.done() for one in held))
        at_once = [one.done() for one in held]
        website.renew()
        found = [json.loads((await one)[2])["news"] for one in held]
        late = json.loads((await website.answer(HELD))[2])["news"]
        website.renew(final=True)
        last = await website.answer(HELD.replace("news=0", "news=2"))
        return at_once, found, late, json.loads(last[2])["news"]

    at_once, found, late, last = asyncio.run(asyncio.wait_for(ask(), 4))
    assert at_once == [False] * MAX_LONG_POLLS + [True]
    assert found == ["1"] * MAX_LONG_POLLS + ["0"] and late == "1" and last == "2"


@pytest.mark.parametrize(
    "query",
    ["", "hold=", "hold=x&news=0", "hold=-1&news=0", "hold=0&news=0", "hold=60", "hold=nan&news=0", "hold=60&news=x"],
)
def test_request_without_a_valid_hold_is_answered_at_once(query):
    async def ask():
        website = Website(status, None, None, status, Viewers(wire.job(), ""), ID)
        return await asyncio.wait_for(website.answer("/parts.json?" + query), 4)

    assert json.loads(asyncio.run(ask())[2])["news"] == "0"


def test_request_is_held_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr(web, "HOLD_SECONDS", 0.01)

    async def ask():
        website = Website(status, None, None, status, Viewers(wire.job(), ""), ID)
        return await asyncio.wait_for(website.answer(HELD), 30)

    assert json.loads(asyncio.run(ask())[2])["news"] == "0"


def test_end_of_the_coordinator_drops_a_held_request_silently(caplog):
    """Before 3.12 asyncio logs the cancellation of a server's connection as an error, in the coordinator's log."""

    async def ask():
        website = Website(status, None, None, status, Viewers(wire.job(), ""), ID)
        _, port = await website.server.start()
        await website.answer("/parts.json")
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {HELD} HTTP/1.1\r\n\r\n".encode())
        await until_async(lambda: website._long_polls)

    asyncio.run(asyncio.wait_for(ask(), 30))
    assert caplog.text == ""


def test_connection_above_the_limit_takes_the_place_of_one_without_request(monkeypatch):
    """The one that waits longest for its request; where all have theirs, the new one ends."""
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 2)

    async def play():
        served = []

        async def answer(head, _reader, _writer):
            served.append(head)
            await asyncio.sleep(60)

        listener, port = await web.LoopbackServer(Viewers(wire.job(), ID), answer).start()
        async with listener:
            ends = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            dropped = await asyncio.wait_for(ends[0][0].read(), 60)
            for number, (_, writer) in enumerate(ends[1:], 1):
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                await until_async(lambda number=number: len(served) == number)
            late, _ = await asyncio.open_connection("127.0.0.1", port)
            return dropped, await asyncio.wait_for(late.read(), 60), len(served)

    assert asyncio.run(play()) == (b"", b"", 2)

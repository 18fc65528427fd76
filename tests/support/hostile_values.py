"""Laws of every reader of what others write, each with a strategy: any JSON, any bytes.

`LAWS` are run by tests with few examples, and by ``./dev bench fuzz`` with many.
"""

import dataclasses
import functools
import gzip
import json
import os
import tempfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from support.fake_yarn import SECRET
from tf_yarn_ops.azkaban.outputs import output_properties
from tf_yarn_ops.cli.history import comparison, table
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.history.compare import compare
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.record_summary import read_summary, summarise
from tf_yarn_ops.runtime.agent import agent, metrics
from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.record import unpack_record
from tf_yarn_ops.runtime.common.report import JobReport, compose_diagnostics, small_document, verdict_tag
from tf_yarn_ops.runtime.common.status import JobStatus, TaskStatus, read_status
from tf_yarn_ops.runtime.common.values import plain_values
from tf_yarn_ops.runtime.page.drawing import draw_spark
from tf_yarn_ops.runtime.page.page import render_page
from tf_yarn_ops.terminal.output_properties import MAX_OUTPUT, format_outputs, outputs_of
from tf_yarn_ops.terminal.progress import Lines, Table
from tf_yarn_ops.terminal.summary import describe
from tf_yarn_ops.ui.job_store import JobStore

APP = "application_1700000000000_0001"


def nested(wrap: Callable, depth: int) -> Any:
    """Return a value in so many containers."""
    return functools.reduce(lambda inner, _: wrap(inner), range(depth), 1)


#: What has broken a reader, here or elsewhere.
SPECIAL = st.sampled_from(
    ["", "a\0b", "\ud800", "\udcff.csv", "http://[", "javascript:alert(1)", "soon", "worker:x", "worker:1", "RUNNING",
     "running", "SUCCEEDED", "TASK_FAILED", "<h1>", "x" * 3000, "${x}", 0, -1, 2**63, 2**64, 2**100, 10**400, -(10**400),
     1e300, 1e308, -1e308, float("nan"), float("inf"), 1700000000, 1.5, True, None, [], {}, [[]],
     nested(lambda inner: [inner], 100), nested(lambda inner: {"a": inner}, 60)]
)  # fmt: skip
NAMES = st.sampled_from(
    ["__classname__", "__type", "__var", "__id__", "__version__", "__data__", "__cache__", "a\0b", "\udcff", "loss",
     "step", "acls", "view_users", "view_groups", "n" * 500]
) | st.text(max_size=8)  # fmt: skip
anything = st.recursive(
    SPECIAL | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
moments = st.floats(0, 4e9) | SPECIAL


def fields_of(kind):
    return [field.name for field in dataclasses.fields(kind)]


@st.composite
def documents(draw, kind, **parts):
    """Return documents with a few of the fields of a class, of which most are hostile."""
    names = draw(st.lists(st.sampled_from(sorted({*fields_of(kind), *parts})), max_size=8, unique=True))
    return {name: draw(parts.get(name, anything)) for name in names}


events = st.lists(
    st.fixed_dictionaries({"kind": SPECIAL, "at": moments}, optional={"host": anything, "round": anything}), max_size=3
)
usages = st.fixed_dictionaries(
    dict.fromkeys(
        ("at", "cpu_cores", "memory_mib", "peak_cpu_cores", "peak_memory_mib", "cpu_seconds"),
        st.floats(0, 1e5) | SPECIAL,
    ),
    optional=dict.fromkeys(("gpus", "gpu_percent", "gpu_memory_mib", "gpu_given_mib", "gpu_uuids"), anything),
)
tasks = documents(
    TaskStatus, task=st.sampled_from(["worker:0", "worker:1", "worker:x", "ps:0"]), state=SPECIAL, events=events,
    usage=usages | anything, started_at=moments, finished_at=moments, starts=st.integers(0, 3),
)  # fmt: skip
series = st.fixed_dictionaries(
    {"task": st.sampled_from(["worker:0", "worker:1", "x"]), "name": st.sampled_from(["loss", "steps"]) | NAMES,
     "points": st.lists(st.lists(st.floats() | st.integers(0, 99), max_size=3), max_size=4) | anything,
     "step": moments, "value": anything, "at": moments}
)  # fmt: skip
statuses = documents(
    JobStatus, tasks=st.lists(tasks | anything, max_size=4) | anything, series=st.lists(series | anything, max_size=9),
    reason=st.sampled_from(["SUCCEEDED", "TASK_FAILED", None]) | anything, at=moments, finished_at=moments,
    options=st.fixed_dictionaries({"acls": anything}) | anything, submitted_at=moments, started_at=moments,
    verdict=st.fixed_dictionaries({}, optional={"reason": anything, "task": anything, "next": anything}) | anything,
).map(lambda document: {**document, "schema": 1, "application_id": APP, "record_schema": 1})  # fmt: skip
summaries = documents(
    JobStatus, tasks=anything, rounds=anything, metrics=anything, curve=anything, acls=anything, finished_at=moments
)


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


def holds(value):
    """Assert that JSON, UTF-8, PostgreSQL and a reader with 64 bits can hold a value."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text.replace("\\\\", "") and "\0" not in text
    text.encode()
    assert depth(value) <= 41 and plain_values(value) == value
    for number in numbers(value):
        assert -(2**63) <= number < 2**63


def numbers(value):
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers(item)
    elif isinstance(value, int):
        yield value


def any_value_becomes_plain(value):
    holds(plain_values(value))


def any_report_is_shown(document):
    report = JobReport.from_dict(document)
    holds(report.to_dict())
    assert JobReport.from_dict(report.to_dict()) == report
    show(report)


def show(report):
    """Let every door show a report."""
    list(describe(report, 1.7e9))
    lines = Lines()
    lines.changes(report, 100.0), lines.changes(report, 200.0)
    drawn = Table()
    drawn.show(report)
    drawn.render()
    assert len(json.dumps(small_document(report, 12 * 1024))) <= 12 * 1024
    assert len(format_outputs(outputs_of(report)).encode()) <= MAX_OUTPUT
    json.dumps(output_properties(report)).encode("ascii")
    compose_diagnostics(report).encode()


def any_diagnostics_are_read(values):
    state, document, before, behind = values
    proven = {
        "schema": 1,
        **{k: v for k, v in document.items() if k != "schema"},
        "application_id": APP,
        "verdict_secret": SECRET,
    }
    text = f"{before}{json.dumps(document)}\n{json.dumps(proven)}{behind}"
    application = {"id": APP, "state": state, "finalStatus": "FAILED", "diagnostics": text,
                   "applicationTags": verdict_tag(SECRET),
                   "amContainerLogs": "http://n:1/x"}  # fmt: skip
    show(read_yarn_report(application, JobReport.from_dict(document)))


def any_status_has_a_page(document):
    found = read_status(document, "a document")
    holds(found)
    assert read_status(found, "a document") == found
    for live in (True, False):
        render_page(found, live=live).encode()


def any_record_is_listed(document):
    record = unpack_record(gzip.compress(json.dumps(document).encode(), 1))
    summary = summarise({**record, "application_id": APP})
    show_summaries([summary])
    rows = compare([record, {}])
    comparison([APP, APP], [record, {}], rows, True)
    render_page(record, live=False)
    assert seen(record) in (True, False)


def show_summaries(found):
    for query in (Query(), Query("d*", 1.0, ("FAILED",), "a", "words")):
        list(map(query.matches, found))
    table(found)
    for summary in found:
        draw_spark(summary.get("curve")), seen(summary)


def seen(job):
    return JobStore._may_see(SimpleNamespace(_reader="dave"), job)


def any_index_is_listed(entry):
    show_summaries([{**read_summary(entry, "an index"), "application_id": APP}])


def any_bytes_are_no_record(content):
    for text in (content, gzip.compress(content, 1)):
        try:
            assert isinstance(unpack_record(text), dict)
        except ValueError:
            pass


def any_result_is_read(content):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result")
        with open(path, "wb") as file:
            file.write(content)
        result = agent.read_result(path)
        if result is not None:
            holds(result)
            assert protocol.decode(protocol.encode("exited", result=result))["result"] == result
        points, left_out = metrics.MetricsFile(path).read(last=True)
        protocol.check_message({"metrics": points, "left_out": left_out}, {"metrics": "object", "left_out": "int"})
        holds(plain_values(points))


texts = anything.map(json.dumps).map(str.encode)
lines = st.lists(texts | st.binary(max_size=40), max_size=4).map(b"\n".join)
states = st.sampled_from(["FINISHED", "FAILED", "KILLED", "RUNNING"])


class Law(NamedTuple):
    """A strategy, and the function that asserts the law for each of its examples."""

    strategy: st.SearchStrategy
    check: Callable


LAWS = {
    "values": Law(anything, any_value_becomes_plain),
    "report": Law(statuses, any_report_is_shown),
    "diagnostics": Law(st.tuples(states, statuses, st.text(max_size=9), st.text(max_size=9)), any_diagnostics_are_read),
    "status": Law(statuses, any_status_has_a_page),
    "record": Law(statuses, any_record_is_listed),
    "index": Law(summaries, any_index_is_listed),
    "bytes": Law(st.binary(max_size=200) | texts, any_bytes_are_no_record),
    "result": Law(lines, any_result_is_read),
}  # fmt: skip

"""The agent's reader of YTF_METRICS_FILE: bounded, and a broken line costs only itself."""

import json
import math

import pytest

from tf_yarn_ops.runtime.agent.metrics import (
    MAX_MESSAGE_POINTS,
    MAX_METRICS_LINE,
    MAX_NAMES,
    MAX_NEW_BYTES,
    MetricsFile,
)
from tf_yarn_ops.runtime.common import protocol


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics"


def append(path, *lines, end="\n"):
    with open(path, "a") as file:
        file.write("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)


def test_new_lines_are_points(path):
    metrics = MetricsFile(str(path))
    assert metrics.read() == ({}, 0), "the program has not begun the file"
    append(path, {"step": 100, "loss": 0.5, "accuracy": 0.75}, {"step": 200, "loss": 0.25})
    assert metrics.read() == ({"loss": [[100.0, 0.5], [200.0, 0.25]], "accuracy": [[100.0, 0.75]]}, 0)
    assert metrics.read() == ({}, 0)


def test_without_a_step_lines_are_counted(path):
    append(path, {"loss": 3}, {"loss": 2}, {"step": 10, "loss": 1}, {"loss": 0})
    assert MetricsFile(str(path)).read()[0] == {"loss": [[1.0, 3.0], [2.0, 2.0], [10.0, 1.0], [11.0, 0.0]]}


@pytest.mark.parametrize(
    "broken",
    [
        "not JSON",
        "[1, 2]",
        "3",
        '{"step": "ten", "loss": 1}',
        '{"step": NaN, "loss": 1}',
        '{"step": true, "loss": 1}',
        "[" * 3000,
        '{"loss": 1, "' + "x" * MAX_METRICS_LINE + '": 1}',
        '{"loss": 1' + "0" * 400 + "}",
        '{"phase": "eval"}',
        '{"' + "n" * 65 + '": 1}',
    ],
)
def test_a_broken_line_costs_only_itself(path, broken):
    append(path, {"step": 1, "loss": 0.5}, broken, {"step": 2, "loss": 0.25})
    assert MetricsFile(str(path)).read() == ({"loss": [[1.0, 0.5], [2.0, 0.25]]}, 1)


def test_nan_and_infinity_are_kept(path):
    append(path, '{"step": 1, "loss": NaN}', '{"step": 2, "loss": Infinity}')
    (_, first), (_, second) = MetricsFile(str(path)).read()[0]["loss"]
    assert math.isnan(first) and math.isinf(second)


def test_a_line_that_is_being_written_waits_for_its_end(path):
    metrics = MetricsFile(str(path))
    append(path, '{"step": 1, "lo', end="")
    assert metrics.read() == ({}, 0)
    append(path, 'ss": 0.5}', '{"step": 2, "loss": 0.25}', end="")
    assert metrics.read() == ({"loss": [[1.0, 0.5]]}, 0)
    assert metrics.read(last=True) == ({"loss": [[2.0, 0.25]]}, 0), "the program has ended without a newline"


def test_a_line_without_an_end_is_skipped_once_it_is_too_long(path):
    metrics = MetricsFile(str(path))
    left_out = 0
    for _ in range(5):
        append(path, "x" * MAX_METRICS_LINE, end="")
        points, more = metrics.read()
        left_out += more
        assert points == {}
    append(path, "", {"step": 1, "loss": 0.5})
    points, more = metrics.read()
    assert (points, left_out + more) == ({"loss": [[1.0, 0.5]]}, 1)


def test_a_file_that_is_begun_anew_is_read_from_its_beginning(path):
    metrics = MetricsFile(str(path))
    append(path, {"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25})
    metrics.read()
    path.write_text('{"step": 1, "loss": 9}\n')
    assert metrics.read() == ({"loss": [[1.0, 9.0]]}, 0)


def test_a_program_that_writes_much_is_thinned_and_its_newest_lines_count(path):
    lines = 60_000
    append(path, *({"step": step, "loss": step / 2} for step in range(lines)))
    assert path.stat().st_size > 2 * MAX_NEW_BYTES
    points, left_out = MetricsFile(str(path)).read()
    curve = points["loss"]
    assert len(curve) == MAX_MESSAGE_POINTS and curve[-1] == [lines - 1.0, (lines - 1) / 2] and left_out == 1
    assert curve == sorted(curve) and curve[0][0] > lines / 2


def test_names_are_bounded_and_any_message_fits_into_a_line(path):
    worst = "\N{GRINNING FACE}" * 60
    values = [
        {f"{worst}{number:03}": -math.pi * 10**-300 for number in range(start, start + 8)} for start in range(0, 80, 8)
    ]
    append(path, *(json.dumps({"step": 2**52 + 0.5, **item}, ensure_ascii=False) for item in values * 10))
    points, left_out = MetricsFile(str(path)).read()
    assert len(points) == MAX_NAMES and left_out == 10 * (80 - MAX_NAMES)
    line = protocol.encode(
        "sample",
        round=1,
        start=1,
        metrics=points,
        left_out=left_out,
        cpu_seconds=1e9,
        cpu_cores=1e9,
        memory_mib=1e9,
        peak_cpu_cores=1e9,
        peak_memory_mib=1e9,
    )
    assert len(line) < protocol.MAX_PROTOCOL_LINE

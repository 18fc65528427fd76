"""Figures over many jobs."""

from support.records import DAY
from tf_yarn_ops.ui.figures import SPARK_WIDTH, count_reasons, count_waits, draw_spark


def test_a_sparkline_spans_its_box():
    points = [tuple(map(float, point.split(","))) for point in draw_spark(["loss", [3.0, 2.0, 1.0]]).split()]
    assert points == [(0.0, 2.0), (SPARK_WIDTH / 2, 11.0), (SPARK_WIDTH, 20.0)]
    assert draw_spark(None) == draw_spark(["loss", [1.0]]) == draw_spark(["loss", ["<", "x"]]) == ""


def test_reasons_are_counted_per_day():
    jobs = [
        {"finished_at": 10.0, "reason": "TASK_FAILED"},
        {"finished_at": DAY + 5.0, "reason": "SUCCEEDED"},
        {"finished_at": DAY + 9.0, "reason": "TASK_FAILED"},
        {"finished_at": 99 * DAY, "reason": "KILLED"},
    ]
    found = count_reasons(jobs, 0.0, 2.5 * DAY)
    assert (found.names, found.totals, found.most) == (["SUCCEEDED", "TASK_FAILED"], [1, 2], 2)
    assert [bar.day for bar in found.bars] == ["1970-01-01", "1970-01-02", "1970-01-03"]
    assert [piece.tip for piece in found.bars[1].pieces] == ["1970-01-02: 1 SUCCEEDED", "1970-01-02: 1 TASK_FAILED"]


def test_waits_are_shown_by_queue():
    jobs = [{"queue": "low", "queue_seconds": float(seconds)} for seconds in range(1, 101)]
    assert [tuple(wait) for wait in count_waits([*jobs, {"queue": "x", "queue_seconds": None}])] == [
        ("low", 100, 50.0, 95.0, 100.0)
    ]

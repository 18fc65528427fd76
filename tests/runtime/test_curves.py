"""The curves of metrics that a coordinator keeps."""

import pytest

from support.wire import sample
from tf_yarn_ops.runtime.master.curves import MAX_CURVE_POINTS, MAX_SERIES, Curves


@pytest.mark.parametrize(
    "points", ["none", [[1]], [["a", "b"]], [None], [[float("nan"), 1.0]], [[1.0, 2.0, 3.0]], {"a": 1}, [[10**400, 1]]]
)
def test_points_that_are_none_cost_only_themselves(points):
    curves = Curves()
    curves.take("worker:0", sample(metrics={"bad": points, "loss": [[1.0, 0.5]]}))
    assert next(item for item in curves.series() if item.name == "loss").points == [[1.0, 0.5]]
    assert curves.left_out == 1


def test_curves_are_bounded_and_cover_the_whole_training():
    curves = Curves()
    for step in range(100_000):
        curves.take("worker:0", sample(metrics={"loss": [[step, step / 2]]}))
    (series,) = curves.series()
    assert MAX_CURVE_POINTS / 2 <= len(series.points) <= MAX_CURVE_POINTS + 1
    assert series.points[0] == [0.0, 0.0] and series.points[-1] == [99_999.0, 49_999.5]
    gaps = {round(after[0] - before[0]) for before, after in zip(series.points, series.points[1:-1], strict=False)}
    assert len(gaps) == 1, "the points are spread evenly"


def test_the_number_of_curves_and_points_is_bounded():
    curves = Curves()
    for worker in range(1000):
        curves.take(
            f"worker:{worker}",
            sample(metrics={f"m{number}": [[step, 1.0] for step in range(50)] for number in range(3)}),
        )
    series = curves.series()
    assert len(series) == MAX_SERIES and curves.left_out == 3000 - MAX_SERIES
    assert sum(len(item.points) for item in series) < 60_000
    curves.take("worker:0", sample(metrics={"x" * 65: [[1.0, 1.0]]}))
    assert len(curves.series()) == MAX_SERIES

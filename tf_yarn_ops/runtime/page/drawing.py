"""The drawings of the job's page as inline SVG: bars of the timeline, curves of metrics, meters.

``ytf ui`` draws with them, too. Pure functions.
"""

import html
import itertools
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..common.clock import duration, utc_clock
from ..common.escaping import escape_controls
from ..common.status import ALLOCATED, ENDS, FAILED, KILLED, LOST, REGISTERED, REQUESTED, RUNNING, STOPPED, SUCCEEDED
from ..common.task_groups import AlikeTasks

#: How the page shows the time after an event: the look of the bar, and what the task does then.
_STYLES = {
    REQUESTED: ("queue", "waits for its container"), ALLOCATED: ("starting", "its container starts"),
    REGISTERED: ("ready", "waits for the other tasks"), RUNNING: ("run", "runs"),
    FAILED: ("down", "has failed"), LOST: ("down", "is lost"), STOPPED: ("down", "is stopped"),
    KILLED: ("down", "is killed"), SUCCEEDED: ("", "has succeeded"),
}  # fmt: skip
_LEGEND = (
    ("queue", "waits for its container"),
    ("am", "application master starts"),
    ("starting", "starts"),
    ("ready", "waits for others"),
    ("run", "runs"),
    ("down", "between two starts"),
    *((f"mark {kind}", kind) for kind in ENDS),
)
CURVE_COLOURS = 8
#: More tasks than these are drawn as their mean and their spread, in so many steps.
APART, _BINS = 6, 60
#: Size of a plot in its own units; it is stretched to the page.
_WIDTH, _HEIGHT = 300.0, 130.0
#: The same of a sparkline.
SPARK_WIDTH, _SPARK_HEIGHT = 90.0, 22.0


def text(value: Any) -> str:
    """Return a value as text of HTML, for elements and quoted attributes; control characters are shown escaped."""
    return html.escape(escape_controls(str(value)), quote=True)


def draw_timeline(document: Mapping[str, Any], groups: Sequence[AlikeTasks]) -> str:
    """Return one bar for each task or group from the submission to the end; a piece shows times, host and exit.

    Parameters
    ----------
    document : mapping
        Of ``status.json``.
    groups : sequence of AlikeTasks
        Its tasks that are drawn. The last one that has started stands for its group.
    """
    drawn = [(group.name, max(group.tasks, key=lambda task: task.get("started_at") or 0.0)) for group in groups]
    moments = [event["at"] for _, task in drawn for event in task.get("events") or ()]
    end = document.get("finished_at") or document.get("at") or max(moments, default=0.0)
    started = document.get("started_at") or min(moments, default=end)
    begin = document.get("submitted_at") or started
    end = max([end, begin + 1.0, *moments])
    am = started, min(moments, default=started)
    rows = "".join(_row(name, task, begin, am, end, document.get("submitted_at")) for name, task in drawn)
    legend = "".join(
        f'<span><svg aria-hidden="true"><rect class="{look}" width="12" height="12" rx="2"/></svg>{words}</span>'
        for look, words in _LEGEND
        if f'<rect class="{look}"' in rows
    )
    axis = f"<span>{utc_clock(begin)}</span><span>{utc_clock((begin + end) / 2)}</span><span>{utc_clock(end)}</span>"
    return f'{rows}<div class="axis">{axis}</div><div class="legend">{legend}</div>'


def _row(
    name: str, task: Mapping[str, Any], begin: float, am: Tuple[float, float], end: float, submitted: Optional[float]
) -> str:
    scale, drawn, marks = 100.0 / (end - begin), "", ""

    def draw_bar(look: str, since: float, until: float, tip: str) -> str:
        if not look or until < since:
            return ""
        return (
            f'<rect class="{look}" x="{(since - begin) * scale:.3f}%" y="2" height="14" '
            f'width="{max(0.15, (until - since) * scale):.3f}%" data-tip="{text(tip)}"/>'
        )

    if submitted:
        drawn += draw_bar("queue", submitted, am[0], f"{name}: the job waits in the queue\n{_span(submitted, am[0])}")
    if am[1] > am[0]:
        drawn += draw_bar("am", *am, f"{name}: the application master starts\n{_span(*am)}")
    events = _events(task)
    for event, following in itertools.zip_longest(events, events[1:]):
        kind, since, until = event["kind"], event["at"], following["at"] if following else end
        if kind in ENDS:
            marks += (
                f'<rect class="mark {text(kind)}" x="{min(99.4, (since - begin) * scale):.3f}%" y="0" '
                f'width="0.6%" height="18" data-tip="{text(_ending(name, event))}"/>'
            )
        if following or kind not in ENDS:
            look, words = _STYLES.get(kind, ("", kind))
            ending = f"\n{_how(following)}" if following and kind == RUNNING and following["kind"] in ENDS else ""
            tip = f"{name} {words}{_where(event)}\n{_span(since, until)}{_because(event)}{ending}"
            drawn += draw_bar(look, since, until, tip)
    return (
        f'<div class="row" data-key="{text(name)}" data-task="{text(name)}"><span class="name">{text(name)}</span>'
        f'<svg role="img" tabindex="0" aria-label="{text(name)}: {text(task.get("state"))}, with times">'
        f'<rect class="track" width="100%" y="2" height="14"/>{drawn}{marks}</svg></div>'
    )


def _events(task: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """Return the events of a task; those of a report that has none are its last start and end."""
    if task.get("events"):
        return sorted(task["events"], key=lambda event: float(event["at"]))
    if not task.get("started_at"):
        return []
    events: List[Mapping[str, Any]] = [{"kind": RUNNING, "at": task["started_at"], "host": task.get("host")}]
    if task.get("finished_at"):
        events.append({**task, "kind": task.get("state"), "at": task["finished_at"]})
    return events


def _span(begin: float, end: float) -> str:
    return f"{utc_clock(begin)} to {utc_clock(end)} UTC ({duration(end - begin)})"


def _where(event: Mapping[str, Any]) -> str:
    host, number = event.get("host"), event.get("round")
    return (f" on {host}" if host else "") + (f", round {number}" if number else "")


def _because(event: Mapping[str, Any]) -> str:
    return f"\ncause: {event['cause']}" if event.get("cause") else ""


def _how(event: Mapping[str, Any]) -> str:
    if event.get("signal"):
        return f"{event['kind']}: signal {event['signal']}"
    code = event.get("exit_code")
    return str(event["kind"]) if code is None else f"{event['kind']}: exit code {code}"


def _ending(name: str, event: Mapping[str, Any]) -> str:
    return f"{name} {_how(event)}{_where(event)}\n{utc_clock(event['at'])} UTC{_because(event)}"


def draw_curves(name: str, series: Sequence[Mapping[str, Any]], colours: Mapping[str, int]) -> str:
    """Return the chart of a metric: a curve for each task; of many tasks their mean and their spread.

    Parameters
    ----------
    name : str
        Of the metric.
    series : sequence of mapping
        Of ``status.json``.
    colours : mapping of str to int
        The number of each task, which keeps its colour in all charts; the order of the legend.
    """
    series = sorted(series, key=lambda item: colours.get(item["task"], 0))
    points = [point for item in series for point in item["points"] if _finite(point)]
    many, plot = len(series) > APART, ""
    if points:
        columns = [point[0] for point in points], [point[1] for point in points]
        steps, values = ((min(column), max(column)) for column in columns)
        drawn = (
            _spread(points, steps, values)
            if many
            else "".join(_curve(item, colours, steps, values) for item in reversed(series))
        )
        grid = "".join(f'<line class="grid" x1="0" x2="{_WIDTH:g}" y1="{y:g}" y2="{y:g}"/>' for y in (5, 65, 125))
        plot = (
            f'<div class="ends"><span>{number_text(values[1])}</span></div><svg class="plot" role="img" '
            f'tabindex="0" aria-label="{text(name)}, with values" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
            f'preserveAspectRatio="none" data-x="{steps[0]!r} {steps[1]!r}" data-y="{values[0]!r} {values[1]!r}">'
            f'{grid}{drawn}</svg><div class="ends"><span>{number_text(values[0])}</span>'
            f"<span>step {number_text(steps[0])} to {number_text(steps[1])}</span></div>"
        )
    alike: Dict[str, List[Mapping[str, Any]]] = {}
    for item in series:
        alike.setdefault(repr((item["points"], item["value"])), []).append(item)
    legend = (
        _describe_many(series)
        if many
        else "".join(
            f'<span><svg aria-hidden="true"><rect class="c{_colour(equal[0], colours)}" width="12" height="12" rx="2"/>'
            f"</svg>{text(', '.join(item['task'] for item in equal))}{' (equal)' if equal[1:] else ''} "
            f"{text(number_text(equal[0]['value']))}</span>"
            for equal in alike.values()
        )
    )
    return (
        f'<figure data-key="{text(name)}" data-metric="{text(name)}"><figcaption>{text(name)}</figcaption>{plot}'
        f'<div class="legend">{legend}</div></figure>'
    )


def _colour(item: Mapping[str, Any], colours: Mapping[str, int]) -> int:
    return colours.get(item["task"], 0) % CURVE_COLOURS


def _describe_many(series: Sequence[Mapping[str, Any]]) -> str:
    last = sorted((item["value"], item["task"]) for item in series if _finite((item["value"],)))
    if not last:
        return f"<span>{len(series)} tasks</span>"
    mean = number_text(sum(value for value, _ in last) / len(last))
    ends = " to ".join(f"{number_text(value)} ({text(task)})" for value, task in (last[0], last[-1]))
    return f"<span>mean of {len(series)} tasks {mean}</span><span>from {ends}</span>"


def _spread(points: Sequence[Sequence[float]], steps: Tuple[float, float], values: Tuple[float, float]) -> str:
    """Return the mean of all points, and the area between the lowest and the highest."""
    bins: Dict[int, List[float]] = {}
    across = (steps[1] - steps[0]) or 1.0
    for step, value in points:
        bins.setdefault(int((step - steps[0]) / across * (_BINS - 1)), []).append(value)
    places = {number: steps[0] + across * (number + 0.5) / _BINS for number in bins}
    low, mean, high = (
        [_place((places[number], fold(bins[number])), steps, values) for number in sorted(bins)]
        for fold in (min, lambda found: sum(found) / len(found), max)
    )
    return f'<polygon class="c0" points="{" ".join(low + high[::-1])}"/>' + "".join(
        f'<polyline class="c0" data-name="{name}" points="{" ".join(run)}"{style}/>'
        for name, run, style in (
            ("lowest", low, ' stroke-opacity=".4"'),
            ("mean", mean, ""),
            ("highest", high, ' stroke-opacity=".4"'),
        )
    )


def _place(point: Sequence[float], steps: Tuple[float, float], values: Tuple[float, float]) -> str:
    across, up = steps[1] - steps[0], values[1] - values[0]
    x = (point[0] - steps[0]) / across * _WIDTH if across else _WIDTH / 2
    y = _HEIGHT - 5 - (point[1] - values[0]) / up * (_HEIGHT - 10) if up else _HEIGHT / 2
    return f"{x:.1f},{y:.1f}"


def _finite(point: Sequence[float]) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in point)


def _curve(
    item: Mapping[str, Any], colours: Mapping[str, int], steps: Tuple[float, float], values: Tuple[float, float]
) -> str:
    """Return the lines of one curve: a new one where the steps go back, because the program has started again."""
    runs: List[List[str]] = []
    before = math.inf
    for point in filter(_finite, item["points"]):
        if point[0] < before:
            runs.append([])
        before = point[0]
        runs[-1].append(_place(point, steps, values))
    return "".join(
        f'<polyline class="c{_colour(item, colours)}" data-name="{text(item["task"])}" stroke-linecap="round" '
        f'points="{" ".join(run if len(run) > 1 else run * 2)}"/>'
        for run in runs
    )


def draw_spark(curve: Optional[Sequence[Any]]) -> str:
    """Return the points of a sparkline, as SVG's polyline takes them; empty if there is no curve."""
    found = curve[1] if curve and len(curve) == 2 else ()
    values = [value for value in found if _finite((value,))]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    across, up = SPARK_WIDTH / (len(values) - 1), (_SPARK_HEIGHT - 4) / (high - low) if high > low else 0.0
    return " ".join(
        f"{number * across:.1f},{_SPARK_HEIGHT - 2 - (value - low) * up:.1f}" for number, value in enumerate(values)
    )


def number_text(value: Any) -> str:
    """Return a number for people: at most four digits behind leading zeros, whole numbers as they are."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def draw_meter(now: Optional[float], peak: Optional[float], given: Optional[float], form: str) -> str:
    """Return the use of a resource against what was given, as text and as a bar; empty if nothing is known.

    Parameters
    ----------
    now, peak, given : float or None
    form : str
        Of the numbers, such as ``.1f``.
    """
    if now is None and peak is None:
        return ""
    shown = f"{now:{form}}" if now is not None else ""
    if peak is not None:
        shown += f" ({peak:{form}})" if shown else f"peak {peak:{form}}"
    if not given:
        return shown

    def width(value: Optional[float]) -> float:
        return min(100.0, 100.0 * (value or 0.0) / given)

    look = "high" if (peak or 0.0) >= 0.9 * given and form == ".0f" else "peak"
    return (
        f'{shown} of {given:g}<svg class="meter" aria-hidden="true"><rect class="track" width="100%" height="5"/>'
        f'<rect class="{look}" width="{width(peak):.1f}%" height="5"/>'
        f'<rect class="now" width="{width(now):.1f}%" height="5"/></svg>'
    )

"""The drawings of the job's page as inline SVG: bars of the timeline, curves of metrics, meters. Pure functions."""

import html
import math
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..common.clock import duration, utc_clock
from ..common.escaping import escape_controls
from ..common.status import ALLOCATED, ENDS, FAILED, KILLED, LOST, REGISTERED, REQUESTED, RUNNING, STOPPED, SUCCEEDED

#: How the page shows the time after an event: the look of the bar, and what the task does then.
_LOOKS = {
    REQUESTED: ("queue", "waits for its container"), ALLOCATED: ("starting", "its container starts"),
    REGISTERED: ("ready", "waits for the other tasks"), RUNNING: ("run", "runs"),
    FAILED: ("down", "has failed"), LOST: ("down", "is lost"), STOPPED: ("down", "is stopped"),
    KILLED: ("down", "is killed"), SUCCEEDED: ("", "has succeeded"),
}  # fmt: skip
_LEGEND = (("queue", "waits for its container"), ("starting", "starts"), ("ready", "waits for others"), ("run", "runs"),
           ("down", "between two starts"), ("mark succeeded", "succeeded"), ("mark failed", "failed or lost"))
_COLOURS = 8
#: Size of a plot in its own units; it is stretched to the page.
_WIDTH, _HEIGHT = 300.0, 130.0


def text(value: Any) -> str:
    """Return a value as text of HTML, for elements and quoted attributes; control characters are shown escaped."""
    return html.escape(escape_controls(str(value)), quote=True)


class _Bar(NamedTuple):
    look: str
    begin: float
    end: float
    tip: str


def draw_timeline(document: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    """Return one bar for each task from the submission to the end; hovering over a piece tells times, host and exit.

    Parameters
    ----------
    document : mapping
        Of ``status.json``.
    tasks : sequence of mapping
        Its tasks that are drawn.
    """
    moments = [event["at"] for task in tasks for event in task.get("events") or ()]
    end = document.get("finished_at") or document.get("at") or max(moments, default=0.0)
    started = document.get("started_at") or min(moments, default=end)
    begin = document.get("submitted_at") or started
    end = max([end, begin + 1.0, *moments])
    rows = "".join(_row(task, begin, started, end, document.get("submitted_at")) for task in tasks)
    legend = "".join(f'<span><svg aria-hidden="true"><rect class="{look}" width="12" height="12" rx="2"/></svg>{words}'
                     "</span>" for look, words in _LEGEND)
    axis = f"<span>{utc_clock(begin)}</span><span>{utc_clock((begin + end) / 2)}</span><span>{utc_clock(end)}</span>"
    return f'{rows}<div class="axis">{axis}</div><div class="legend">{legend}</div>'


def _row(task: Mapping[str, Any], begin: float, started: float, end: float, submitted: Optional[float]) -> str:
    name, events = task["task"], _events(task)
    bars: List[_Bar] = []
    if submitted:
        tip = f"{name}: the job waits in the queue\n{_span(submitted, started)}"
        bars.append(_Bar("queue", submitted, started, tip))
    marks = []
    for number, event in enumerate(events):
        following = events[number + 1] if number + 1 < len(events) else None
        look, words = _LOOKS.get(event["kind"], ("", event["kind"]))
        until = following["at"] if following else end
        if event["kind"] in ENDS:
            marks.append((event, _ending(name, event)))
            if following is None:
                continue
        ending = f"\n{_how(following)}" if following and event["kind"] == RUNNING and following["kind"] in ENDS else ""
        tip = f"{name} {words}{_where(event)}\n{_span(event['at'], until)}{_because(event)}{ending}"
        bars.append(_Bar(look, event["at"], until, tip))
    scale = 100.0 / (end - begin)
    drawn = "".join(
        f'<rect class="{bar.look}" x="{(bar.begin - begin) * scale:.3f}%" y="2" height="14" '
        f'width="{max(0.15, (bar.end - bar.begin) * scale):.3f}%" data-tip="{text(bar.tip)}"/>'
        for bar in bars if bar.look and bar.end >= bar.begin)
    drawn += "".join(
        f'<rect class="mark {text(event["kind"])}" x="{min(99.4, (event["at"] - begin) * scale):.3f}%" y="0" '
        f'width="0.6%" height="18" data-tip="{text(tip)}"/>' for event, tip in marks)
    return (f'<div class="row" data-task="{text(name)}"><span class="name">{text(name)}</span>'
            f'<svg role="img" aria-label="{text(name)}: {text(task.get("state"))}">'
            f'<rect class="track" width="100%" y="2" height="14"/>{drawn}</svg></div>')


def _events(task: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """Return the events of a task; those of a report that has none are its last start and end."""
    if task.get("events"):
        return sorted(task["events"], key=lambda event: float(event["at"]))
    events: List[Mapping[str, Any]] = []
    if task.get("started_at"):
        events.append({"kind": RUNNING, "at": task["started_at"], "host": task.get("host")})
        if task.get("finished_at"):
            events.append({"kind": task.get("state"), "at": task["finished_at"], "host": task.get("host"),
                           "exit_code": task.get("exit_code"), "signal": task.get("signal")})
    return events


def _span(begin: float, end: float) -> str:
    return f"{utc_clock(begin)} to {utc_clock(end)} UTC ({duration(end - begin)})"


def _where(event: Mapping[str, Any]) -> str:
    where = f" on {event['host']}" if event.get("host") else ""
    return where + (f", round {event['round']}" if event.get("round") else "")


def _because(event: Mapping[str, Any]) -> str:
    return f"\ncause: {event['cause']}" if event.get("cause") else ""


def _how(event: Mapping[str, Any]) -> str:
    if event.get("signal"):
        return f"{event['kind']}: signal {event['signal']}"
    code = event.get("exit_code")
    return str(event["kind"]) if code is None else f"{event['kind']}: exit code {code}"


def _ending(name: str, event: Mapping[str, Any]) -> str:
    return f"{name} {_how(event)}{_where(event)}\n{utc_clock(event['at'])} UTC{_because(event)}"


def draw_curves(name: str, series: Sequence[Mapping[str, Any]]) -> str:
    """Return the chart of a metric: one curve for each task, with its last value.

    Parameters
    ----------
    name : str
        Of the metric.
    series : sequence of mapping
        Of ``status.json``.
    """
    points = [point for item in series for point in item["points"] if _finite(point)]
    last = "".join(
        f'<span><svg aria-hidden="true"><rect class="c{min(number, _COLOURS - 1)}" width="12" height="12" rx="2"/>'
        f"</svg>{text(item['task'])} {text(number_text(item['value']))}</span>"
        for number, item in enumerate(series[:16]))
    more = f"<span>and {len(series) - 16} more tasks</span>" if len(series) > 16 else ""
    plot = ""
    if points:
        left, right = min(point[0] for point in points), max(point[0] for point in points)
        low, high = min(point[1] for point in points), max(point[1] for point in points)
        lines = "".join(_curve(item["points"], min(number, _COLOURS - 1), (left, right), (low, high))
                        for number, item in reversed(list(enumerate(series))))
        grid = "".join(f'<line class="grid" x1="0" x2="{_WIDTH:g}" y1="{y:g}" y2="{y:g}"/>' for y in (5, 65, 125))
        plot = (f'<div class="ends"><span>{number_text(high)}</span></div><svg class="plot" role="img" '
                f'aria-label="{text(name)}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none">'
                f'{grid}{lines}</svg><div class="ends"><span>{number_text(low)}</span>'
                f"<span>step {number_text(left)} to {number_text(right)}</span></div>")
    return (f'<figure data-metric="{text(name)}"><figcaption>{text(name)}</figcaption>{plot}'
            f'<div class="legend">{last}{more}</div></figure>')


def _finite(point: Sequence[float]) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in point)


def _curve(points: Sequence[Sequence[float]], colour: int, steps: Tuple[float, float],
           values: Tuple[float, float]) -> str:
    """Return the lines of one curve: a new one where the steps go back, because the program has started again."""
    across, up = steps[1] - steps[0], values[1] - values[0]
    runs: List[List[str]] = []
    before = math.inf
    for step, value in filter(_finite, points):
        if step < before:
            runs.append([])
        before = step
        x = (step - steps[0]) / across * _WIDTH if across else _WIDTH / 2
        y = _HEIGHT - 5 - (value - values[0]) / up * (_HEIGHT - 10) if up else _HEIGHT / 2
        runs[-1].append(f"{x:.1f},{y:.1f}")
    return "".join(
        f'<polyline class="c{colour}" points="{" ".join(run if len(run) > 1 else run * 2)}" stroke-linecap="round"/>'
        for run in runs)


def number_text(value: Any) -> str:
    """Return a number for people: at most four digits behind leading zeros, whole numbers as they are."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}"


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
    return (f'{shown} of {given:g}<svg class="meter" aria-hidden="true"><rect class="track" width="100%" height="5"/>'
            f'<rect class="{look}" width="{width(peak):.1f}%" height="5"/>'
            f'<rect class="now" width="{width(now):.1f}%" height="5"/></svg>')

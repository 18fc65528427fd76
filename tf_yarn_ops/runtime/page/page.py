"""The page of a job: `render_page`, a pure function from the document of ``status.json`` to one self-contained page.

The coordinator serves it below the tracking URL; the history renders the same page of a job that has ended. Every value
comes from programs and people, so each one is escaped, and a content security policy forbids every script but ours.
Documents of the history may lack keys.
"""

import base64
import functools
import hashlib
import json
import pkgutil
import re
from typing import Any, Dict, List, Mapping, Sequence

from ..common.clock import duration, utc_clock
from ..common.status import LIVE_TASK
from . import drawing
from .drawing import text

#: Tasks that the page shows; the others stand in status.json.
MAX_TASKS = 100
#: Metrics that the page shows.
MAX_CHARTS = 48
#: TensorBoard's page, relative to the coordinator's.
BOARD = "../tensorboard/"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
#: Tasks that tell most come first if not all are shown.
_RANK = {"failed": 0, "lost": 0, "pending": 1, "registered": 2, "running": 3}
_LINK = re.compile(r"https?://[^\s\"'<>]+\Z")


@functools.lru_cache(maxsize=None)
def _asset(name: str) -> str:
    content = pkgutil.get_data(__package__, name)
    assert content is not None
    return content.decode()


def _hash(content: str) -> str:
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def render_page(document: Mapping[str, Any], *, live: bool, before: str = "", place: str = "",
                board: str = BOARD) -> str:
    """Return the page of a job.

    Parameters
    ----------
    document : mapping
        Of ``status.json``, or a report.
    live : bool
        Whether the page renews itself from ``parts.json``, and offers the ends of the logs from ``log.txt``.
    before : str, optional
        HTML in front of the page, such as links; it is not escaped. Default: nothing.
    place : str, optional
        The folder of these two, with a slash at its end. Default: beside the page.
    board : str, optional
        The address of TensorBoard. Default: the one beside the coordinator's page.

    Returns
    -------
    str
        HTML without references to other files.
    """
    style, script = _asset("page.css"), _asset("page.js")
    policy = ("default-src 'none'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
              f"style-src {_hash(style)}; script-src {_hash(script)}")
    values = {
        **render_parts(document, live=live, board=board), "title": text(_title(document)), "place": text(place),
        "policy": policy, "style": style, "script": script, "before": before,
        "reload": '<noscript><meta http-equiv="refresh" content="10"></noscript>' if live else "",
    }
    return _PLACE.sub(lambda place: values[place[1]], _asset("page.html"))


def render_parts(document: Mapping[str, Any], *, live: bool, board: str = BOARD) -> Dict[str, str]:
    """Return the parts of the page that change, as HTML by the id of their element; arguments as in `render_page`.

    The part ``live`` is ``false`` if the page needs no more news.
    """
    shown = _most_telling(document.get("tasks") or ())
    more = len(document.get("tasks") or ()) - len(shown)
    rest = f'<p class="dim">and {more} more tasks</p>' if more else ""
    return {
        "live": "true" if live else "false",
        "head": _head(document, board),
        "verdict": _verdict(document),
        "timeline": drawing.draw_timeline(document, shown) + rest,
        "tasks": _tasks(shown, live) + rest,
        "metrics": _metrics(document),
        "cluster": _cluster(document.get("cluster_spec") or {}),
        "options": _listing(document.get("options") or {}),
        "versions": _table(document.get("versions") or {}),
        "foot": _foot(document),
    }


def _most_telling(tasks: Sequence[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    """Return at most `MAX_TASKS` tasks, failed and waiting ones rather than others, in the order of the request."""
    if len(tasks) <= MAX_TASKS:
        return list(tasks)
    ranks = sorted(range(len(tasks)), key=lambda number: (_RANK.get(tasks[number]["state"], 4), number))
    return [tasks[number] for number in sorted(ranks[:MAX_TASKS])]


def _state(document: Mapping[str, Any]) -> str:
    return str(document.get("reason") or document.get("state") or "")


def _title(document: Mapping[str, Any]) -> str:
    return f"{document.get('name') or 'job'}: {_state(document)}"


def _head(document: Mapping[str, Any], board: str) -> str:
    application, reason = document.get("application_id"), document.get("reason")
    look = "succeeded" if reason == "SUCCEEDED" else "failed" if reason else "running"
    sentence = document.get("sentence") or document.get("message") or ""
    facts = [f"{key} {text(document[key])}" for key in ("queue", "user") if document.get(key)]
    if document.get("queue_seconds") is not None:
        facts.append(f"{text(duration(document['queue_seconds']))} in the queue")
    if document.get("output_path"):
        facts.append(f"output {text(document['output_path'])}")
    if document.get("tensorboard_url"):
        facts.append(f'<a href="{text(board)}">TensorBoard</a>' if not reason else "")
    waiting = document.get("waiting") or {}
    missing = list(waiting.get("tasks") or ())
    listed = f'<p class="dim" id="waiting">Missing: {text(", ".join(missing[:20]))}</p>' if len(missing) > 1 else ""
    badge = f'<span class="badge {look}">{text(_state(document))}</span>'
    return (f'<h1>{text(document.get("name") or application)} {badge}</h1>'
            f'<small data-application="{text(application)}" data-title="{text(_title(document))}">'
            f"{text(application)}</small>"
            f'<p class="sentence">{text(sentence)}</p>{listed}<p class="dim">{" · ".join(filter(None, facts))}</p>')


def _verdict(document: Mapping[str, Any]) -> str:
    verdict = document.get("verdict")
    if not verdict:
        return ""
    good = verdict.get("reason") == "SUCCEEDED"
    command = verdict.get("next")
    following = f"<p>Next: {text(verdict.get('hint'))}" + (f" <code>{text(command)}</code>" if command else "") + "</p>"
    tails = "" if good else "".join(
        f"<h3>Last lines of {text(task['task'])}</h3><pre>{text(task['log_tail'])}</pre>"
        for task in document.get("tasks") or () if task.get("log_tail") and task["task"] == verdict.get("task"))
    told = f"<b>{text(verdict.get('reason'))}</b>: {text(verdict.get('message'))}"
    return f'<div class="good">{told}</div>' if good else f'<div class="bad">{told}{following}{tails}</div>'


def _tasks(tasks: Sequence[Mapping[str, Any]], live: bool) -> str:
    rows = "".join(_task(task, live) for task in tasks)
    return ("<table><thead><tr><th>task</th><th>state</th><th class=spare>host</th><th>starts</th><th>exit</th>"
            "<th>CPU, cores now (peak) of given</th><th>memory, MiB now (peak) of given</th><th>log</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>")


def _task(task: Mapping[str, Any], live: bool) -> str:
    state = str(task.get("state") or "")
    ended = state not in LIVE_TASK
    exit_text = f"signal {task['signal']}" if task.get("signal") else (
        "" if task.get("exit_code") is None else str(task["exit_code"]))
    usage, given = task.get("usage") or {}, task.get("given") or {}
    seconds = task.get("cpu_seconds")
    cpu = drawing.draw_meter(None if ended else usage.get("cpu_cores"), usage.get("peak_cpu_cores"),
                             given.get("vcores"), ".1f")
    if ended and seconds is not None:
        cpu = f"{text(duration(seconds))} CPU{cpu and ', ' + cpu}"
    peak = task.get("peak_memory_mib") if ended else usage.get("peak_memory_mib")
    memory = drawing.draw_meter(None if ended else usage.get("memory_mib"), peak, given.get("memory_mib"), ".0f")
    url = str(task.get("log_url") or "")
    link = f'<a href="{text(url)}">all</a> ' if _LINK.match(url) else ""
    end = f'<button type="button" data-log="{text(task["task"])}">end</button>' if live and task.get("host") else ""
    return (f'<tr data-task="{text(task["task"])}"><td>{text(task["task"])}</td>'
            f'<td class="{text(state)}">{text(state)}</td><td class="spare">{text(task.get("host") or "")}</td>'
            f'<td>{text(task.get("starts") or "")}</td><td>{text(exit_text)}</td><td>{cpu}</td><td>{memory}</td>'
            f"<td>{link}{end}</td></tr>")


def _metrics(document: Mapping[str, Any]) -> str:
    curves: Dict[str, List[Mapping[str, Any]]] = {}
    for series in document.get("series") or ():
        curves.setdefault(series["name"], []).append(series)
    charts = "".join(drawing.draw_curves(name, curves[name]) for name in list(curves)[:MAX_CHARTS])
    values = "" if curves else _table(document.get("metrics") or {})
    if not (charts or values):
        return ('<p class="dim">None. A program appends lines such as <code>{"step": 100, "loss": 0.3}</code> to '
                "<code>$YTF_METRICS_FILE</code>.</p>")
    left_out = document.get("metrics_left_out")
    note = f'<p class="dim">{text(left_out)} lines or values were left out: broken, too long or too many.</p>' if (
        left_out) else ""
    hidden = f'<p class="dim">and {len(curves) - MAX_CHARTS} more metrics</p>' if len(curves) > MAX_CHARTS else ""
    return f'<div class="charts">{charts}</div>{values}{hidden}{note}'


def _cluster(cluster: Mapping[str, Sequence[str]]) -> str:
    if not cluster:
        return '<p class="dim">Not published yet.</p>'
    return _table({name: ", ".join(hosts) for name, hosts in cluster.items()})


def _listing(value: Mapping[str, Any]) -> str:
    return f"<pre>{text(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _table(values: Mapping[str, Any]) -> str:
    """Return names and values as rows; an empty text if there are none."""
    rows = "".join(f'<tr><td>{text(name)}</td><td class="text">{text(value)}</td></tr>'
                   for name, value in values.items())
    return f"<table>{rows}</table>" if rows else ""


def _foot(document: Mapping[str, Any]) -> str:
    at = document.get("at") or document.get("finished_at")
    return f"Times are UTC. {f'As of {utc_clock(at)}.' if at else ''}"

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
import zlib
from typing import Any, Dict, List, Mapping, Sequence

from ..common.alerts import STEPS
from ..common.clock import duration, format_work, utc_clock
from ..common.report import describe_cost, run_seconds
from ..common.status import LIVE_TASK
from ..common.task_groups import SMALL_JOB, AlikeTasks, group_tasks, order_tasks
from ..common.web_address import safe_url
from . import drawing
from .drawing import text

#: Rows of tasks and groups that the page shows; the other tasks stand in status.json, and the filter finds them.
MAX_TASKS = 100
#: Metrics that the page shows.
MAX_CHARTS = 48
#: Characters of the logs' ends of tasks that did not fail first.
MAX_OTHER_TAILS = 100_000
#: TensorBoard's page, relative to the coordinator's.
BOARD = "../tensorboard/"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_FIND = (
    '<p><label>Filter <input id="find" type="search" placeholder="worker:7 failed node3" autocomplete="off">'
    "</label></p>"
)
#: Smooths the curves of a page, by its script.
SMOOTH = '<p><label>Smoothing <input id="smooth" type="range" min="0" max="0.95" step="0.05" value="0"></label></p>'


@functools.lru_cache(maxsize=None)
def asset(name: str) -> str:
    """Return the text of a file of this room."""
    content = pkgutil.get_data(__package__, name)
    assert content is not None
    return content.decode()


@functools.lru_cache(maxsize=None)
def page_policy() -> str:
    """Return the content security policy of the page: its own style and script, and requests to its own server."""
    return (
        "default-src 'none'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        f"style-src {_hash(asset('page.css'))}; script-src {_hash(asset('page.js'))}"
    )


def _hash(content: str) -> str:
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def render_page(
    document: Mapping[str, Any], *, live: bool, before: str = "", place: str = "", board: str = BOARD
) -> str:
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
        The address of TensorBoard; of a job that has ended the one where a POST starts it. Default: the one beside
        the coordinator's page, and none for a job that has ended.

    Returns
    -------
    str
        HTML without references to other files.
    """
    parts = render_parts(document, live=live, board=board)
    values = {
        **parts,
        "title": text(_title(document)),
        "place": text(place),
        "marks": ",".join(mark_parts(parts)),
        "policy": page_policy(),
        "style": asset("page.css"),
        "script": asset("page.js"),
        "before": before,
        "find": _FIND if len(document.get("tasks") or ()) > SMALL_JOB else "",
        "reload": '<noscript><meta http-equiv="refresh" content="10"></noscript>' if live else "",
    }
    return _PLACE.sub(lambda place: values[place[1]], asset("page.html"))


def render_parts(document: Mapping[str, Any], *, live: bool, board: str = BOARD, find: str = "") -> Dict[str, str]:
    """Return the parts of the page that change, as HTML by the id of their element; arguments as in `render_page`.

    The part ``live`` is ``false`` if the page needs no more news. With words in ``find`` timeline and table have the
    tasks in which each of them occurs, and no groups.
    """
    tasks = document.get("tasks") or ()
    troubled = [name for alert in document.get("alerts") or () for name in alert["tasks"]]
    groups = group_tasks(tasks, troubled)
    if find:
        groups = [AlikeTasks(task["task"], (task,)) for task in order_tasks(tasks, troubled) if _occurs(find, task)]
    shown = groups[:MAX_TASKS]
    more = sum(len(group.tasks) for group in groups[MAX_TASKS:])
    rest = f'<p class="dim">and {more} more tasks</p>' if more else ""
    if document.get("omitted_tasks"):
        rest += f'<p class="dim">and {int(document["omitted_tasks"])} more tasks, which this report omits</p>'
    return {
        "live": "true" if live else "false",
        "head": _head(document, board),
        "verdict": _verdict(document),
        "alerts": _alerts(document),
        "timeline": drawing.draw_timeline(document, shown) + rest,
        "tasks": _tasks(shown, live) + rest,
        "metrics": _metrics(document),
        "cluster": _cluster(document.get("cluster_spec") or {}),
        "options": f"<pre>{text(json.dumps(document.get('options') or {}, indent=2, ensure_ascii=False))}</pre>",
        "versions": _table(document.get("versions") or {}),
        "foot": _foot(document),
    }


def mark_parts(parts: Mapping[str, str]) -> Dict[str, str]:
    """Return the name of each part by its mark, which is another one after each change of the part."""
    return {f"{name}:{zlib.crc32(part.encode()):x}": name for name, part in parts.items()}


def changed_parts(parts: Mapping[str, str], known: str) -> Dict[str, Any]:
    """Return the answer for a page: the marks of all parts, and the parts whose marks are not among the known ones.

    Parameters
    ----------
    parts : mapping of str to str
        Of `render_parts`.
    known : str
        The marks of the page's parts, separated by commas.
    """
    marks, old = mark_parts(parts), set(known.split(","))
    return {"marks": ",".join(marks), **{name: parts[name] for mark, name in marks.items() if mark not in old}}


def _occurs(find: str, task: Mapping[str, Any]) -> bool:
    words = f"{task['task']} {task.get('state')} {task.get('host') or ''}".lower()
    return all(word in words for word in find.lower().split())


def _state(document: Mapping[str, Any]) -> str:
    return str(document.get("reason") or document.get("state") or "")


def _title(document: Mapping[str, Any]) -> str:
    return f"{document.get('name') or 'job'}: {_state(document)}"


def _head(document: Mapping[str, Any], board: str) -> str:
    application, reason = document.get("application_id"), document.get("reason")
    look = "succeeded" if reason == "SUCCEEDED" else "failed" if reason else "running"
    sentence = document.get("sentence") or document.get("message") or ""
    queued, ran = document.get("queue_seconds"), run_seconds(document, document.get("at"))
    has_run = ran is not None and (document.get("started_at") or reason)
    how = "ran" if reason else "running for"
    output, work = document.get("output_path"), document.get("working_path")
    facts = [
        *(f"{key} {text(document[key])}" for key in ("queue", "user") if document.get(key)),
        f"{text(duration(queued))} in the queue" if queued is not None else "",
        f"{how} {text(duration(ran))}" if has_run else "",
        *(f"{value} {unit}" for unit, value in describe_cost(document).items() if value),
        text(document.get("progress") or ""),
        f"output {text(output)}" if output else "",
        f"work {text(format_work(work, document.get('working_bytes')))}" if work else "",
        f'<a href="{text(board)}">TensorBoard</a>' if document.get("tensorboard_url") and not reason else "",
    ]
    button = f'<form method="post" action="{text(board)}"><button>Start TensorBoard</button></form>'
    start = button if reason and board not in ("", BOARD) else ""
    missing = list((document.get("waiting") or {}).get("tasks") or ())
    listed = f'<p class="dim" id="waiting">Missing: {text(", ".join(missing[:20]))}</p>' if len(missing) > 1 else ""
    lasting = safe_url(document.get("lasting_page"))
    home = f' data-home="{text(lasting)}"' if lasting else ""
    badge = f'<span class="badge {look}">{text(_state(document))}</span>'
    return (
        f"<h1>{text(document.get('name') or application)} {badge}</h1>"
        f'<small data-application="{text(application)}" data-title="{text(_title(document))}"{home}>'
        f"{text(application)}</small>"
        f'<p class="sentence">{text(sentence)}</p>{listed}<p class="dim">{" · ".join(filter(None, facts))}</p>{start}'
    )


def _verdict(document: Mapping[str, Any]) -> str:
    verdict = document.get("verdict")
    if not verdict:
        return ""
    good = verdict.get("reason") == "SUCCEEDED"
    command = verdict.get("next")
    following = f"<p>Next: {text(verdict.get('hint'))}" + (f" <code>{text(command)}</code>" if command else "") + "</p>"
    headline = f"<b>{text(verdict.get('reason'))}</b>: {text(verdict.get('message'))}"
    tasks = order_tasks(document.get("tasks") or ())
    first = [task for task in tasks if task["task"] == verdict.get("task") and task.get("log_tail") and not good]
    tail = "".join(f"<h2>Last lines of {text(task['task'])}</h2>{_tail(task)}" for task in first)
    box = f'<div class="good">{headline}</div>' if good else f'<div class="bad">{headline}{following}{tail}</div>'
    return box + _other_tails(
        [task for task in tasks if task.get("log_tail") and task not in first], str(document.get("application_id"))
    )


def _tail(task: Mapping[str, Any]) -> str:
    """Return the end of a log in a box that opens at its last line."""
    return (
        f'<div class="tail" tabindex="0" role="region" aria-label="Last lines of {text(task["task"])}">'
        f"<pre>{text(task['log_tail'])}</pre></div>"
    )


def _other_tails(tasks: Sequence[Mapping[str, Any]], application: str) -> str:
    shown, left = "", MAX_OTHER_TAILS
    for number, task in enumerate(tasks):
        left -= len(task["log_tail"])
        if left < 0:
            shown += f'<p class="dim">and {len(tasks) - number} more: <code>ytf logs {text(application)}</code></p>'
            break
        shown += f"<details><summary>{text(task['task'])}, {text(task['state'])}</summary>{_tail(task)}</details>"
    return f"<details><summary>Last lines of the other tasks</summary>{shown}</details>" if tasks else ""


def _alerts(document: Mapping[str, Any]) -> str:
    excluded = [f"Node {node} is excluded: {why}" for node, why in (document.get("excluded_nodes") or {}).items()]
    items = "".join(
        f"<li>{text(sentence)}</li>"
        for sentence in (*(alert["text"] for alert in document.get("alerts") or ()), *excluded)
    )
    return f"<ul>{items}</ul>" if items else ""


def _tasks(groups: Sequence[AlikeTasks], live: bool) -> str:
    """Return the table; a page that asks nobody has the members of each group too, and its filter shows them."""
    gpus = any((task.get("usage") or {}).get("gpus") for group in groups for task in group.tasks)
    heads = [
        "task",
        "state",
        "host",
        "starts",
        "exit",
        "CPU, cores now (peak) of given",
        "memory, MiB now (peak) of given",
        *(["GPU, use and memory"] if gpus else []),
    ]
    columns = "".join(
        f'<th{" class=spare" * (head == "host")}><button type="button">{head}</button></th>' for head in heads
    )
    left, rows = MAX_TASKS, ""
    for group in groups:
        rows += _task(group.tasks[0], live, gpus) if len(group.tasks) == 1 else _group(group, gpus)
        if len(group.tasks) > 1 and not live:
            rows += "".join(_task(task, live, gpus, " data-member hidden") for task in group.tasks[:left])
            left = max(0, left - len(group.tasks))
    return f'<table class="sorted"><thead><tr>{columns}<th>log</th></tr></thead><tbody>{rows}</tbody></table>'


def _group(group: AlikeTasks, gpus: bool) -> str:
    first, number = group.tasks[0], len(group.tasks)
    state = str(first.get("state") or "")
    usages = [task.get("usage") or {} for task in group.tasks] if state in LIVE_TASK else []
    given = first.get("given") or {}
    find = f"{first['task'].partition(':')[0]}: {state}"
    return (
        f'<tr data-key="{text(group.name)}" data-group><td>{text(group.name)}</td>'
        f'<td class="{text(state)}">{number} {text(state)}</td><td class="spare"></td>'
        f"<td>{text(first.get('starts') or '')}</td><td>{text(_exit(first))}</td>"
        f"<td>{_mean(usages, 'cpu_cores', given.get('vcores'), '.1f')}</td>"
        f"<td>{_mean(usages, 'memory_mib', given.get('memory_mib'), '.0f')}</td>"
        f"{'<td>' + _mean(usages, 'gpu_percent', 100, '.0f') + '</td>' if gpus else ''}"
        f'<td><button type="button" data-find="{text(find)}" aria-label="show {text(group.name)}">show</button>'
        "</td></tr>"
    )


def _mean(usages: Sequence[Mapping[str, Any]], name: str, given: Any, form: str) -> str:
    """Return the mean and, as the peak, the highest value of equal tasks."""
    found = [usage[name] for usage in usages if usage.get(name) is not None]
    return drawing.draw_meter(sum(found) / len(found), max(found), given, form) if found else ""


def _exit(task: Mapping[str, Any]) -> str:
    if task.get("signal"):
        return f"signal {task['signal']}"
    return "" if task.get("exit_code") is None else str(task["exit_code"])


def _task(task: Mapping[str, Any], live: bool, gpus: bool, attributes: str = "") -> str:
    state, name = str(task.get("state") or ""), text(task["task"])
    ended = state not in LIVE_TASK
    usage, given = task.get("usage") or {}, task.get("given") or {}
    seconds = task.get("cpu_seconds")
    cpu = drawing.draw_meter(
        None if ended else usage.get("cpu_cores"), usage.get("peak_cpu_cores"), given.get("vcores"), ".1f"
    )
    if ended and seconds is not None:
        cpu = f"{text(duration(seconds))} CPU{cpu and ', ' + cpu}"
    peak = task.get("peak_memory_mib") if ended else usage.get("peak_memory_mib")
    memory = drawing.draw_meter(None if ended else usage.get("memory_mib"), peak, given.get("memory_mib"), ".0f")
    gpu = (
        (
            f"{usage['gpu_percent']:.0f} % of {text(usage['gpus'])}, {usage['gpu_memory_mib']:.0f} of "
            f"{usage['gpu_given_mib']:.0f} MiB"
        )
        if usage.get("gpus") and not ended
        else ""
    )
    gpu = f"<td title='{text(usage.get('gpu_uuids') or '')}'>{gpu}</td>"
    url = safe_url(task.get("log_url"))
    link = f'<a href="{text(url)}" aria-label="whole log of {name}">all</a> ' if url else ""
    end = (
        f'<button type="button" data-log="{name}" aria-label="end of the log of {name}">end</button> '
        f'<button type="button" data-stack="{name}" aria-label="stacks of {name}">stack</button>'
        if live and task.get("host")
        else ""
    )
    return (
        f'<tr data-key="{name}" data-task="{name}"{attributes}><td>{name}</td>'
        f'<td class="{text(state)}">{text(state)}</td><td class="spare">{text(task.get("host") or "")}</td>'
        f"<td>{text(task.get('starts') or '')}</td><td>{text(_exit(task))}</td><td>{cpu}</td><td>{memory}</td>"
        f"{gpu if gpus else ''}<td>{link}{end}</td></tr>"
    )


def _metrics(document: Mapping[str, Any]) -> str:
    curves: Dict[str, List[Mapping[str, Any]]] = {}
    for series in document.get("series") or ():
        if series["name"] != STEPS:
            curves.setdefault(series["name"], []).append(series)
    colours = {task["task"]: number for number, task in enumerate(document.get("tasks") or ())}
    charts = "".join(drawing.draw_curves(name, curves[name], colours) for name in list(curves)[:MAX_CHARTS])
    values = "" if curves else _table(document.get("metrics") or {})
    if not (charts or values):
        return (
            '<p class="dim">None. A program appends lines such as <code>{"step": 100, "loss": 0.3}</code> to '
            "<code>$YTF_METRICS_FILE</code>.</p>"
        )
    left_out = document.get("metrics_left_out")
    note = (
        f'<p class="dim">{text(left_out)} lines or values were left out: broken, too long or too many.</p>'
        if (left_out)
        else ""
    )
    hidden = f'<p class="dim">and {len(curves) - MAX_CHARTS} more metrics</p>' if len(curves) > MAX_CHARTS else ""
    return f'{SMOOTH if charts else ""}<div class="charts">{charts}</div>{values}{hidden}{note}'


def _cluster(cluster: Mapping[str, Sequence[str]]) -> str:
    rows = _table({name: ", ".join(hosts) for name, hosts in cluster.items()})
    return rows or '<p class="dim">Not published yet.</p>'


def _table(values: Mapping[str, Any]) -> str:
    """Return names and values as rows; an empty text if there are none."""
    rows = "".join(
        f'<tr><td>{text(name)}</td><td class="text">{text(value)}</td></tr>' for name, value in values.items()
    )
    return f"<table>{rows}</table>" if rows else ""


def _foot(document: Mapping[str, Any]) -> str:
    at = document.get("at") or document.get("finished_at")
    return f"Times are UTC. {f'As of {utc_clock(at)}.' if at else ''}"

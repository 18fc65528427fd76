"""The results of a training as a few lines of Java properties, for Oozie, make and shells.

``java.util.Properties`` reads the lines back unchanged, and so does every reader that splits a line at its first ``=``:
there is no escape sequence in them. Oozie replaces ``${wf:actionData('train')['message']}`` in the XML of the next
action by the value as it is, so a value holds no ``<``, ``>``, ``&`` and no ``${`` either.
"""

import json
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from ..errors import Fault, GeneralFault, SpecInvalid, why_unreadable
from ..runtime.common.escaping import CONTROLS
from ..runtime.common.report import JobReport, flatten
from .output import show

#: Bytes with line ends: the default limit of Oozie for the outputs of an action (``oozie.action.max.output.data``).
MAX_OUTPUT = 2048
#: The outputs, in their order; metrics come behind them, and ``message`` is the last.
OUTPUTS = ("status", "reason", "application_id", "exit_code", "output_path", "report_path", "tracking_url")
#: The number of outputs that the limit left out; there only if it is not 0.
LEFT_OUT = "left_out"
METRIC = "metric."
MESSAGE = "message"
#: Characters that `Properties` would escape, that are no text, or that mean something in the XML of Oozie.
_UNSAFE = re.compile(rf"[\\<>&{CONTROLS}]|\$(?=\{{)")
_BLANKS = re.compile(r"[\t\n\r\f ]+")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def outputs_of(report: JobReport, **others: str | None) -> dict[str, str]:
    """Return the outputs of a job that has ended.

    Parameters
    ----------
    report : JobReport
    **others : str, optional
        More outputs, such as ``report_path``; a name of `OUTPUTS` stands in its place, another one behind them.

    Returns
    -------
    dict of str to str
        Without the values that are not known. ``status`` is SUCCEEDED, FAILED or KILLED. ``exit_code`` is that of
        the reason. Metrics are ``metric.<name>``; the names of nested metrics are joined by dots.
    """
    known = {
        "status": report.final_status if report.final_status in ("SUCCEEDED", "FAILED", "KILLED") else "FAILED",
        "reason": report.reason.value if report.reason else None,
        "application_id": report.application_id,
        "exit_code": str(report.exit_code),
        "output_path": report.output_path,
        "tracking_url": report.tracking_url,
        **others,
    }
    order = dict.fromkeys([*OUTPUTS, *others])
    metrics = {
        METRIC + name: value if isinstance(value, str) else json.dumps(value)
        for name, value in named_metrics(report.metrics).items()
    }
    return {
        name: text
        for name, text in ({name: known.get(name) for name in order} | metrics | {MESSAGE: report.message}).items()
        if text
    }


def named_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metrics by names of letters, digits, ``_``, ``.`` and ``-``; dots join those of nested metrics."""
    flat = {name: value for name, value in flatten(metrics or {}) if value is not None}
    found: dict[str, Any] = {}
    for name, value in flat.items():
        plain = _NO_NAME.sub("_", name) or "_"
        while plain != name and (plain in flat or plain in found):
            plain += "_"
        found[plain] = value
    return found


def format_outputs(outputs: Mapping[str, str], limit: int = MAX_OUTPUT, first: Container[str] = ()) -> str:
    """Return the outputs as lines ``name=value``.

    Parameters
    ----------
    outputs : mapping of str to str
        The most important ones first.
    limit : int, optional
        The most bytes of all lines in UTF-8. Default 2048.
    first : container of str, optional
        The names that come before all but those of `OUTPUTS`.

    Returns
    -------
    str
        Characters that are not safe are replaced by ``_``, runs of blanks and line breaks by one blank. Lines that
        exceed the limit are left out, and ``left_out`` is their number; the message is shortened.
    """
    names = sorted(outputs, key=lambda name: (name not in OUTPUTS, name not in first))
    lines = [f"{name}={_plain(outputs[name])}\n" for name in names if name != MESSAGE]
    kept, left_out = _fitting(lines, limit)
    if left_out:
        # The line about them has at most as many digits as the number of all lines.
        kept, left_out = _fitting(lines, limit - len(f"{LEFT_OUT}={len(lines)}\n"))
        kept.append(f"{LEFT_OUT}={left_out}\n")
    room = limit - sum(len(line.encode()) for line in kept) - len(f"{MESSAGE}=\n")
    message = _plain(outputs.get(MESSAGE, "")).encode()[: max(room, 0)].decode(errors="ignore").rstrip()
    return "".join(kept) + (f"{MESSAGE}={message}\n" if message else "")


def write_output_file(target: str, text: str) -> None:
    """Write the lines of outputs to a file, or to stdout for ``-``.

    Raises
    ------
    SpecInvalid
        The file can't be written.
    """
    if target == "-":
        show(text, data=True, nl=False)
        return
    try:
        Path(target).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        sentence = f"{target!r} can't be written: {why_unreadable(error)}"
        raise SpecInvalid(Fault("output_properties", GeneralFault.SENTENCE, {"sentence": sentence})) from error


def _fitting(lines: list[str], limit: int) -> tuple[list[str], int]:
    """Return the lines that fit into the limit, each if there is room for it, and the number of the others."""
    kept: list[str] = []
    for line in lines:
        size = len(line.encode())
        if size <= limit:
            limit -= size
            kept.append(line)
    return kept, len(lines) - len(kept)


def _plain(text: str) -> str:
    return _UNSAFE.sub("_", _BLANKS.sub(" ", text)).strip()

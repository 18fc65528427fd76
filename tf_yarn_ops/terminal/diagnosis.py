"""A diagnosis as text for people: a line for each check, and below a complaint what to do; how its command ends."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ..runtime.common.escaping import escape_controls

#: Columns of the outcome and of the check's name.
_OUTCOME, _CHECK = 9, 16
_COLOURS = {"ok": "green", "warning": "yellow", "fault": "red", "skipped": "bright_black"}


def result_lines(result: Mapping[str, Any], width: int = 100) -> Iterator[str]:
    """Yield the lines of one check.

    Parameters
    ----------
    result : mapping
        An item of ``checks`` in the diagnosis as JSON.
    width : int, optional
        Characters of a line; longer words, such as URLs, stay whole. Default 100.
    """
    import click

    outcome = str(result["outcome"])
    word = click.style(f"{outcome:<{_OUTCOME}}", fg=_COLOURS.get(outcome))
    text = escape_controls("; ".join(str(result["message"]).splitlines()))
    first, *rest = _wrap(text, width - _OUTCOME - _CHECK) or [""]
    yield f"{word}{result['check']:<{_CHECK}}{first}"
    yield from (" " * (_OUTCOME + _CHECK) + line for line in rest)
    if result["advice"]:
        first, *rest = _wrap(escape_controls(str(result["advice"])), width - _OUTCOME - len("do: "))
        yield " " * _OUTCOME + f"do: {first}"
        yield from (" " * (_OUTCOME + len("do: ")) + line for line in rest)


def show_result(result: Mapping[str, Any]) -> None:
    """Write the lines of one check to stdout, as wide as the terminal."""
    import click

    for line in result_lines(result, max(80, shutil.get_terminal_size().columns)):
        click.echo(line)


def summary_line(diagnosis: Mapping[str, Any]) -> str:
    """Return the line that counts the outcomes of a diagnosis."""
    counts = {name: number for name, number in diagnosis["counts"].items() if number}
    plural = {"warning": "warnings", "fault": "faults"}
    return ", ".join(f"{number} {plural.get(name, name) if number > 1 else name}" for name, number in counts.items())


def leave(code: int, hanging: bool) -> int:
    """Return the exit code of a command that has made a diagnosis, or end the process with it.

    Parameters
    ----------
    code : int
    hanging : bool
        Whether a check still waits for a server. The usual end of a process would wait for its threads.
    """
    if hanging:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(30, width), break_long_words=False, break_on_hyphens=False)

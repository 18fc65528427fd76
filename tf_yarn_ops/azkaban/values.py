"""The values of a ``.job`` under their own names: whoever brought them, each once, each a text that can be passed on.

In come the properties of a job; out go `Value` by ``tf.*`` name, with the name that the
``.job`` used, which messages repeat.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..validation import parse_memory
from .keys import PREFIX, RESULT, find_key
from .properties import escape_letters, repair_mojibake

_HALF = re.compile("[\ud800-\udfff]")


class Value(NamedTuple):
    """A value, and the key of the ``.job`` that brought it."""

    text: str
    key: str


def own_values(properties: Mapping[str, str]) -> dict[str, Value]:
    """Give what the job says by ``tf.*`` keys; what a training upstream has said of itself is left out."""
    return {name: Value(text, name) for name, text in properties.items()
            if name.startswith(PREFIX) and not name.startswith(RESULT)}


def merge(own: Mapping[str, Value], aliases: Iterable[tuple[str, Value]], faults: list[str]) -> dict[str, Value]:
    """Put what aliases say beside a job's own keys; two that say different things are a fault."""
    merged = dict(own)
    for name, value in aliases:
        there = merged.get(name)
        if there is None:
            merged[name] = value
        elif not same(there.text, value.text):
            variable = variable_of(name)
            faults.append(f"{value.key}: {shown(value.text)} is not what {there.key} says, {shown(there.text)}; "
                          "give one of them" if variable is None else
                          f"{value.key}: its {variable} is not what {there.key} says; give one of them")
    return merged


def same(one: str, other: str) -> bool:
    """Tell whether two texts mean the same: as texts, as numbers, as amounts of memory."""
    one, other = one.strip(), other.strip()
    for read in (float, parse_memory):
        try:
            return read(one) == read(other)
        except ValueError:
            continue
    return one == other


def shown(text: str, length: int = 80) -> str:
    """Give a text for a message, not too long."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def variable_of(name: str) -> str | None:
    """Give the environment variable that a key sets; None for another key. No message shows its value."""
    found = find_key(name)
    return found.places.get("NAME") if found else None


def check_letters(values: Mapping[str, Value]) -> list[str]:
    """Give a fault for each value whose letters were lost on the way."""
    faults = []
    for name, value in values.items():
        variable = variable_of(name)
        what = shown(value.text) if variable is None else f"the value of {variable}"
        meant = repair_mojibake(value.text)
        if meant is not None:
            advice = (f"write {escape_letters(meant[:200])} for {shown(meant)}" if variable is None else
                      "write letters beyond ASCII as \\uXXXX")
            faults.append(f"{value.key}: {what} is UTF-8 that Azkaban has read as ISO-8859-1; in a .job {advice}")
        elif _HALF.search(value.text):
            faults.append(f"{value.key}: {what} holds half of a letter: beyond FFFF it takes two escapes")
        elif "\0" in value.text:
            faults.append(f"{value.key}: {what} holds a NUL character, which no process can be given")
    return faults


def readable(text: str) -> str:
    """Give a text whose unusable letters, which have their fault, can't be stumbled over again."""
    return _HALF.sub("?", text).replace("\0", "?")

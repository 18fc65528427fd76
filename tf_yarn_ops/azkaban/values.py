"""The values of a ``.job`` by the names of the table of keys.

In come the properties of a job; out go `Property` objects by ``tf.*`` names, each with its key in the ``.job`` for
messages.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import Fault, FaultCode
from ..validation import parse_memory
from .keys import KEY_PREFIX, RESULT, find_key
from .properties import escape_letters, repair_mojibake

_HALF = re.compile("[\ud800-\udfff]")


class PropertyFault(FaultCode):
    """Fault codes for a value of a ``.job`` as a text."""

    DIFFERENT = "{given} is not what {other} says, {before}; give one of them"
    DIFFERENT_VARIABLE = "its {variable} is not what {other} says; give one of them"
    GARBLED = "{what} is UTF-8 that Azkaban has read as ISO-8859-1; in a .job write {advice}"
    HALF_A_CHARACTER = "{what} holds half of a character; a character beyond FFFF takes two escapes"
    NUL = "{what} contains a NUL character, which can't be passed to a process"


class Property(NamedTuple):
    """A value, and the key of the ``.job`` that has it."""

    text: str
    key: str


def own_values(properties: Mapping[str, str]) -> dict[str, Property]:
    """Return the values of a job's ``tf.*`` keys, without the output properties of a training upstream."""
    return {name: Property(text, name) for name, text in properties.items()
            if name.startswith(KEY_PREFIX) and not name.startswith(RESULT)}


def merge(
    own: Mapping[str, Property], aliases: Iterable[tuple[str, Property]], faults: list[Fault]
) -> dict[str, Property]:
    """Return a job's own values with those of aliases; add a fault for each alias with another value."""
    merged = dict(own)
    for name, value in aliases:
        there = merged.get(name)
        if there is None:
            merged[name] = value
        elif not same(there.text, value.text):
            variable = variable_of(name)
            code, values = ((PropertyFault.DIFFERENT, {"given": shown(value.text), "before": shown(there.text)})
                            if variable is None else (PropertyFault.DIFFERENT_VARIABLE, {"variable": variable}))
            faults.append(Fault(value.key, code, {"other": there.key, **values}))
    return merged


def same(one: str, other: str) -> bool:
    """Return whether two texts mean the same: as texts, as numbers or as amounts of memory."""
    one, other = one.strip(), other.strip()
    for read in (float, parse_memory):
        try:
            return read(one) == read(other)
        except ValueError:
            continue
    return one == other


def shown(text: str, length: int = 80) -> str:
    """Return a text for a message, cut after ``length`` characters."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def variable_of(name: str) -> str | None:
    """Return the environment variable that a key sets, or None for another key. No message shows its value."""
    found = find_key(name)
    return found.places.get("NAME") if found else None


def check_letters(values: Mapping[str, Property]) -> list[Fault]:
    """Return a fault for each value that has lost characters on its way."""
    faults = []
    for name, value in values.items():
        variable = variable_of(name)
        what = shown(value.text) if variable is None else f"the value of {variable}"
        meant = repair_mojibake(value.text)
        if meant is not None:
            advice = (f"{escape_letters(meant[:200])} for {shown(meant)}" if variable is None else
                      "letters beyond ASCII as \\uXXXX")
            faults.append(Fault(value.key, PropertyFault.GARBLED, {"what": what, "advice": advice}))
        elif _HALF.search(value.text):
            faults.append(Fault(value.key, PropertyFault.HALF_A_CHARACTER, {"what": what}))
        elif "\0" in value.text:
            faults.append(Fault(value.key, PropertyFault.NUL, {"what": what}))
    return faults


def readable(text: str) -> str:
    """Return a text without the characters that `check_letters` reports as faults."""
    return _HALF.sub("?", text).replace("\0", "?")

"""The kinds of values that options take, each with its reader; modules use them as ``kinds.TEXT``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .validation import (
    parse_memory,
    read_amounts,
    read_choice,
    read_command,
    read_count,
    read_env,
    read_exit_codes,
    read_flag,
    read_part,
    read_seconds,
    read_source,
    read_sources,
    read_text,
    read_texts,
)


@dataclass(frozen=True)
class Kind:
    """What the values of an option are.

    Attributes
    ----------
    word : str
        ``text``, ``choice``, ``count`` (a whole number), ``seconds``, ``memory``, ``flag`` or ``part``; of several
        values: ``texts``, ``codes`` (exit codes), ``variables`` (names to texts), ``amounts`` (names to whole numbers)
        or ``sources`` (names to paths or URIs).
    read : callable
        Returns the field of what a user gives, or raises SpecInvalid.
    value : str
        The placeholder on the command line; if it is empty, the name of the option is.
    unit : str
        ``seconds`` or ``MiB``; empty for none.
    choices : tuple of str
        The words that a ``choice`` takes.
    verbatim : bool
        Whether every blank of a text counts.
    part : type, optional
        The `declaration.Part` whose fields are options too.
    """

    word: str
    read: Callable[[Any], Any]
    value: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    verbatim: bool = False
    part: type | None = None

    @property
    def many(self) -> bool:
        """Whether it has several values."""
        return self.word in ("texts", "codes", "variables", "amounts", "sources")


FLAG, MEMORY = Kind("flag", read_flag), Kind("memory", parse_memory, "<memory>", "MiB")
SECONDS = Kind("seconds", read_seconds, "<seconds>", "seconds")
TEXT, VERBATIM, SOURCE = Kind("text", read_text), Kind("text", read_text, verbatim=True), Kind("text", read_source)
COMMAND = Kind("text", read_command, verbatim=True)
TEXTS, CODES = Kind("texts", read_texts), Kind("codes", read_exit_codes, "<code,...>")
ENV = Kind("variables", read_env, "NAME=VALUE", verbatim=True)
AMOUNTS = Kind("amounts", read_amounts, "[TYPE:]NAME=AMOUNT")
SOURCES = Kind("sources", read_sources, "[NAME=]<path or URI>")


def count(least: int, unit: str = "") -> Kind:
    """Return the kind of whole numbers of at least ``least``."""
    return Kind("count", read_count(least), f"<{unit or 'n'}>", unit)


def choice(*words: str) -> Kind:
    """Return the kind that takes one of these words."""
    return Kind("choice", read_choice(*words), " | ".join(words), choices=words)


def part_of_job(part: type) -> Kind:
    """Return the kind of a part, which a mapping of its fields may replace."""
    return Kind("part", read_part(part), part=part)

"""The kinds of values that options take, each with its reader; modules use them as ``kinds.TEXT``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .validation import (
    FACTOR_RANGE,
    parse_count,
    parse_memory,
    read_amounts,
    read_choice,
    read_command,
    read_env,
    read_exit_codes,
    read_factor,
    read_flag,
    read_seconds,
    read_source,
    read_sources,
    read_text,
    read_texts,
)

STRING = {"type": "string"}
_DIGITS = r"^\s*\d+\s*$"


@dataclass(frozen=True)
class Kind:
    """What the values of an option are.

    Attributes
    ----------
    word : str
        ``text``, ``choice``, ``count`` (a whole number), ``seconds``, ``factor``, ``memory``, ``flag`` or ``part``; of
        several values: ``texts``, ``codes`` (exit codes), ``variables`` (names to texts), ``amounts`` (names to whole
        numbers) or ``sources`` (names to paths or URIs).
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
    schema : mapping
        The JSON Schema of what a user may give: it refuses nothing that ``read`` takes. Default: any text.
    """

    word: str
    read: Callable[[Any], Any]
    value: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    verbatim: bool = False
    part: type | None = None
    schema: Mapping[str, Any] = field(default_factory=lambda: STRING, hash=False)

    @property
    def many(self) -> bool:
        """Whether it has several values."""
        return self.word in ("texts", "codes", "variables", "amounts", "sources")


FLAG = Kind("flag", read_flag, schema={"type": "boolean"})
_MEMORY = {"type": ["number", "string"], "minimum": 0, "pattern": r"^\s*\d+(\.\d+)?\s*([kmgtKMGT]([iI]?[bB])?)?\s*$"}
MEMORY = Kind("memory", parse_memory, "<memory>", "MiB", schema=_MEMORY)
_SECONDS = {"type": ["number", "string"], "minimum": 0, "pattern": r"^\s*[+-]?[\d._]+([eE][+-]?\d+)?\s*$"}
SECONDS = Kind("seconds", read_seconds, "<seconds>", "seconds", schema=_SECONDS)
FACTOR = Kind("factor", read_factor, "<factor>", schema={**_SECONDS, "maximum": FACTOR_RANGE[1]})
TEXT, VERBATIM, SOURCE = Kind("text", read_text), Kind("text", read_text, verbatim=True), Kind("text", read_source)
COMMAND = Kind("text", read_command, verbatim=True, schema={**STRING, "pattern": r"\S"})
TEXTS = Kind("texts", read_texts, schema={"type": ["array", "string"], "items": STRING})
_CODE = {"minimum": 1, "maximum": 255, "pattern": _DIGITS}
_CODES = {"type": ["integer", "string", "array"], **_CODE, "items": {"type": ["integer", "string"], **_CODE}}
CODES = Kind("codes", read_exit_codes, "<code,...>", schema=_CODES)
_ENV = {
    "type": "object",
    "propertyNames": {"pattern": r"^(?!DTF_|YTF_|SKEIN_|TF_CONFIG$)[A-Za-z_][A-Za-z0-9_]*$"},
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
ENV = Kind("variables", read_env, "NAME=VALUE", verbatim=True, schema=_ENV)
_AMOUNTS = {"type": "object", "additionalProperties": {"type": ["integer", "string"]}}
AMOUNTS = Kind("amounts", read_amounts, "[TYPE:]NAME=AMOUNT", schema=_AMOUNTS)
_SOURCES = {"type": "object", "propertyNames": {"pattern": "^[^/]+$"}, "additionalProperties": STRING}
SOURCES = Kind("sources", read_sources, "[NAME=]<path or URI>", schema=_SOURCES)


def count(least: int, unit: str = "") -> Kind:
    """Return the kind of whole numbers of at least ``least``."""
    schema = {"type": ["integer", "string"], "minimum": least, "pattern": _DIGITS}
    return Kind("count", partial(parse_count, least=least), f"<{unit or 'n'}>", unit, schema=schema)


def choice(*words: str) -> Kind:
    """Return the kind that takes one of these words."""
    return Kind("choice", read_choice(*words), " | ".join(words), choices=words, schema={"enum": list(words)})

"""Readers of single values: what a door was given to what a frozen part keeps, or a ValueError.

A part names a reader for each field; `normalise` applies them and collects what is wrong.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from .errors import SpecInvalid

#: Linux allows 128 KiB for one environment string; the rest is left for the name.
MAX_STRING = 120 * 1024
#: What ``--dry_run`` prints in place of a secret.
MASK = "***"

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".zip")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MEMORY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*)\Z")
#: MiB per unit. Hadoop's and the seed's plain number is MiB; ``m`` and ``g`` are binary as in Java.
_MIB = {"": 1.0, "m": 1.0, "mb": 1.0, "mib": 1.0, "g": 1024.0, "gb": 1024.0, "gib": 1024.0,
        "k": 1 / 1024, "kb": 1 / 1024, "kib": 1 / 1024, "t": 1024.0**2, "tb": 1024.0**2, "tib": 1024.0**2}
_OURS = ("DTF_", "YTF_", "SKEIN_")


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Give `` (did you mean 'worker'?)`` for the nearest valid name, else an empty text."""
    near = difflib.get_close_matches(name, sorted(valid), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def parse_memory(value: int | str) -> int:
    """Read an amount of memory.

    Parameters
    ----------
    value : int or str
        MiB as a number (``8192``), or with a unit: ``512m``, ``8 GiB``, ``1.5g``.
        ``m``/``MB``/``MiB`` and ``g``/``GB``/``GiB`` are binary, as in Hadoop and Java.

    Returns
    -------
    int
        MiB, rounded up, at least 1.

    Raises
    ------
    ValueError
        When it is not a positive amount in a known unit.
    """
    text = str(value).strip()
    match = _MEMORY.match(text)
    scale = _MIB.get(match["unit"].lower()) if match else None
    if match is None or scale is None or isinstance(value, bool):
        raise ValueError(f"{value!r} is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)")
    mebibytes = -int(-float(match["number"]) * scale // 1)
    if mebibytes < 1:
        raise ValueError(f"{value!r} is no memory at all; at least 1 MiB is needed")
    return mebibytes


def parse_count(value: int | str, *, least: int = 1) -> int:
    """Read a whole number of at least ``least``; ValueError says what was given and what is allowed."""
    text = str(value).strip()
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or int(text) < least:
        raise ValueError(f"{value!r} is not a whole number of at least {least}")
    return int(text)


def check(faults: Iterable[str]) -> None:
    """Raise `SpecInvalid` with all faults, if there is any."""
    found = tuple(faults)
    if found:
        raise SpecInvalid(found)


@contextmanager
def noting(faults: list[str]) -> Iterator[None]:
    """Add what a look has against the request to the list, and go on."""
    try:
        yield
    except SpecInvalid as error:
        faults += error.faults


def normalise(instance: object, readers: dict[str, Callable[[object], object]]) -> list[str]:
    """Read each named field of a frozen value by its reader; give what was wrong with them."""
    faults = []
    for name, reader in readers.items():
        try:
            object.__setattr__(instance, name, reader(getattr(instance, name)))
        except (TypeError, ValueError) as error:
            faults.append(f"{name}: {error}")
    return faults


def brief(value: object) -> str:
    """Give a wrong value for a message: ``'x'``, or ``a list`` of what may hold variables and their secrets."""
    return f"a {type(value).__name__}" if isinstance(value, list | tuple | set | Mapping) else repr(value)


def read_memory(value: object) -> int:
    """Read MiB from a number or a text such as ``8 GiB``."""
    return parse_memory(value)  # type: ignore[arg-type]


def read_count(least: int) -> Callable[[object], int]:
    """Make a reader of whole numbers of at least ``least``."""
    return lambda value: parse_count(value, least=least)  # type: ignore[arg-type]


def read_seconds(value: object) -> float:
    """Read a number of seconds, 0 or more."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        seconds = math.nan
    if isinstance(value, bool) or not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{value!r} is not a number of seconds of at least 0")
    return seconds


def read_flag(value: object) -> bool:
    """Read true or false, refusing everything else."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def read_text(value: object) -> str:
    """Read a text that a process can be given: no NUL in it."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    if "\0" in value:
        raise ValueError(f"{value!r} holds a NUL character, which no process can be given")
    return value


def read_texts(value: object) -> tuple[str, ...]:
    """Read a list of texts; a single text is a list of one."""
    if isinstance(value, str):
        return (read_text(value),)
    if not isinstance(value, Iterable):
        raise ValueError(f"{value!r} is not a list of texts")
    return tuple(read_text(item) for item in value)


def optional(reader: Callable[[object], object]) -> Callable[[object], object]:
    """Make a reader that lets None, which means not given, pass."""
    return lambda value: None if value is None else reader(value)


def read_exit_codes(value: object) -> tuple[int, ...]:
    """Read exit codes from 1 to 255."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    codes = tuple(read_count(1)(code) for code in value)
    for code in codes:
        if code > 255:
            raise ValueError(f"{code} is not an exit code; 1 to 255")
    return codes


def read_env(value: object) -> dict[str, str]:
    """Read environment variables: names a shell takes, none of ours, values that Linux hands to a process."""
    if not isinstance(value, Mapping):
        raise ValueError(f"a {type(value).__name__} is not a mapping of variables to texts")  # values may be secrets
    wrong = [name for name in value if not isinstance(name, str) or not _VARIABLE.match(name)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not the name of an environment variable")
    ours = [name for name in value if name.startswith(_OURS) or name == "TF_CONFIG"]
    if ours:
        raise ValueError(f"{', '.join(ours)} would be overwritten: the tasks get it from tf_yarn_ops")
    unset = [name for name, text in value.items() if text is None]
    if unset:
        raise ValueError(f"{', '.join(unset)} has no value; give '' for an empty text")
    env = {name: str(text).lower() if isinstance(text, bool) else str(text) for name, text in value.items()}
    broken = [name for name, text in env.items() if "\0" in text]
    if broken:
        raise ValueError(f"{broken[0]} holds a NUL character, which no process can be given")
    masked = [name for name, text in env.items() if text == MASK]
    if masked:
        raise ValueError(f"{', '.join(masked)}: the value was masked by --dry_run; give it with --env, or in the file")
    long = [name for name, text in env.items() if len(text.encode()) > MAX_STRING]
    if long:
        raise ValueError(f"{long[0]} is longer than {MAX_STRING // 1024} KiB, more than Linux hands to a process")
    return env


def read_command(value: object) -> str:
    """Read a command that is neither empty nor longer than an argument may be."""
    command = read_text(value)
    if not command.strip():
        raise ValueError("the command is empty")
    if len(command.encode()) > MAX_STRING:
        raise ValueError(f"the command is longer than {MAX_STRING // 1024} KiB; put it into a script")
    return command


def read_sources(value: object) -> dict[str, str]:
    """Read names in the working directory and where each comes from."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is not a mapping of names to paths or URIs")
    for name, source in value.items():
        if not name or "/" in name or name in (".", "..") or name.startswith((".skein", ".ytf")):
            raise ValueError(f"{name!r} can't be a file's name in the container: no '/', no '.skein' or '.ytf' first")
        if not read_source(source):
            raise ValueError(f"{name!r} has no source")
    return dict(value)


def read_source(value: object) -> str:
    """Read a path or URI of a file."""
    source = read_text(value)
    try:
        urlsplit(source)
    except ValueError as error:
        raise ValueError(f"{source!r} is neither a path nor a URI: {error}") from error
    return source

"""Readers of single values: they turn the input of a user into the fields of a frozen dataclass.

A reader takes a value, and returns it in its final form or raises `SpecInvalid`. A frozen dataclass names a reader
for each of its fields; `normalise` applies them and collects the faults, each with the path of its value.
"""

import math
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from .errors import Fault, FaultCode, GeneralFault, SpecInvalid
from .runtime.common.contract import GPU, MAX_STRING
from .runtime.common.masking import MASK, mask_command

PartType = TypeVar("PartType")
Reader = Callable[[Any], Any]

#: The least and the largest factor by which something grows.
FACTOR_RANGE = (1.1, 10)
#: The largest number of digits in a number of a job.
_DIGITS = 20

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".zip")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MEMORY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<unit>[kmgtKMGT])(?:[iI]?[bB])?)?")
#: MiB per unit. A plain number is MiB, as in Hadoop and in the YARN-DTF design; ``m`` and ``g`` are binary as in Java.
_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_OURS = ("DTF_", "YTF_", "SKEIN_")
#: What YARN itself puts into the working directory of a container; a link of this name would hide or miss it.
_OF_YARN = ("container_tokens", "launch_container.sh", "tmp")
#: Bytes of a name; a node's file system takes 255, of which YARN uses some for a checksum file beside a remote file.
_MAX_NAME, _MAX_REMOTE_NAME = 255, 240
#: What YARN (``{{NAME}}`` becomes ``$NAME``) and bash do not take literally in the double quotes of a launch script.
_EXPANDED = re.compile(r'["$`\\\x00-\x1f\x7f]|\{\{')

#: The names of resources in YARN (ResourceUtils).
_RESOURCE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
_OWN_OPTIONS = {
    **dict.fromkeys(("memory", "memory-mb"), "task_memory"),
    **dict.fromkeys(("vcores", "cpu-vcores"), "task_vcores"),
    **dict.fromkeys(("gpu", GPU), "task_gpus"),
}


class ValueFault(FaultCode):
    """Fault codes for a single value."""

    NOT_MEMORY = "{given!r} is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)"
    TOO_LITTLE_MEMORY = "{given!r} is too little memory; give at least 1 MiB"
    LONG_NUMBER = "the number has too many digits"
    NOT_A_COUNT = "{given!r} is not a whole number of at least {least}"
    NOT_IN_THE_PAST = "{given!r} is not between 1970 and now"
    NOT_SECONDS = "{given!r} is not a number of seconds of at least 0"
    NOT_A_FACTOR = "{given!r} is neither a number from {least} to {most} nor 0, which is off"
    NOT_A_TIMESTAMP = "{given!r} is neither an age such as 90s, 10m, 2h or 7d nor a time such as 2026-11-22T17:05"
    NOT_A_FLAG = "{given!r} is neither true nor false"
    NOT_A_TEXT = "{given!r} is not a text"
    NOT_WRITTEN = "{given} is neither a text nor a number"
    NUL = "{given!r} contains a NUL character, which can't be passed to a process"
    NOT_UTF8 = "character {position} of the text is not UTF-8; convert the text to UTF-8"
    NOT_TEXTS = "{given!r} is not a list of texts"
    NOT_AN_EXIT_CODE = "{given} is not an exit code; give 1 to 255"
    NOT_A_MAPPING = "{given} is not a mapping of {what}"
    EMPTY_COMMAND = "the command is empty"
    LONG_COMMAND = "the command is longer than {most} KiB; put it into a script"
    NOT_A_VARIABLE = "{given!r} is not the name of an environment variable; use letters, digits and _, no digit first"
    RESERVED_VARIABLE = "tf_yarn_ops sets this variable for the tasks; use another name"
    YARN_VARIABLE = (
        "YARN reads this variable before a task has its own; give docker_image, docker_runtime, docker_tmpfs or "
        "docker_delayed_removal. The network is always host"
    )
    NO_VALUE = "the variable has no value; give '' for an empty text"
    NUL_IN_VARIABLE = "the value contains a NUL character, which can't be passed to a process"
    MASKED_COMMAND = "a secret in the command was masked by --dry_run; write the command with it"
    MASKED_VARIABLE = "the value was masked by --dry_run; give it with --env, or in the file"
    LONG_VARIABLE = "the value is longer than {most} KiB, more than Linux passes to a process"
    NOT_A_FILE_NAME = "{given!r} can't be a file name in the container: no '/' in it, and no '.skein' or '.ytf' first"
    FILE_NAME_OF_YARN = "{given!r} is a name of YARN's own in the working directory; give the file another: NAME=PATH"
    LONG_FILE_NAME = "the file name is longer than {most} bytes, or not UTF-8; give the file another: NAME=PATH"
    EXPANDED = (
        "{given!r} would be a part of YARN's launch script, where bash expands it; give one without double quote, $, "
        "backtick, backslash, {{{{ and control characters"
    )
    NOT_LOCALIZED = (
        "YARN can't link {given!r} on the nodes; rename it: no double quote, $, backtick, backslash, {{{{ or control "
        "character in its path, no colon in its last part, and at most {most} bytes of UTF-8 there"
    )
    NOT_A_RESOURCE = "{given!r} is not the name of a resource in YARN, such as yarn.io/fpga or example.com/accelerator"
    OWN_OPTION = "{given} has an option of its own, {option}"
    NO_SOURCE = "the file has no source; give a path or a URI"
    NOT_A_SOURCE = "{given!r} is neither a path nor a URI: {error}"


def invalid(code: FaultCode, **values: Any) -> SpecInvalid:
    """Return the error for a value that has no name yet."""
    return SpecInvalid(Fault("", code, values))


def _text_of_number(value: object) -> str:
    """Return a number as text; raise `SpecInvalid` if it has more digits than Python converts to a text or back."""
    if (isinstance(value, int) and abs(value) >= 10**_DIGITS) or (isinstance(value, str) and len(value) > 5 * _DIGITS):
        raise invalid(ValueFault.LONG_NUMBER)
    return str(value).strip()


def parse_memory(value: int | str) -> int:
    """Parse an amount of memory.

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
    SpecInvalid
        The value is not a positive amount in a known unit.
    """
    match = _MEMORY.fullmatch(_text_of_number(value))
    if match is None or isinstance(value, bool):
        raise invalid(ValueFault.NOT_MEMORY, given=value)
    mebibytes = -int(-float(match["number"]) * _MIB[(match["unit"] or "m").lower()] // 1)
    if mebibytes < 1:
        raise invalid(ValueFault.TOO_LITTLE_MEMORY, given=value)
    return mebibytes


def parse_count(value: int | str, *, least: int = 1) -> int:
    """Return a whole number of at least ``least``; raise `SpecInvalid` for every other value."""
    text = _text_of_number(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or int(text) < least:
        raise invalid(ValueFault.NOT_A_COUNT, given=value, least=least)
    return int(text)


def parse_since(text: str, now: float, zone: tzinfo | None = None) -> float:
    """Return the moment that an age or a time means.

    Parameters
    ----------
    text : str
        An age (``90s``, ``10m``, ``2h``, ``7d``, ``2w``), a day (``2026-11-22``), or a time in ISO 8601
        (``2026-11-22T17:05``).
    now : float
        Seconds since the epoch.
    zone : tzinfo, optional
        The zone of a day or time that names none. Default: local time.

    Returns
    -------
    float
        Seconds since the epoch.

    Raises
    ------
    SpecInvalid
        The text is none of these.
    """
    age = _AGE.fullmatch(text.strip())
    try:
        if age is not None:
            found = now - float(age[1]) * _SECONDS[age[2]]
        else:
            moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
            found = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):  # a day before the first year of the time zone
        raise invalid(ValueFault.NOT_A_TIMESTAMP, given=text) from None
    if not 0.0 <= found <= now + _SECONDS["d"]:
        raise invalid(ValueFault.NOT_IN_THE_PAST, given=text)
    return found


def check_faults(faults: Iterable[Fault]) -> None:
    """Raise `SpecInvalid` with all faults, if there are any."""
    if found := tuple(faults):
        raise SpecInvalid(found)


@contextmanager
def noting(faults: list[Fault], parent: str = "", **values: Any) -> Iterator[None]:
    """Add the faults that the block raises to the list, below the path ``parent``, and continue.

    ``values`` are added to those of each fault, such as its ``item``.
    """
    try:
        yield
    except SpecInvalid as error:
        found = [fault.below(parent) if parent else fault for fault in error.faults]
        faults += [replace(fault, values={**values, **fault.values}) for fault in found]


def normalise(instance: object, readers: Mapping[str, Reader]) -> list[Fault]:
    """Replace each named field of a frozen value by what its reader returns; return the faults."""
    faults: list[Fault] = []
    for name, reader in readers.items():
        try:  # as `noting` does, which takes longer than most readers
            object.__setattr__(instance, name, reader(getattr(instance, name)))
        except SpecInvalid as error:
            faults += [fault.below(name) for fault in error.faults]
    return faults


def brief(value: object) -> str:
    """Return a wrong value as text for a message: its repr, or the type of a collection, which may hold secrets."""
    return kind_of(value) if isinstance(value, list | tuple | set | Mapping) else repr(value)


def kind_of(value: object) -> str:
    """Return the type of a value, for a message that must not show the value: ``a list``, ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def not_a_mapping(value: object, what: str = "keys to values") -> SpecInvalid:
    """Return the error for a value that is not a mapping of ``what``."""
    return invalid(ValueFault.NOT_A_MAPPING, given=brief(value), what=what)


def read_part(part: type[PartType]) -> Callable[[Any], PartType]:
    """Return a reader of a frozen dataclass: an instance, or a mapping of its fields. None means not given.

    The reader refuses unknown keys, and reports them together with the faults of the known ones.
    """
    valid = tuple(field.name for field in fields(part))  # type: ignore[arg-type]

    def read(value: Any) -> PartType:
        if isinstance(value, part):
            return value
        if value is not None and not isinstance(value, Mapping):
            raise not_a_mapping(value)
        faults = [
            Fault(str(name), GeneralFault.UNKNOWN_KEY, {"given": str(name), "allowed": valid})
            for name in value or ()
            if name not in valid
        ]
        known = {name: item for name, item in (value or {}).items() if name in valid and item is not None}
        with noting(faults):
            made = part(**known)
        check_faults(faults)
        return made

    return read


def _finite_number(value: Any) -> float:
    """Return a finite number; NaN, which no range holds, for anything else."""
    _text_of_number(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan
    return math.nan if isinstance(value, bool) or not math.isfinite(number) else number


def read_seconds(value: Any) -> float:
    """Return a number of seconds, 0 or more."""
    if not (seconds := _finite_number(value)) >= 0:
        raise invalid(ValueFault.NOT_SECONDS, given=value)
    return seconds


def read_factor(value: Any) -> float:
    """Return a factor of `FACTOR_RANGE`, or 0."""
    least, most = FACTOR_RANGE
    if not ((factor := _finite_number(value)) == 0 or least <= factor <= most):
        raise invalid(ValueFault.NOT_A_FACTOR, given=value, least=least, most=most)
    return factor


def read_flag(value: object) -> bool:
    """Return true or false; refuse every other value."""
    if not isinstance(value, bool):
        raise invalid(ValueFault.NOT_A_FLAG, given=value)
    return value


def parse_flag(value: object) -> bool:
    """Return true or false from a bool or from one of their words: yes, no, on, off, 1, 0, in any case."""
    return read_flag(_FLAGS.get(value.strip().lower(), value) if isinstance(value, str) else value)


def read_choice(*choices: str) -> Callable[[object], str]:
    """Return a reader that takes one of these words."""

    def read(value: object) -> str:
        text = read_text(value)
        if text not in choices:
            raise invalid(GeneralFault.NOT_A_CHOICE, given=text, allowed=choices)
        return text

    return read


def read_text(value: object) -> str:
    """Return a text that can be passed to a process, as UTF-8: without a NUL character and half characters."""
    if not isinstance(value, str):
        raise invalid(ValueFault.NOT_A_TEXT, given=value)
    if "\0" in value:
        raise invalid(ValueFault.NUL, given=value)
    if position := unexpected_position(value):
        raise invalid(ValueFault.NOT_UTF8, position=position)
    return value


def unexpected_position(text: str) -> int:
    """Return the position of the first half of a character, which UTF-8 can't hold, from 1; 0 if there is none.

    Python reads bytes that are not UTF-8 as such halves, in arguments, variables and names of files.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start + 1
    return 0


def read_texts(value: object) -> tuple[str, ...]:
    """Return a tuple of texts; a single text is a list of one."""
    if isinstance(value, str):
        return (read_text(value),)
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise invalid(ValueFault.NOT_TEXTS, given=value)
    return tuple(read_text(item) for item in value)


def this_machine(file: str | Path) -> str:
    """Return this machine's name for a message about a file; with the folder in which a relative path was looked up."""
    return platform.node() + ("" if Path(file).is_absolute() else f", in {Path.cwd()}")


def optional(reader: Reader) -> Reader:
    """Return a reader that keeps None, which means not given."""
    return lambda value: None if value is None else reader(value)


def read_exit_codes(value: object) -> tuple[int, ...]:
    """Return exit codes from 1 to 255."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        value = (value,)
    codes = tuple(map(parse_count, value))
    if large := [code for code in codes if code > 255]:
        raise invalid(ValueFault.NOT_AN_EXIT_CODE, given=large[0])
    return codes


def read_env(value: object) -> dict[str, str]:
    """Return environment variables as texts; refuse reserved names, and names and values that Linux can't pass on."""
    if not isinstance(value, Mapping):
        raise invalid(ValueFault.NOT_A_MAPPING, given=kind_of(value), what="variables to texts")
    env = {name: str(text).lower() if isinstance(text, bool) else str(text) for name, text in value.items()}
    check_faults(fault for name, text in value.items() if (fault := _fault_of_variable(name, text, env[name])))
    return env


def read_amounts(value: object) -> dict[str, int]:
    """Return amounts of YARN's resources by their names; refuse those that have an option of their own."""
    if not isinstance(value, Mapping):
        raise invalid(ValueFault.NOT_A_MAPPING, given=kind_of(value), what="resources to amounts")
    faults: list[Fault] = []
    amounts: dict[str, int] = {}
    for name, amount in value.items():
        if other := _OWN_OPTIONS.get(str(name)):
            faults.append(Fault(str(name), ValueFault.OWN_OPTION, {"given": name, "option": other}))
        elif not _RESOURCE.fullmatch(str(name)):
            faults.append(Fault(str(name), ValueFault.NOT_A_RESOURCE, {"given": name}))
        else:
            with noting(faults, str(name)):
                amounts[str(name)] = parse_count(amount)
    check_faults(faults)
    return amounts


def _fault_of_variable(name: object, given: object, text: str) -> Fault | None:
    """Return the fault of a variable, or None. The value may be a secret, so the fault does not hold it."""
    path, kib = str(name), {"most": MAX_STRING // 1024}
    if not isinstance(name, str) or not _VARIABLE.match(name):
        return Fault(path, ValueFault.NOT_A_VARIABLE, {"given": name})
    if name.startswith(_OURS) or name == "TF_CONFIG":
        return Fault(path, ValueFault.RESERVED_VARIABLE)
    if name.startswith("YARN_CONTAINER_RUNTIME_"):
        return Fault(path, ValueFault.YARN_VARIABLE)
    if given is None:
        return Fault(path, ValueFault.NO_VALUE)
    if not isinstance(given, str | int | float):
        return Fault(path, ValueFault.NOT_WRITTEN, {"given": kind_of(given)})
    if "\0" in text:
        return Fault(path, ValueFault.NUL_IN_VARIABLE)
    if position := unexpected_position(text):
        return Fault(path, ValueFault.NOT_UTF8, {"position": position})
    if _was_masked(text):
        return Fault(path, ValueFault.MASKED_VARIABLE)
    return Fault(path, ValueFault.LONG_VARIABLE, kib) if len(text.encode()) > MAX_STRING else None


def _was_masked(text: str) -> bool:
    """Return whether `mask_command`, or the mask of a whole value, has made this text."""
    return text == MASK or (MASK in text and mask_command(text.replace(MASK, "x")) == text)


def read_command(value: object) -> str:
    """Return a command; refuse an empty one, and one that is too long for an argument of a process."""
    command = read_text(value)
    if not command.strip():
        raise invalid(ValueFault.EMPTY_COMMAND)
    if len(command.encode()) > MAX_STRING:
        raise invalid(ValueFault.LONG_COMMAND, most=MAX_STRING // 1024)
    if _was_masked(command):
        raise invalid(ValueFault.MASKED_COMMAND)
    return command


def read_sources(value: object) -> dict[str, str]:
    """Return the source of each file, a path or a URI, by its name in the working directory."""
    if not isinstance(value, Mapping):
        raise not_a_mapping(value, "names to paths or URIs")
    faults: list[Fault] = []
    for name, source in value.items():
        with noting(faults, str(name)):
            check_file_name(name)
            if not read_source(source):
                raise invalid(ValueFault.NO_SOURCE)
    check_faults(faults)
    return dict(value)


def check_file_name(name: object) -> None:
    """Raise `SpecInvalid` unless a file can have this name in the working directory of every container."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or name.startswith((".skein", ".ytf")):
        raise invalid(ValueFault.NOT_A_FILE_NAME, given=name)
    if name in _OF_YARN:
        raise invalid(ValueFault.FILE_NAME_OF_YARN, given=name)
    if not is_utf8(name, _MAX_NAME):
        raise invalid(ValueFault.LONG_FILE_NAME, most=_MAX_NAME)


def is_expanded(text: str) -> bool:
    """Return whether bash would not take a text literally in the launch script that YARN writes on the nodes."""
    return _EXPANDED.search(text) is not None


def is_utf8(text: str, most: int) -> bool:
    """Return whether a text has at most so many bytes in UTF-8; one with bytes of another encoding has none."""
    return not unexpected_position(text) and len(text.encode()) <= most


def read_source(value: object) -> str:
    """Return the path or URI of a file; refuse a URI whose path YARN's launch script would not take literally."""
    source = read_text(value)
    try:
        scheme = urlsplit(source).scheme
    except ValueError as error:
        raise invalid(ValueFault.NOT_A_SOURCE, given=source, error=str(error)) from error
    path = source.partition("://")[2].partition("/")[2]
    if path and scheme != "file":
        readings = (path, unquote(path))  # Skein's client decodes it
        names = [reading.rpartition("/")[2] for reading in readings]
        if any(map(is_expanded, readings)) or any(":" in name or not is_utf8(name, _MAX_REMOTE_NAME) for name in names):
            raise invalid(ValueFault.NOT_LOCALIZED, given=source, most=_MAX_REMOTE_NAME)
    return source

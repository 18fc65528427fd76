"""The boundary for what programs, reports, records and pages say: values that every reader can hold.

`plain_values` makes any value harmless: JSON of limited depth with integers of 64 bits, without NUL and halves of
characters. `read_fields` and `fit_document` read the fields of a class by its annotations, which are the table of
types, ranges and defaults. What does not fit is left out and logged once. The coordinator applies them, and each reader
again, because reports come from YARN as text.
"""

import contextlib
import enum
import errno
import functools
import io
import json
import math
import os
import re
import select
import stat
import types
from collections import abc
from typing import (
    Annotated,
    Any,
    BinaryIO,
    Callable,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from .web_address import safe_url

#: Containers within containers of what a program says, and of a document that holds it.
MAX_DEPTH, DOCUMENT_DEPTH = 32, 40
#: Characters of a text.
MAX_TEXT = 128 * 1024
#: Bytes of a file that somebody names, and seconds for which a pipe may be silent.
MAX_FILE, PIPE_SECONDS = 16 << 20, 10.0
#: The integers that Java, msgpack and databases hold; a larger one becomes a text.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
#: The largest number of a field: differences and sums of such numbers stay finite.
MAX_NUMBER = 1e300
#: Names of fields in a log line, at most.
_LOGGED = 8
_CUT = "..."
#: What `_SHAPE` leaves of a JSON text in which a value may not be plain. It makes ``!`` of escapes, NUL, NaN and
#: Infinity, zeros of digits, and a comma of all that stands before an integer.
_MARKS = (b"!", b'"__', b"," + b"0" * 19, b"e000")
_SHAPE = bytes.maketrans(b"\\\0NI123456789+E:[- \t\r\n", b"!!!!0000000000e,,,,,,,")
#: PostgreSQL and UTF-8 hold neither NUL nor the halves of characters beyond 16 bits.
_UNHELD = re.compile("[\\x00\\ud800-\\udfff]")
_TASK = re.compile(r"[^:]+:\d{1,9}\Z")
_CONTAINER = re.compile(r"container_[\w-]+\Z")


def parse_json(content: Union[str, bytes], repeated: bool = False) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    content : str or bytes
    repeated : bool, optional
        Whether a server of Hadoop wrote it: the entries of a map are one key, ``entry``, several times, and become a
        list. Default False.

    Raises
    ------
    ValueError
        It is not JSON, or nested deeper than Python reads.
    """
    try:
        return json.loads(content, object_pairs_hook=_keep_entries if repeated else None)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_plain(content: bytes) -> Any:
    """Return the plain values of a JSON text as `plain_values` does; nearly all have no others, which is soon seen."""
    value, shape = parse_json(content), b"," + content.translate(_SHAPE)
    shallow = content.count(b"[") + content.count(b"{") <= DOCUMENT_DEPTH and len(content) <= MAX_TEXT
    plain = shallow and content.isascii() and not any(map(shape.__contains__, _MARKS))
    return value if plain else plain_values(value)


def _keep_entries(pairs: List[Any]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs) and "entry" in found:
        found["entry"] = [value for key, value in pairs if key == "entry"]
    return found


def open_regular(path: Union[str, os.PathLike[str]]) -> BinaryIO:
    """Open a file that somebody else may have made; raise OSError for a pipe or a device, which could keep the reader.

    Parameters
    ----------
    path : str or path-like
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", os.path.basename(path))
    return open(descriptor, "rb")


def read_file(path: Union[str, os.PathLike[str]]) -> bytes:
    """Return the content of a small file that somebody names, or of a pipe such as that of bash's ``<(...)``.

    Raises
    ------
    OSError
        It can't be read, is longer than `MAX_FILE`, or is a pipe into which nobody writes for `PIPE_SECONDS`.
    ValueError
        No file can have such a name.
    """
    nonblocking = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer opens too
    with open(path, "rb", 0, opener=lambda name, flags: os.open(name, flags | nonblocking)) as file:
        regular, content = stat.S_ISREG(os.fstat(file.fileno()).st_mode), bytearray()
        seconds = None if file.isatty() else PIPE_SECONDS  # a person types when they like
        while len(content) <= MAX_FILE:
            if not regular and not select.select([file], [], [], seconds)[0]:
                raise OSError(errno.ETIMEDOUT, "nobody writes into this pipe", os.path.basename(path))
            part = file.read(1 << 20)
            if not part:
                return bytes(content)
            content += part
    raise OSError(errno.EFBIG, "it is longer than %d bytes" % MAX_FILE, os.path.basename(path))


def read_text_file(path: Union[str, os.PathLike[str]]) -> str:
    """Return the text of a file, as `read_file`; ValueError also means that it is not UTF-8."""
    return io.TextIOWrapper(io.BytesIO(read_file(path)), "utf-8").read()


def plain_text(text: str) -> str:
    """Return a text of at most `MAX_TEXT` characters, with NUL and halves of characters as in JSON, ``\\u0000``."""
    if not text.isascii() or "\0" in text:
        text = _UNHELD.sub(lambda found: "\\u%04x" % ord(found[0]), text)
    return text[:MAX_TEXT]


def plain_values(value: Any, depth: int = DOCUMENT_DEPTH) -> Any:
    """Return plain values of JSON that every reader can hold; applied again it changes nothing.

    Parameters
    ----------
    value : object
        Mappings, lists, tuples, data classes and scalars; anything else becomes its text.
    depth : int, optional
        Deeper containers become ``"..."``. Default: `DOCUMENT_DEPTH`.

    Returns
    -------
    object
        Infinity, NaN and integers beyond 64 bits are texts. A name that begins with two underscores has one: Airflow
        takes ``__classname__``, ``__type`` and others for its own. A name that is already taken gets a number.
    """
    return _plain(value, depth, _CUT)


def check_values(value: Any) -> Any:
    """Return plain values as `plain_values` does; raise ValueError if they are nested more than `MAX_DEPTH` deep."""
    return _plain(value, MAX_DEPTH, None)


def _plain(value: Any, left: int, cut: Optional[str]) -> Any:
    listed, named = isinstance(value, (list, tuple)), type(value) is dict
    if not listed and not named:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return _plain(value.value, left, cut)
        if isinstance(value, str):
            return plain_text(value)
        if isinstance(value, int):
            return _plain_integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if hasattr(type(value), "__dataclass_fields__"):
            value = vars(value)
        if not isinstance(value, abc.Mapping):
            return plain_text(str(value))
    if left <= 0:
        if cut is None:
            raise ValueError("it is nested more than %d deep" % MAX_DEPTH)
        return cut
    left -= 1
    if listed:
        items: List[Any] = []
        for item in value:  # a comprehension takes longer for a point of a curve
            items.append(item if type(item) is float and math.isfinite(item) else _plain(item, left, cut))
        return items
    found: Dict[str, Any] = {}
    numbers: Dict[str, int] = {}
    for key, item in value.items():
        name = plain_text(str(key))
        if name[:2] == "__":
            name = "_" + name.lstrip("_")
        if name in found:
            base = name[: MAX_TEXT - 20]
            while name in found:  # each turn takes a number that no later name of this base tries again
                numbers[base] = numbers.get(base, 0) + 1
                name = "%s-%d" % (base, numbers[base])
        found[name] = item if type(item) is float and math.isfinite(item) else _plain(item, left, cut)
    return found


def map_values(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """Return a copy of plain values in which each single value is changed; the names in mappings stay.

    Parameters
    ----------
    value : object
    change : callable
        Gets the name of a single value, which for an item is that of its list, and the value.
    name : str, optional
        The name of the whole. Default: empty.
    """
    if isinstance(value, abc.Mapping):
        return {key: map_values(item, change, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_values(item, change, name) for item in value]
    return change(name, value)


def _plain_integer(value: int) -> Union[int, str]:
    if MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    # As JSON's 1e400, which is read as infinity.
    return str(value) if value.bit_length() <= 1024 else "inf" if value > 0 else "-inf"


class Bounds(NamedTuple):
    """The range of a number, both ends included."""

    low: float
    high: float


#: Seconds since the epoch, UTC, up to the year 9999.
Moment = Annotated[float, Bounds(0, 253402300799)]
#: Seconds, MiB, cores and parts.
Amount = Annotated[float, Bounds(0, 1e15)]
#: How many.
Count = Annotated[int, Bounds(0, 2**53)]
#: An address of a page.
Url = Annotated[str, safe_url]
#: ``[step, value]``.
Point = Annotated[Sequence[float], lambda point: len(point) == 2]
#: ``worker:1``.
TaskName = Annotated[str, _TASK.match]
#: A container of YARN, or of a local job: ``container_worker_0``. It becomes an argument of programs and part of paths.
ContainerId = Annotated[str, _CONTAINER.match]


class _Unfit(ValueError):
    """A value that does not fit its field."""


#: Takes a value and the list of the fields that did not fit; returns what fits or raises `_Unfit`.
_Reader = Callable[[Any, List[str]], Any]


def read_fields(kind: Any, document: Any, what: str) -> Dict[str, Any]:
    """Return the arguments of a data class from a document: of each field what fits its annotation.

    Parameters
    ----------
    kind : type
        A data class. A field that is missing, None or unfit is left out, so that its default counts.
    document : mapping
        Anything; unknown keys are ignored.
    what : str
        What the document is, for the log line about what does not fit.

    Raises
    ------
    ValueError
        The document is no mapping, or lacks a field without a default.
    """
    unfit: List[str] = []
    found: Dict[str, Any] = _object(kind, False)(document, unfit)
    _log_unfit(what, unfit)
    return found


def fit_document(kind: Any, document: Mapping[str, Any], what: str) -> Dict[str, Any]:
    """Return a document as plain values; of each field of a class what fits, its parts as mappings.

    Parameters
    ----------
    kind : type
        A data class. A part of a document gets the defaults of its own class; the document itself gets none.
    document : mapping
        Unknown keys stay, as plain values.
    what : str
        As in `read_fields`.
    """
    unfit: List[str] = []
    fields, found = _fields(kind, True), {}
    for name, value in document.items():
        if name not in fields:
            found.update(plain_values({name: value}))
        elif value is None:
            found[name] = None
        else:
            try:
                found[name] = fields[name][0](value, unfit)
            except _Unfit:
                unfit.append(name)
    _log_unfit(what, unfit)
    return found


def read_value(hint: Any, value: Any) -> Any:
    """Return the value as plain values if it fits an annotation, else None."""
    try:
        return _reader(hint, True)(value, [])
    except _Unfit:
        return None


def _log_unfit(what: str, unfit: List[str]) -> None:
    if unfit and not _logged(what):
        import logging  # here and below: an agent, which checks plain values only, starts without these modules

        names = _logged(what)
        names += dict.fromkeys(unfit)
        more = " and more" if len(names) > _LOGGED else ""
        logging.getLogger(__name__).warning(
            "%s has values that do not fit; left out: %s%s", what, ", ".join(names[:_LOGGED]), more
        )


@functools.lru_cache(maxsize=1024)
def _logged(what: str) -> List[str]:
    """Return what was logged about a document, for `_log_unfit` to fill."""
    return []


#: Stands for the default of a field that must be there.
_REQUIRED = object()


@functools.lru_cache(maxsize=None)
def _fields(kind: Any, as_mapping: bool) -> Mapping[str, Tuple[_Reader, Any]]:
    """Return reader and default, a plain value or `_REQUIRED`, of each field of a class."""
    if hasattr(kind, "_field_defaults"):
        defaults = kind._field_defaults  # of a NamedTuple
    else:
        from dataclasses import MISSING, fields

        defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
        defaults.update(
            (field.name, field.default_factory()) for field in fields(kind) if callable(field.default_factory)
        )
    return {
        name: (_reader(hint, as_mapping), plain_values(defaults[name]) if name in defaults else _REQUIRED)
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }


@functools.lru_cache(maxsize=None)
def _object(kind: Any, as_mapping: bool) -> _Reader:
    fields = _fields(kind, as_mapping)

    def read(value: Any, unfit: List[str]) -> Any:
        if not isinstance(value, abc.Mapping):
            raise _Unfit(kind.__name__)
        found = {}
        for name, (reader, default) in fields.items():
            given = value.get(name)
            if given is not None:
                try:
                    found[name] = reader(given, unfit)
                    continue
                except _Unfit:
                    unfit.append("%s.%s" % (kind.__name__, name))
            if default is _REQUIRED:
                raise _Unfit("%s lacks %s" % (kind.__name__, name))
            if as_mapping and (default is not None or name in value):
                found[name] = default
        return found

    return read


@functools.lru_cache(maxsize=None)
def _reader(hint: Any, as_mapping: bool) -> _Reader:
    """Return the reader of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is Annotated:
        return _bounded(_reader(arguments[0], as_mapping), arguments[1])
    if origin in (Union, getattr(types, "UnionType", Union)):  # the latter since Python 3.10
        return _choice([_reader(one, as_mapping) for one in arguments if one is not type(None)])
    if origin in (tuple, abc.Sequence):
        if origin is tuple and arguments[-1] is not Ellipsis:
            return _row([_reader(one, as_mapping) for one in arguments], as_mapping)
        return _items(_reader(arguments[0], as_mapping), as_mapping)
    if origin in (abc.Mapping, dict):
        return _named(_reader(arguments[1], as_mapping))
    if issubclass(hint, enum.Enum):
        return _member(hint, as_mapping)
    read = _object(hint, as_mapping)
    return read if as_mapping else lambda value, unfit: hint(**read(value, unfit))


def _bounded(read: _Reader, rule: Any) -> _Reader:
    def bounded(value: Any, unfit: List[str]) -> Any:
        found = read(value, unfit)
        if rule.low <= found <= rule.high if isinstance(rule, Bounds) else rule(found):
            return found
        raise _Unfit

    return bounded


def _choice(readers: List[_Reader]) -> _Reader:
    if len(readers) == 1:
        return readers[0]

    def choose(value: Any, unfit: List[str]) -> Any:
        for read in readers:
            with contextlib.suppress(_Unfit):
                return read(value, unfit)
        raise _Unfit

    return choose


def _items(read: _Reader, as_mapping: bool) -> _Reader:
    def items(value: Any, unfit: List[str]) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _Unfit
        found = []
        for item in value:
            try:
                found.append(read(item, unfit))
            except _Unfit:
                unfit.append("an item")
        return found if as_mapping else tuple(found)

    return items


def _row(readers: List[_Reader], as_mapping: bool) -> _Reader:
    def row(value: Any, unfit: List[str]) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(readers):
            raise _Unfit
        found = [read(value[index], unfit) for index, read in enumerate(readers)]
        return found if as_mapping else tuple(found)

    return row


def _named(read: _Reader) -> _Reader:
    def named(value: Any, unfit: List[str]) -> Any:
        if not isinstance(value, abc.Mapping):
            raise _Unfit
        found = {}
        for name, item in value.items():
            try:
                found[str(name)] = read(item, unfit)
            except _Unfit:
                unfit.append(plain_text(str(name))[:40])
        return plain_values(found, MAX_DEPTH)

    return named


def _member(kind: Any, as_mapping: bool) -> _Reader:
    def member(value: Any, unfit: List[str]) -> Any:
        try:
            return kind(value).value if as_mapping else kind(value)
        except (ValueError, TypeError):
            raise _Unfit from None

    return member


def _any(value: Any, unfit: List[str]) -> Any:
    return plain_values(value, MAX_DEPTH)


def _text(value: Any, unfit: List[str]) -> str:
    if isinstance(value, str):
        return plain_text(value)
    raise _Unfit


def _flag(value: Any, unfit: List[str]) -> bool:
    if isinstance(value, bool):
        return value
    raise _Unfit


def _integer(value: Any, unfit: List[str]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    raise _Unfit


def _number(value: Any, unfit: List[str]) -> float:
    return value if isinstance(value, float) and -MAX_NUMBER <= value <= MAX_NUMBER else _integer(value, unfit)


_SCALARS: Mapping[Any, _Reader] = {Any: _any, str: _text, bool: _flag, int: _integer, float: _number}

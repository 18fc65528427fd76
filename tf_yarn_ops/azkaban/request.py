"""`AzkabanRequest`: the values of a ``.job`` while it is read, and the keys for its faults.

`job` and `program` fill it: options and a document for `job.request.build_job`, and for each value its key in the
``.job``. By these keys the paths of faults become keys of the ``.job``.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Fault, FaultCode
from ..job.options import OPTIONS
from ..job.spec import JobSpec
from ..launch.identity import IGNORE
from ..submit.preflight import file_faults, local_sources
from ..validation import check_faults, noting, parse_flag, parse_memory
from .keys import KEY_OF_OPTION, find_key
from .properties import escape_letters, repair_mojibake

_INDEX = re.compile(r"\.indices\.\d+\.")
_HALF = re.compile("[\ud800-\udfff]")


class AzkabanJobFault(FaultCode):
    """Fault codes for the keys of a ``.job`` and for their values as texts."""

    NO_TASKS = "missing; say which tasks the job has, for example tf.worker.instances=4"
    OTHER_COUNT = "{given}, but another key says {before}; give the number once"
    RESERVED_TYPE = "{given!r} can't be a task type here, because tf.{given} is the beginning of other keys"
    NO_SUCH_TYPE = "there is no task type {type!r} in the job, which has {types}{hint}"
    NOT_ONE_AMOUNT = "{given} is not a single amount"
    TWO_PROGRAMS = "{other} also says what runs; give one of them"
    NOTHING_TO_PASS_TO = "there is no tf.command or tf.entry_point that takes the arguments"
    NO_ENTRY_POINT = "there is no file {given} in the project, nor in tf.source, tf.files or tf.archives"
    OUTSIDE = (
        "{given} is outside the project, and this site lets jobs name files of their project only; put it into "
        "the project, or name a file in HDFS"
    )
    NO_FOLDER = "there is no folder {given} in the project"
    RESERVED_TAG = "{tags} would look like a tag of Azkaban's or of another training's identity; choose another tag"
    TOO_MANY_TAGS = (
        "{given} given, at most {free} allowed: YARN takes ten, and the others are Azkaban's and the job's identity"
    )
    DIFFERENT = "{given} is not what {other} says, {before}; give one of them"
    DIFFERENT_VARIABLE = "its {variable} is not what {other} says; give one of them"
    GARBLED = "{what} is UTF-8 that Azkaban has read as ISO-8859-1; in a .job write {advice}"
    HALF_A_CHARACTER = "{what} holds half of a character; a character beyond FFFF takes two escapes"
    NUL = "{what} contains a NUL character, which can't be passed to a process"


class Property(NamedTuple):
    """A value, and the key of the ``.job`` that has it."""

    text: str
    key: str


def file_name(text: str) -> str:
    """Return the name in the working directory that ``[NAME=]path or URI`` asks for."""
    name, equals, path = text.partition("=")
    return name if equals and "/" not in name else (path or text).rstrip("/").rpartition("/")[2]


@dataclass
class AzkabanRequest:
    """The values of a ``.job``; they grow while the job is read.

    Attributes
    ----------
    values : mapping of str to Property
        The job's values, by the names of the table of keys.
    folder : Path
        The folder of the project, where the ``.job`` lies.
    root : Path, optional
        The folder outside which the job may name no file of this machine. Default: no limit.
    of_site : frozenset of str
        The names whose values the site gives; `root` does not hold for them.
    options : dict
        The options for `build_job`.
    document : dict
        The document for `build_job`: the task types, and values without an option.
    of_spec : frozenset of str
        The keys of the document that come from the file of tf.spec.
    brought : dict of str to str
        The keys of the ``.job`` by the paths of their values.
    items : dict of (str, str) to str
        The keys of the ``.job`` by option and item, for options with several values.
    faults : list of Fault
    warnings : list of str
    dry_run, strict_placement : bool
    previous : str
        A word of `launch.identity.PREVIOUS`.
    """

    values: Mapping[str, Property]
    folder: Path
    root: Path | None = None
    of_site: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    of_spec: frozenset[str] = frozenset()
    brought: dict[str, str] = field(default_factory=dict)
    items: dict[tuple[str, str], str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    dry_run: bool = False
    strict_placement: bool = False
    previous: str = IGNORE

    def give(self, option: str, value: Any, key: str) -> None:
        """Set an option from ``key``."""
        self.options[option] = value
        self.brought[option] = self.brought[".".join(OPTIONS[option].path) or option] = key

    def add(self, option: str, item: str, key: str) -> None:
        """Add one of several values to an option, from ``key``."""
        self.options.setdefault(option, []).append(item)
        self.items[option, item] = key

    def ship(self, option: str, text: str, key: str) -> None:
        """Add a file or an archive, ``[NAME=]path or URI``, from ``key``."""
        self.add(option, text, key)
        for parent in (option, *OPTIONS[option].path):
            self.brought[f"{parent}.{file_name(text)}"] = key

    def may_read(self, name: str, path: Path | str) -> bool:
        """Return whether the job may name this file of the machine, after links; ``name`` is the key that names it."""
        if self.root is None or name in self.of_site:
            return True
        return Path(os.path.realpath(self.folder / path)).is_relative_to(self.root)

    def says(self, path: str) -> bool:
        """Return whether the job, or the file of its tf.spec, gives the value at a path of the document."""
        value: Any = self.document
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value is not None or path in self.brought

    def refuse(self, key: str, code: FaultCode, **values: Any) -> None:
        """Add a fault of a key of the ``.job``, or of a value by its name."""
        self.faults.append(Fault(self.key_of(key), code, values))

    def text(self, name: str) -> str | None:
        """Return a value without blanks around it; None if it is empty or not given."""
        value = self.values.get(name)
        return value.text.strip() or None if value else None

    def flag(self, name: str) -> bool:
        """Return a value as a bool; False if it is not given. Add a fault for any other word."""
        with noting(self.faults, self.key_of(name)):
            return parse_flag(self.text(name) or False)
        return False

    def with_job_keys(self, fault: Fault) -> Fault:
        """Return a fault of a job or of its options with the keys of the ``.job`` as paths."""
        if key := self.items.get((fault.path, str(fault.values.get("item")))):
            # The key says which of the values it is.
            values = {name: value for name, value in fault.values.items() if name != "item"}
            return replace(fault, path=key, values=values)
        return fault.renamed(self.key_of)

    def key_of(self, path: str) -> str:
        """Return the key of the ``.job`` that gives the value at a path of the document, or of another key's value."""
        if path in self.values:
            return self.values[path].key
        for candidate in (path, _INDEX.sub(".", path)):  # The key of a type also sets the values of its single tasks.
            if candidate in self.brought:
                return self.brought[candidate]
        head = path.partition(".")[0]
        if head in self.of_spec:
            return f"tf.spec: {path}"
        return "tf.<type>.instances" if path == "tasks" else KEY_OF_OPTION.get(head, path)


def check_sources(job: JobSpec, request: AzkabanRequest) -> None:
    """Raise SpecInvalid with a fault for each local file that is outside the project or can't be read.

    A fault of a file outside the project does not tell whether the file exists.
    """
    outside = {
        where: path for where, path in local_sources(job).items() if not request.may_read(request.key_of(where), path)
    }
    faults = [Fault(where, AzkabanJobFault.OUTSIDE, {"given": shown(str(path))}) for where, path in outside.items()]
    check_faults([*faults, *(fault for fault in file_faults(job) if fault.path not in outside)])


def merge(
    own: Mapping[str, Property], aliases: Iterable[tuple[str, Property]], faults: list[Fault]
) -> dict[str, Property]:
    """Return a job's own values with those of aliases; add a fault for each alias with another value."""
    merged = dict(own)
    for name, value in aliases:
        if (there := merged.get(name)) is None:
            merged[name] = value
        elif not same(there.text, value.text):
            variable = variable_of(name)
            code, values = (
                (AzkabanJobFault.DIFFERENT, {"given": shown(value.text), "before": shown(there.text)})
                if variable is None
                else (AzkabanJobFault.DIFFERENT_VARIABLE, {"variable": variable})
            )
            faults.append(Fault(value.key, code, {"other": there.key, **values}))
    return merged


def same(one: str, other: str) -> bool:
    """Return whether two texts mean the same: as texts, as numbers or as amounts of memory."""
    one, other = one.strip(), other.strip()
    for read in (float, parse_memory):
        with suppress(ValueError):
            return read(one) == read(other)
    return one == other


def shown(text: str) -> str:
    """Return a text for a message, cut after 80 characters."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def variable_of(name: str) -> str | None:
    """Return the environment variable that a key sets, or None for another key. No message shows its value."""
    found = find_key(name)
    return found.places.get("NAME") if found else None


def check_letters(values: Mapping[str, Property]) -> Iterator[Fault]:
    """Yield a fault for each value that has lost characters on its way."""
    for name, value in values.items():
        variable = variable_of(name)
        what = shown(value.text) if variable is None else f"the value of {variable}"
        if (meant := repair_mojibake(value.text)) is not None:
            advice = (
                f"{escape_letters(meant[:200])} for {shown(meant)}"
                if variable is None
                else "letters beyond ASCII as \\uXXXX"
            )
            yield Fault(value.key, AzkabanJobFault.GARBLED, {"what": what, "advice": advice})
        elif _HALF.search(value.text):
            yield Fault(value.key, AzkabanJobFault.HALF_A_CHARACTER, {"what": what})
        elif "\0" in value.text:
            yield Fault(value.key, AzkabanJobFault.NUL, {"what": what})


def readable(text: str) -> str:
    """Return a text without the characters that `check_letters` reports as faults."""
    return _HALF.sub("x", text).replace("\0", "x")

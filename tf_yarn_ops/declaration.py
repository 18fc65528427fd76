"""How an option of a job or a setting of a site is declared: once, by `option`, on the field that holds its value.

`Part` reads its fields by their declarations. `job.options` collects these for parsers, help and documents, `ytf
schema` for editors.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

from .errors import Fault
from .kinds import Kind
from .validation import check_faults, normalise, optional, read_part

#: Stands for the name of a task type in a path.
TYPE = "<type>"
#: The doors: who may set an option.
COMMAND_LINE, AZKABAN, OPERATOR, DOCUMENT = "command line", "azkaban", "operator", "document"
EVERYWHERE = (COMMAND_LINE, AZKABAN, OPERATOR, DOCUMENT)

#: The headings of the sections.
OPTION_SECTIONS = {
    "program": "What runs",
    "tasks": "Tasks and their resources",
    "application": "The application in YARN",
    "tensorboard": "TensorBoard",
    "restarts": "Success and restarts",
    "deadlines": "Deadlines",
    "submission": "The submission",
}


HeldType = TypeVar("HeldType", covariant=True)
GivenType = TypeVar("GivenType", contravariant=True)


class Converted(Protocol[HeldType, GivenType]):
    """The annotation of a field that holds one type, read from another type that the constructor takes.

    Only type checkers use it, as that of a descriptor.
    """

    def __get__(self, instance: Any, owner: Any) -> HeldType: ...
    def __set__(self, instance: Any, value: GivenType) -> None: ...


#: MiB, given as a number or with a unit.
Memory = Converted[int, int | str]
#: Texts, given in any sequence.
Texts = Converted[tuple[str, ...], Sequence[str]]


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    default : value
        None for none.
    kind : Kind
    help : str
        Its meaning, in sentences that are true at every door. Empty for a part without an option of its own.
    name : str
        ``task_memory``: the name for `request.build_job`, and the long name on the command line. Default: that of
        its field; its path, ``acls.view_users``, where the command line does not have it.
    section : str
        A key of `OPTION_SECTIONS`. Default: that of the part.
    path : tuple of str
        Its place in the job's document: ``("deadlines", "queue")``. Empty if the document does not have it.
    in_words : str
        The default in words, if it is not one value.
    value : str
        The placeholder for its value on the command line. Default: that of the kind.
    short : str
        Its short name on the command line, ``-m``.
    many : bool
        Whether the command line takes it several times.
    per_task : bool
        Whether it takes a value for all tasks, for a task type (``worker:4``) and for one task (``worker[0]:4``).
    doors : tuple of str
        Who may set it.
    schema : mapping
        More keywords for the JSON Schema of its kind, from rules that the kind does not know.
    """

    default: Any
    kind: Kind
    help: str = ""
    name: str = ""
    section: str = ""
    path: tuple[str, ...] = ()
    in_words: str = ""
    value: str = ""
    short: str = ""
    many: bool = False
    per_task: bool = False
    doors: tuple[str, ...] = EVERYWHERE
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def shown_default(self) -> str:
        """The default as text, without its unit; empty for none."""
        if self.in_words or self.kind.word == "flag":
            return self.in_words or str(bool(self.default)).lower()
        value = self.default
        if isinstance(value, float):
            return f"{value:.0f}" if value.is_integer() else str(value)
        return str(value) if isinstance(value, int | str) else ""

    @property
    def default_with_unit(self) -> str:
        """The default as text, with its unit."""
        value = self.shown_default
        return f"{value} {self.kind.unit}".strip() if value.isdigit() else value

    @property
    def is_switch(self) -> bool:
        """Whether the command line takes it without a value."""
        return self.kind.word == "flag" and not self.value

    @property
    def placeholder(self) -> str:
        """The placeholder for its value on the command line; empty for a switch."""
        return "" if self.is_switch else self.value or self.kind.value or f"<{self.name}>"


def option(default: Any, kind: Kind, help: str = "", **settings: Any) -> Any:
    """Return a field of a dataclass that holds an option; a callable ``default`` makes the default."""
    row = Option(None if callable(default) else default, kind, help, **settings)
    given = {"default_factory" if callable(default) else "default": default}
    return field(**given, hash=default is not dict, metadata={"option": row})


def declared(part: Any, above: tuple[str, ...] = (), section: str = "") -> Iterable[Option]:
    """Yield the options of the fields of a part, then those of the parts in its fields."""
    rows = [
        replace(
            row,
            path=(*above, name),
            section=row.section or section,
            name=row.name or (name if COMMAND_LINE in row.doors else ".".join((*above, name))),
            many=row.many or row.per_task or row.kind.many,
        )
        for name, row in ((one.name, one.metadata["option"]) for one in fields(part))
    ]
    yield from (row for row in rows if row.help)
    for row in rows:
        if row.kind.part:
            yield from declared(row.kind.part, row.path + ((TYPE,) if row.path == ("tasks",) else ()), row.section)


@dataclass(frozen=True)
class Part:
    """A frozen value whose fields are declared by `option`; it can't exist in an invalid state."""

    def __init_subclass__(cls) -> None:
        options = {name: one.metadata["option"] for name, one in vars(cls).items() if isinstance(one, Field)}
        rows = [
            f"{name} : {row.kind.word}, optional\n    {row.help} Default: {row.default_with_unit or 'none'}."
            for name, row in options.items()
        ]
        cls.__doc__ = "\n".join(
            (
                inspect.cleandoc(cls.__doc__ or ""),
                "\nParameters\n----------",
                *rows,
                "\nRaises\n------\nSpecInvalid\n    With every fault.",
            )
        )

    def __post_init__(self) -> None:
        faults = normalise(
            self,
            {
                one.name: optional(kind.read) if one.default is None else kind.read
                for one in fields(self)
                for kind in [one.metadata["option"].kind]
            },
        )
        check_faults([*faults, *self._faults({fault.path.partition(".")[0] for fault in faults})])

    def _faults(self, wrong: set[str]) -> Iterable[Fault]:
        """Yield the faults of several values together; ``wrong`` has the names of the fields that have faults."""
        return ()


def part_of_job(part: type[Part]) -> Kind:
    """Return the kind of a part, which a mapping of its fields may replace."""
    return Kind("part", read_part(part), part=part, schema=json_schema(part))


def json_schema(part: type[Part]) -> dict[str, Any]:
    """Return the JSON Schema of a mapping of the fields of a part, without unknown keys.

    Each value may also be left empty, or be a text with a template of Oozie (``${...}``) or of Airflow (``{{...}}``).

    References
    ----------
    JSON Schema 2020-12.
    """
    properties = {}
    for name, row in ((one.name, one.metadata["option"]) for one in fields(part)):
        default = {} if row.default in (None, ()) else {"default": row.default}
        words = f"{row.help} Default: {row.in_words}." if row.in_words else row.help
        properties[name] = {
            "description": words or inspect.cleandoc(row.kind.part.__doc__).partition("\n\n")[0],
            **default,
            "anyOf": [{**row.kind.schema, **row.schema}, {"type": ["null", "string"], "pattern": r"\$\{|\{\{"}],
        }
    return {"type": "object", "additionalProperties": False, "properties": properties}

"""`load_yaml`: the only reader of YAML; it refuses what could be misread, and what could occupy the process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from .errors import Fault, FaultCode, SpecInvalid
from .validation import check_faults

#: Characters of a text, values in it with each alias counted as what it stands for, and collections in each other.
_MOST_TEXT, _MOST_VALUES, _MOST_DEPTH = 1 << 20, 100_000, 50
#: Characters of a number or a date; the reader of YAML needs the square of the time.
_LONGEST_NUMBER = 400
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NUMBERS = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp")}
#: The key whose values are environment variables: texts as they are written, 1.50, 010 and yes too.
_VARIABLES = "env"


class YamlFault(FaultCode):
    """Fault codes for a text that is not read. All but the first two show no content."""

    NOT_YAML = "not YAML{where}: {problem}"
    KEY_TWICE = "the key {key!r} is given a second time{where}; merge both into one"
    TOO_DEEP = "collections are nested too deeply{where}; at most {most} are allowed"
    TOO_MANY = "more than {most} values{where}, those that aliases repeat included"
    TOO_LONG = "longer than {most} characters"
    LONG_NUMBER = "a number has more than {most} characters{where}; put a text in quotes"
    CIRCLE = "an alias contains itself{where}"


@dataclass(frozen=True)
class YamlText:
    """A text of YAML that was read.

    Attributes
    ----------
    value : object
        The first document, of plain Python values; None for an empty text.
    lines : mapping of str to int
        The line of each key of the outermost mapping, from 1.
    """

    value: Any
    lines: Mapping[str, int]


def load_yaml(text: str, faults: list[Fault] | None = None) -> YamlText:
    """Read the first document of a text.

    Parameters
    ----------
    text : str
        YAML, and JSON, which is a part of it.
    faults : list, optional
        Gets the keys that are given twice, of which the last counts, so that the caller can report them with the
        faults of the values. Default: they are raised.

    Raises
    ------
    SpecInvalid
        The text is not YAML, gives a key twice, or is too large. The fault has the line, and never shows the lines
        around it, which may hold a secret.

    References
    ----------
    YAML 1.2.2, 3.2.1.1: the keys of a mapping are unique. PyYAML takes the last one.
    """
    if len(text) > _MOST_TEXT:
        raise SpecInvalid(Fault("", YamlFault.TOO_LONG, {"most": _MOST_TEXT}))
    try:
        loader = _Loader(text)
        try:
            root = loader.get_node() if loader.check_node() else None
            value = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
        if faults is None:
            check_faults(loader.twice)
        else:
            faults += loader.twice
    except (ValueError, OverflowError, yaml.YAMLError) as error:  # OverflowError: "\UFFFFFFFF"
        if isinstance(error, SpecInvalid):
            raise
        problem = getattr(error, "problem", None) or type(error).__name__
        raise SpecInvalid(_fault(YamlFault.NOT_YAML, getattr(error, "problem_mark", None), problem=problem)) from None
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    return YamlText(value, {str(key.value): key.start_mark.line + 1 for key, _ in pairs})


def _fault(code: FaultCode, mark: Any, **values: Any) -> Fault:
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return Fault("", code, {"where": where, **values})


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str):
        super().__init__(text)
        self.twice: list[Fault] = []
        self._depth = self._values = 0
        self._sizes: dict[str, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a value. PyYAML calls itself for each level, so the depth is checked before."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before = self._values
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self._sizes:
                raise SpecInvalid(_fault(YamlFault.CIRCLE, event.start_mark))
            self._values += self._sizes.get(str(event.anchor), 0)
        self._values += 1
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise SpecInvalid(_fault(YamlFault.TOO_DEEP, event.start_mark, most=_MOST_DEPTH))
        if self._values > _MOST_VALUES:
            raise SpecInvalid(_fault(YamlFault.TOO_MANY, event.start_mark, most=_MOST_VALUES))
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent) and event.anchor:
            self._sizes[event.anchor] = self._values - before
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:
        node: Any = super().compose_scalar_node(anchor)
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise SpecInvalid(_fault(YamlFault.LONG_NUMBER, node.start_mark, most=_LONGEST_NUMBER))
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node: Any = super().compose_mapping_node(anchor)
        known: set[str] = set()
        twice: dict[str, Fault] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in known:  # an alias is the same node as its anchor
                twice.setdefault(key.value, _fault(YamlFault.KEY_TWICE, key.start_mark, key=key.value))
            known.add(key.value)
        self.twice += twice.values()
        node.value = [(key, _as_written(item) if key.value == _VARIABLES else item) for key, item in node.value]
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Construct a value; a tag that it does not fit, such as !!int "", raises any error in PyYAML."""
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, SpecInvalid):
            raise
        except (IndexError, KeyError, AttributeError, ValueError, TypeError):
            raise SpecInvalid(
                _fault(YamlFault.NOT_YAML, node.start_mark, problem="a value does not fit its tag")
            ) from None


def _as_written(node: Any) -> Any:
    """Return a mapping whose values are the texts that stand in the file, and of a mapping that is merged into it."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(key, _as_written(item) if key.tag == _MERGE else _text_of(item)) for key, item in node.value]
        return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(node.tag, [_as_written(item) for item in node.value], node.start_mark, node.end_mark)
    return node


def _text_of(node: Any) -> Any:
    """Return a number, flag or date as text; no value stays none."""
    if isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null":
        return yaml.ScalarNode(_TEXT, node.value, node.start_mark, node.end_mark)
    return node

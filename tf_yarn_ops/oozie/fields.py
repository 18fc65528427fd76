"""``${name}`` in the fields of a job's document: which names are used, and the document with their values.

Commands are left as they are: bash expands ``${name}`` there, and the tasks find the values as environment variables.
So no value ever becomes text of a shell.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..runtime.common.values import map_values

_USE = re.compile(r"\$\{([^{}$]*)\}")
#: The keys of texts that a shell reads.
_COMMAND = "command"


def uses(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the path and the name of each ``${name}`` in a document, except in its commands."""
    read = [(path, text) for path, text in texts(document) if path.rpartition(".")[2] != _COMMAND]
    return [(path, name) for path, text in read for name in _USE.findall(text)]


def fill(document: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with the values in place of their names.

    Parameters
    ----------
    document : mapping
        As `job.spec.JobSpec.from_dict` reads it.
    values : mapping of str to str
        The values by their names. An unknown name stays as it is.

    Returns
    -------
    dict
        The values are also variables of every task (``env``), where the document has no variable of the same name.
    """

    def replace_uses(key: str, value: Any) -> Any:
        if not isinstance(value, str) or key == _COMMAND:
            return value
        return _USE.sub(lambda match: values.get(match[1], match[0]), value)

    filled: dict[str, Any] = map_values(document, replace_uses)
    own = filled.get("env") or {}
    # The reader of jobs refuses variables that are no mapping.
    return {**filled, "env": {**values, **own}} if values and isinstance(own, Mapping) else filled


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each text in a document, and the text."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from texts(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item, path)
    elif isinstance(value, str):
        yield path, value

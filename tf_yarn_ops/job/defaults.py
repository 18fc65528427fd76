"""The default of an option as text, read from the dataclasses; the doors show it in their help."""

from dataclasses import MISSING, fields

from .options import TYPE, Option
from .parts import Acls, Deadlines, RestartPolicy, TensorBoard
from .spec import JobSpec, TaskSpec

_PARTS = {"deadlines": Deadlines, "restart": RestartPolicy, "tensorboard": TensorBoard, "acls": Acls}


def default_of(option: Option) -> str:
    """Return the default of an option as text, without its unit; empty if it has none."""
    if option.default:
        return option.default
    if not option.path or (len(option.path) == 1 and option.type == "flag"):
        return "false" if option.type == "flag" else ""
    *parents, name = option.path
    part = JobSpec if not parents else TaskSpec if parents == ["tasks", TYPE] else _PARTS[parents[0]]
    value = next(field.default for field in fields(part) if field.name == name)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return "" if value is None or value is MISSING else ", ".join(value) if isinstance(value, tuple) else str(value)

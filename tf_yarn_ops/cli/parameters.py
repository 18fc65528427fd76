"""The options of ``ytf-submit``: the rows of `job.options` that the command line may set, as its parser takes them.

No option has a default in the parser. An option that was not given stays None, so that the default of the job, or
the value of a file, counts. Only the help shows the default.
"""

from typing import Any

import click

from ..declaration import COMMAND_LINE, Option
from ..job.options import OPTIONS, options_of

_FORMS = "A value for one task wins over a value for its type, which wins over a value for all tasks."

#: The options of the YARN-DTF design, in its order.
DESIGN = tuple(OPTIONS[name] for name in (
    "cluster_requirement", "task_vcores", "task_memory", "input", "output", "script", "tensorboard", "docker_image",
    "queue", "name", "client",
))  # fmt: skip
_OTHERS = [
    option for name, option in options_of(COMMAND_LINE).items() if option not in DESIGN and name != "task_command"
]
#: The other options: of the job, and of its submission.
JOB_OPTIONS = tuple(option for option in _OTHERS if option.section != "submission")
SUBMISSION = tuple(option for option in _OTHERS if option.section == "submission" and option.name != "spec")
ALL = (*DESIGN, OPTIONS["spec"], *JOB_OPTIONS, *SUBMISSION)


def names_of(option: Option) -> list[str]:
    """Return the names of an option on the command line: ``-m`` and ``--task_memory``."""
    return [*([option.short] if option.short else []), f"--{option.name}"]


def value_of(option: Option) -> str:
    """Return the placeholder for the option's value in its help; empty for a switch."""
    value = option.placeholder
    return f"{value} | <type>:{value} | <type>[<index>]:{value}" if option.per_task else value


def help_of(option: Option) -> str:
    """Return the help of an option, and whether it may be repeated."""
    if option.per_task:
        return f"{option.help} {_FORMS} Repeatable, and comma-separated."
    return f"{option.help} Repeatable." if option.many else option.help


def shown_default(option: Option) -> str:
    """Return the default for the help; empty if there is none."""
    return "disabled" if option.is_switch else option.shown_default


def parser_option(option: Option) -> click.Option:
    """Return the option as the parser takes it."""
    settings: dict[str, Any] = {"multiple": option.many, "metavar": value_of(option) or None, "help": help_of(option)}
    if option.is_switch:
        settings |= {"is_flag": True, "default": None}
    return click.Option([*names_of(option), option.name], **settings)

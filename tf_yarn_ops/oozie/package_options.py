"""The table of the options of ``ytf oozie package``; the parser, its help and the reader derive from it."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from .. import kinds
from ..declaration import Option
from ..errors import Fault, FaultCode
from ..kinds import Kind
from ..validation import invalid, noting, read_text
from .data import read_done_flag, read_instances, read_name, read_named_uri
from .packed_job import DATA_IN, DATA_OUT
from .schedule import NO_END, read_cron, read_frequency, read_minutes, read_time, read_timeout, read_zone


class OptionFault(FaultCode):
    """Fault codes for a single option."""

    NOT_A_PAIR = "{given!r} is not NAME=VALUE"
    NO_VALUE = "'' is not a value; omit it"
    NOT_A_FILE_SYSTEM = "{given!r} is not the URL of a file system; give hdfs://host:8020, or hdfs://NAME of a pair"
    NEEDS = "needs {other}"


def _read_pair(value: object) -> tuple[str, str]:
    name, equals, text = read_text(value).partition("=")
    if not equals:
        raise invalid(OptionFault.NOT_A_PAIR, given=value)
    if not text:  # the shell action refuses a variable without a value
        raise invalid(OptionFault.NO_VALUE, item=value)
    return read_name(name), text


def _read_file_system(value: object) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+/?", read_text(value)):
        raise invalid(OptionFault.NOT_A_FILE_SYSTEM, given=value)
    return str(value)


_TIME = Kind("text", read_time, "<time>")
_FREQUENCY = Kind("text", read_frequency, "<n>m|h|d|w|mo")
_PERIOD = Kind("text", read_minutes, "<n>m|h|d")
#: Every option, in the order of the help.
PACKAGE_OPTIONS = (
    Option(
        None,
        kinds.TEXT,
        "Where to write the application: a folder of this machine, or hdfs:///apps/NAME.",
        "out",
        value="<folder>",
    ),
    Option(False, kinds.FLAG, "Print the documents, and write nothing.", "dry_run"),
    Option(
        None,
        Kind("text", read_cron),
        "When to train, as cron in UTC: '0 2 * * *'. Days of the week by name, MON-FRI.",
        "schedule",
        value="<cron>",
    ),
    Option(None, _FREQUENCY, "Train every so often, counted from the start: 30m, 12h, 1d, 1mo.", "frequency"),
    Option(
        "UTC",
        Kind("text", read_zone),
        "With frequency: the zone whose days and months count.",
        "timezone",
        value="<zone>",
    ),
    Option(None, _TIME, "2026-11-21T02:00Z, or with an offset.", "start", in_words="now"),
    Option(NO_END, _TIME, "The end of the schedule.", "end"),
    Option(
        (),
        Kind("text", partial(read_named_uri, DATA_IN), "[NAME=]<URI>"),
        "Wait for this data, whose URI may use ${YEAR}, ${MONTH}, ${DAY}, ${HOUR} and ${MINUTE} in UTC. The job's "
        "fields use it as ${dataIn}, or as ${NAME}.",
        "data",
        many=True,
    ),
    Option(
        (0, 0),
        Kind("text", read_instances, "<n>[:<n>]"),
        "Which instances of the data: 0 the newest, -1 the one before, -6:0 the last seven.",
        "data_instances",
        in_words="0",
    ),
    Option(None, _FREQUENCY, "How often the data comes.", "data_frequency", in_words="by the URI's finest variable"),
    Option(
        "_SUCCESS",
        Kind("text", read_done_flag, "<file>"),
        "The file that says that a folder of data is complete; '' for the folder itself.",
        "done_flag",
    ),
    Option(
        (),
        Kind("text", partial(read_named_uri, DATA_OUT), "[NAME=]<URI>"),
        "A URI with the same variables that the training writes. The job's fields use it as ${dataOut}, or as ${NAME}.",
        "output_data",
        many=True,
    ),
    Option(
        None,
        Kind("text", read_timeout, "<n>m|h|d"),
        "How long a run waits for its data; -1 for ever.",
        "timeout",
        in_words="the server's",
    ),
    Option(1, kinds.count(1), "How many runs train at the same time.", "concurrency"),
    Option(None, kinds.count(1), "How many runs wait at the same time.", "throttle", in_words="the server's"),
    Option(
        "FIFO",
        kinds.choice("FIFO", "LIFO", "LAST_ONLY", "NONE"),
        "Which of several late runs comes first; LAST_ONLY skips all but the newest.",
        "execution",
    ),
    Option(None, _PERIOD, "The latest end after the nominal time; Oozie alerts if it is missed.", "sla_end"),
    Option(None, _PERIOD, "The latest start after the nominal time.", "sla_start"),
    Option(None, _PERIOD, "The longest run.", "sla_duration"),
    Option(None, kinds.TEXT, "Who gets the alerts, comma-separated.", "sla_contact", value="<addresses>"),
    Option(
        (),
        Kind("text", _read_pair, "NAME=VALUE"),
        "A value in job.properties; the job's fields use it as ${NAME}.",
        "property",
        many=True,
    ),
    Option(None, kinds.TEXT, "The name of the application.", "name", in_words="that of the job"),
    Option(
        "python3",
        kinds.TEXT,
        "The nodes' interpreter, with tf_yarn_ops unless pex is set.",
        "python",
        value="<path>",
    ),
    Option(
        False,
        kinds.FLAG,
        "Pack tf_yarn_ops with its dependencies, for nodes without it. The nodes' Python must have the "
        "version of this one.",
        "pex",
    ),
    Option(
        None,
        kinds.count(0),
        "How often Oozie repeats the action. It attaches to the training if that runs.",
        "retry_max",
    ),
    Option(None, _PERIOD, "The pause between repetitions.", "retry_interval", in_words="the server's", value="<n>m"),
    Option(None, kinds.MEMORY, "Memory of Oozie's launcher.", "launcher_memory", in_words="the server's"),
    Option(None, kinds.TEXT, "The queue of Oozie's launcher.", "launcher_queue", in_words="the job's", value="<queue>"),
    Option(
        None,
        kinds.TEXT,
        "Your own workflow, with an empty action train, or one for each listed job.",
        "workflow",
        value="<file>",
    ),
    Option(
        (),
        kinds.TEXT,
        "Another file for the application, such as a script of your workflow.",
        "include",
        value="<file>",
        many=True,
    ),
    Option(
        None,
        kinds.TEXT,
        "Where the application will lie, if out is a folder of this machine.",
        "app_path",
        in_words="/user/YOU/oozie/NAME",
        value="<folder>",
    ),
    Option(
        None,
        Kind("text", _read_file_system, "<URL>"),
        "nameNode for Oozie, hdfs://host:8020.",
        "name_node",
        in_words="the cluster's",
    ),
    Option(
        None,
        kinds.TEXT,
        "resourceManager for Oozie, host:8032.",
        "resource_manager",
        in_words="the cluster's",
        value="<address>",
    ),
)


def read_options(words: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Return the value of each option by its name, its default for one that is not given or has a fault.

    Parameters
    ----------
    words : mapping of str to value
        What was given, by the names of the options.
    faults : list of Fault
        Every fault of a single option is added to it.
    """
    values = {row.name: row.default for row in PACKAGE_OPTIONS}
    for name, row in ((row.name, row) for row in PACKAGE_OPTIONS if words.get(row.name) is not None):
        for word in words[name] if row.many else (words[name],):
            with noting(faults, name):
                value = row.kind.read(word)
                values[name] = (*values[name], value) if row.many else value
    return values

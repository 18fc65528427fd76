"""The XML of an application of Oozie, from a checked request. Pure: golden files hold it.

Texts of the request stand in the XML as data; Oozie evaluates ``${...}`` in them, therefore `request` checks each name.
A workflow of the user's own has an empty action for each training, ``<action name="train"><shell
xmlns="uri:oozie:shell-action:1.0"/>...</action>``; `fill_workflow` fills the shells in, and keeps everything else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import Fault
from ..validation import check_faults
from .data import FIRST_INSTANCE, DataSet
from .packed_job import (
    COORDINATOR_NAMES,
    FILES_FOLDER,
    FIRST_OUTPUTS,
    LAUNCH,
    PACKED_JOB_FILE,
    PEX,
    VARIABLE_PREFIX,
    WORKFLOW,
    WORKFLOW_NAMES,
)
from .schedule import Schedule
from .schemas import SchemaFault, lxml, parse_xml
from .trainings import Fork, TrainingAction, nest

WORKFLOW_SCHEMA = "uri:oozie:workflow:1.0"
SHELL_SCHEMA = "uri:oozie:shell-action:1.0"
COORDINATOR_SCHEMA = "uri:oozie:coordinator:0.5"
SLA_SCHEMA = "uri:oozie:sla:0.2"
_EXPRESSION, _LITERAL = re.compile(r"\$\{(.*?)\}", re.DOTALL), re.compile(r"'[^']*'|\"[^\"]*\"")
#: A call of a function with a prefix. A site may add functions of its own, with other prefixes.
_CALL = re.compile(r"\b((?:wf|coord|fs|hadoop|hcat):\w*)\s*\(")
#: Oozie's functions for workflows: ``oozie.service.ELService.functions.workflow`` of oozie-default.xml.
_FUNCTIONS = (
    "wf:id",
    "wf:name",
    "wf:appPath",
    "wf:conf",
    "wf:user",
    "wf:group",
    "wf:callback",
    "wf:transition",
    "wf:lastErrorNode",
    "wf:errorCode",
    "wf:errorMessage",
    "wf:run",
    "wf:actionData",
    "wf:actionExternalId",
    "wf:actionTrackerUri",
    "wf:actionExternalStatus",
    "fs:exists",
    "fs:isDir",
    "fs:dirSize",
    "fs:fileSize",
    "fs:blockSize",
    "hadoop:counters",
    "hadoop:conf",
    "hcat:exists",
)
#: An output of an action that an expression reads.
_READ = r"""wf:actionData\(\s*['"]{}['"]\s*\)\s*\[\s*['"]([^'"\s]+)['"]"""
_END, _FAILED = "end", "failed"
#: The message of the kill node: Oozie's own error where the action had no time for outputs.
_NODE, _DATA = "wf:lastErrorNode()", "wf:actionData(wf:lastErrorNode())"
_WHY = (
    f"${{{_NODE}}}: ${{{_DATA}['reason']}} ${{{_DATA}['application_id']}} ${{{_DATA}['message']}}"
    f"${{empty {_DATA}['reason'] ? wf:errorMessage({_NODE}) : ''}}; yarn logs -applicationId "
    f"${{wf:actionExternalId({_NODE})}}"
)


@dataclass(frozen=True)
class OozieRequest:
    """A checked request.

    Attributes
    ----------
    name : str
    workflow_name : str
        The name that the user's own workflow gets; empty: it keeps its own.
    python : str
        The interpreter on the nodes.
    properties : mapping of str to str
        The request's own values for the job's fields.
    data : tuple of DataSet
    schedule : Schedule or None
        None: a plain workflow.
    controls : mapping of str to str
        How the coordinator catches up: the texts of the elements of its ``controls``.
    sla : mapping of str to str
        What is promised about each run: the texts of the elements of ``sla:info``. Empty: nothing.
    retry_max, retry_interval : int or None
        Oozie's own retries of the action; the interval in minutes.
    launcher_memory : int or None
        MiB of the launcher; None: the server's default.
    launcher_queue : str
        Empty: that of the job, or the server's default.
    has_pex : bool
    trainings : tuple of TrainingAction
    flow : str
        The text of the user's own workflow; empty for one with only the actions that train.
    extra : mapping of str to Path
        More files of the application by their names, for other actions of the workflow.
    warnings : tuple of str
    """

    name: str
    python: str = "python3"
    properties: Mapping[str, str] = field(default_factory=dict)
    data: tuple[DataSet, ...] = ()
    schedule: Schedule | None = None
    controls: Mapping[str, str] = field(default_factory=dict)
    sla: Mapping[str, str] = field(default_factory=dict)
    retry_max: int | None = None
    retry_interval: int | None = None
    launcher_memory: int | None = None
    launcher_queue: str = ""
    has_pex: bool = False
    trainings: tuple[TrainingAction, ...] = ()
    workflow_name: str = ""
    flow: str = ""
    extra: Mapping[str, Path] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def handed_over(self) -> dict[str, str]:
        """The values that the coordinator hands over to its workflow, as Oozie's expressions, by their names."""
        if self.schedule is None:
            return {}
        named = {name.name: name.expression for name in COORDINATOR_NAMES}
        return named | {
            one.name: f"${{coord:{'dataOut' if one.output else 'dataIn'}('{one.name}')}}" for one in self.data
        }


def build_workflow(request: OozieRequest) -> Any:
    """Return the root of the workflow of the trainings."""
    make = _maker(WORKFLOW_SCHEMA)
    names = ("nameNode", "resourceManager", *request.handed_over, *request.properties)
    nodes = _sequence_nodes(request, nest({one.name: one.needs for one in request.trainings}), _END)
    root = make(
        "workflow-app",
        make.parameters(*(make.property(make.name(name)) for name in names)),
        make.start(to=nodes[0].get("name")),
        *nodes,
        make.kill(make.message(_WHY), name=_FAILED),
        make.end(name=_END),
        name=request.name,
    )
    lxml().etree.indent(root, "    ")
    return root


def _sequence_nodes(request: OozieRequest, steps: "list[str | Fork]", to: str) -> list[Any]:
    """Return the nodes of a sequence that leads to a node."""
    make = _maker(WORKFLOW_SCHEMA)
    nodes: list[Any] = []
    for step in reversed(steps):
        if isinstance(step, Fork):
            join = f"join-{step.number}"
            branches = [_sequence_nodes(request, branch, join) for branch in step.branches]
            paths = (make.path(start=branch[0].get("name")) for branch in branches)
            made = [make.fork(*paths, name=f"fork-{step.number}"), *chain(*branches), make.join(name=join, to=to)]
        else:
            training = next(one for one in request.trainings if one.name == step)
            retries = {"retry-max": request.retry_max, "retry-interval": request.retry_interval}
            attributes = {name: str(value) for name, value in retries.items() if value is not None}
            ends = make.ok(to=to), make.error(to=_FAILED)
            made = [make.action(shell_element(request, training), *ends, name=training.name, **attributes)]
        nodes, to = [*made, *nodes], made[0].get("name")
    return nodes


def shell_element(request: OozieRequest, training: TrainingAction, read: Iterable[str] = ()) -> Any:
    """Return the ``shell`` element of an action that trains, whose outputs of these names the workflow reads."""
    make = _maker(SHELL_SCHEMA)
    limits = {"memory.mb": request.launcher_memory, "queue": request.launcher_queue or training.queue}
    launcher = [make(name, str(value)) for name, value in limits.items() if value]
    variables = {name.variable: name.expression for name in WORKFLOW_NAMES}
    variables |= {f"{VARIABLE_PREFIX}{name}": f"${{{name}}}" for name in (*request.handed_over, *request.properties)}
    if first := " ".join(dict.fromkeys(read)):
        variables[FIRST_OUTPUTS] = first
    files = {LAUNCH: LAUNCH, training.document_file: PACKED_JOB_FILE, **({PEX: PEX} if request.has_pex else {})}
    return make.shell(
        make("resource-manager", "${resourceManager}"),
        make("name-node", "${nameNode}"),
        *([make.launcher(*launcher)] if launcher else ()),
        make.exec("bash"),  # Oozie cuts its path to the last part
        *map(make.argument, (LAUNCH, request.python)),
        *(make("env-var", f"{name}={text}") for name, text in variables.items()),
        *(make.file(f"{file}#{link}") for file, link in files.items()),
        *([make.archive(f"{training.archive_file}#{FILES_FOLDER}")] if training.sources else ()),
        make("capture-output"),
    )


def fill_workflow(request: OozieRequest) -> Any:
    """Return the root of the user's workflow with the actions that train.

    Raises
    ------
    SpecInvalid
        The text is not XML, or has not one empty action for each training.
    """
    root = parse_xml("workflow", request.flow)
    if request.workflow_name:
        root.set("name", request.workflow_name)
    faults = []
    for training in request.trainings:
        actions = [one for one in root.iter(f"{{{WORKFLOW_SCHEMA}}}action") if one.get("name") == training.name]
        shells = [shell for action in actions for shell in action.findall(f"{{{SHELL_SCHEMA}}}shell") if not len(shell)]
        if len(actions) != 1 or len(shells) != 1:
            faults.append(
                Fault(
                    "workflow",
                    SchemaFault.NO_ACTION,
                    {"name": training.name, "schema": SHELL_SCHEMA, "workflow": WORKFLOW_SCHEMA, "count": len(shells)},
                )
            )
        else:
            filled = shell_element(request, training, re.findall(_READ.format(re.escape(training.name)), request.flow))
            lxml().etree.indent(filled, "    ", level=2)
            filled.tail = shells[0].tail
            shells[0].getparent().replace(shells[0], filled)
    check_faults(faults)
    return root


def function_faults(root: Any) -> Iterator[Fault]:
    """Yield the functions of expressions that Oozie's workflows lack: Oozie fails at one only when it gets there."""
    for element in root.iter("{*}*"):
        for expression in _EXPRESSION.findall(" ".join([element.text or "", *element.attrib.values()])):
            for name in _CALL.findall(_LITERAL.sub("", expression)):
                if name not in _FUNCTIONS:
                    values = {"line": element.sourceline, "given": name, "allowed": _FUNCTIONS}
                    yield Fault(WORKFLOW, SchemaFault.NO_FUNCTION, values)


def build_coordinator(request: OozieRequest, schedule: Schedule) -> Any:
    """Return the root of the coordinator that runs the workflow."""
    make = _maker(COORDINATOR_SCHEMA, {"sla": SLA_SCHEMA} if request.sla else {})
    parts = [make.controls(*(make(name, text) for name, text in request.controls.items()))]
    if request.data:
        parts.append(make.datasets(*(_dataset(make, one) for one in request.data)))
    for output, events, event in ((False, "input-events", "data-in"), (True, "output-events", "data-out")):
        if chosen := [one for one in request.data if one.output is output]:
            parts.append(make(events, *(_event(make, event, one) for one in chosen)))
    pairs = (make.property(make.name(name), make.value(text)) for name, text in request.handed_over.items())
    action = make.action(make.workflow(make("app-path", "${appPath}"), make.configuration(*pairs)))
    if request.sla:
        promise = _maker(SLA_SCHEMA)
        action.append(promise.info(*(promise(name, text) for name, text in request.sla.items())))
    root = make(
        "coordinator-app",
        *parts,
        action,
        name=request.name,
        frequency=schedule.expression,
        start="${start}",
        end="${end}",
        timezone=schedule.timezone,
    )
    lxml().etree.indent(root, "    ")
    return root


def _dataset(make: Any, data: DataSet) -> Any:
    attributes = {
        "name": data.name,
        "frequency": data.frequency.expression,
        "initial-instance": FIRST_INSTANCE,
        "timezone": "UTC",  # as the variables of the URI, so a day of the data set is a day in UTC too
    }
    return make.dataset(make("uri-template", data.uri), make("done-flag", data.done_flag), **attributes)


def _event(make: Any, tag: str, data: DataSet) -> Any:
    first, last = (f"${{coord:current({number})}}" for number in data.instances)
    instances = {"instance": first} if first == last else {"start-instance": first, "end-instance": last}
    return make(tag, *(make(name, text) for name, text in instances.items()), name=data.name, dataset=data.name)


def _maker(namespace: str, prefixes: Mapping[str | None, str] = {}) -> Any:
    """Return what makes the elements of a namespace: ``make.ok(to="end")``, ``make("app-path", "${appPath}")``."""
    return lxml().builder.ElementMaker(namespace=namespace, nsmap={None: namespace, **prefixes})

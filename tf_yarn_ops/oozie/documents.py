"""The XML of an application of Oozie and its ``job.properties``, from a checked request. Pure: golden files hold it.

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

from ..errors import Fault, FaultCode
from ..validation import check_faults
from .data import FIRST_INSTANCE, DataSet
from .packed_job import (
    APP_PATH,
    COORDINATOR_NAMES,
    COORDINATOR_PATH,
    FILES_FOLDER,
    FIRST_OUTPUTS,
    LAUNCH,
    PACKED_JOB_FILE,
    PEX,
    VARIABLE_PREFIX,
    WORKFLOW,
    WORKFLOW_NAMES,
    WORKFLOW_PATH,
)
from .schedule import Schedule
from .schemas import lxml, parse_xml
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


class WorkflowFault(FaultCode):
    """Fault codes for the user's own workflow."""

    NO_ACTION = (
        "it needs one action {name!r} with an empty shell, which is filled in: <action name={name!r}><shell "
        "xmlns={schema!r}/><ok to='...'/><error to='...'/></action>, and has {count}; the workflow's own "
        "namespace is {workflow!r}"
    )
    NO_FUNCTION = "line {line}: {given!r} is not a function of Oozie's workflows{hint}"


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
        function = {False: "dataIn", True: "dataOut"}
        return named | {one.name: f"${{coord:{function[one.output]}('{one.name}')}}" for one in self.data}


def build_workflow(request: OozieRequest) -> Any:
    """Return the root of the workflow of the trainings."""
    root = _root(WORKFLOW_SCHEMA, "workflow-app", name=request.name)
    parameters = _add(root, "parameters")
    for name in ("nameNode", "resourceManager", *request.handed_over, *request.properties):
        _add(_add(parameters, "property"), "name", name)
    nodes = _sequence_nodes(request, nest({one.name: one.needs for one in request.trainings}), _END)
    _add(root, "start", to=nodes[0].get("name"))
    root.extend(nodes)
    _add(_add(root, "kill", name=_FAILED), "message", _WHY)
    _add(root, "end", name=_END)
    lxml().indent(root, "    ")
    return root


def _sequence_nodes(request: OozieRequest, steps: "list[str | Fork]", to: str) -> list[Any]:
    """Return the nodes of a sequence that leads to a node."""
    nodes: list[Any] = []
    for step in reversed(steps):
        if isinstance(step, Fork):
            join = f"join-{step.number}"
            branches = [_sequence_nodes(request, branch, join) for branch in step.branches]
            made = [
                _root(WORKFLOW_SCHEMA, "fork", name=f"fork-{step.number}"),
                *chain(*branches),
                _root(WORKFLOW_SCHEMA, "join", name=join, to=to),
            ]
            for branch in branches:
                _add(made[0], "path", start=branch[0].get("name"))
        else:
            made = [_training_node(request, next(one for one in request.trainings if one.name == step), to)]
        nodes, to = [*made, *nodes], made[0].get("name")
    return nodes


def _training_node(request: OozieRequest, training: TrainingAction, to: str) -> Any:
    attributes = {
        key.replace("_", "-"): str(value)
        for key in ("retry_max", "retry_interval")
        if (value := getattr(request, key)) is not None
    }
    node = _root(WORKFLOW_SCHEMA, "action", {}, name=training.name, **attributes)
    node.append(shell_element(request, training))
    _add(node, "ok", to=to)
    _add(node, "error", to=_FAILED)
    return node


def shell_element(request: OozieRequest, training: TrainingAction, read: Iterable[str] = ()) -> Any:
    """Return the ``shell`` element of an action that trains, whose outputs of these names the workflow reads."""
    shell = _root(SHELL_SCHEMA, "shell")
    _add(shell, "resource-manager", "${resourceManager}")
    _add(shell, "name-node", "${nameNode}")
    queue = request.launcher_queue or training.queue
    if request.launcher_memory or queue:
        launcher = _add(shell, "launcher")
        if request.launcher_memory:
            _add(launcher, "memory.mb", str(request.launcher_memory))
        if queue:
            _add(launcher, "queue", queue)
    # Oozie cuts the path of exec to its last part.
    _add(shell, "exec", "bash")
    for argument in (LAUNCH, request.python):
        _add(shell, "argument", argument)
    for name in WORKFLOW_NAMES:
        _add(shell, "env-var", f"{name.variable}={name.expression}")
    for passed in (*request.handed_over, *request.properties):
        _add(shell, "env-var", f"{VARIABLE_PREFIX}{passed}=${{{passed}}}")
    if first := " ".join(dict.fromkeys(read)):
        _add(shell, "env-var", f"{FIRST_OUTPUTS}={first}")
    files = {LAUNCH: LAUNCH, training.document_file: PACKED_JOB_FILE}
    for file, link in (files | ({PEX: PEX} if request.has_pex else {})).items():
        _add(shell, "file", f"{file}#{link}")
    if training.sources:
        _add(shell, "archive", f"{training.archive_file}#{FILES_FOLDER}")
    _add(shell, "capture-output")
    return shell


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
                    WorkflowFault.NO_ACTION,
                    {"name": training.name, "schema": SHELL_SCHEMA, "workflow": WORKFLOW_SCHEMA, "count": len(shells)},
                )
            )
            continue
        filled = shell_element(request, training, re.findall(_READ.format(re.escape(training.name)), request.flow))
        lxml().indent(filled, "    ", level=2)
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
                    yield Fault(WORKFLOW, WorkflowFault.NO_FUNCTION, values)


def build_coordinator(request: OozieRequest, schedule: Schedule) -> Any:
    """Return the root of the coordinator that runs the workflow."""
    root = _root(
        COORDINATOR_SCHEMA,
        "coordinator-app",
        {"sla": SLA_SCHEMA} if request.sla else {},
        name=request.name,
        frequency=schedule.expression,
        start="${start}",
        end="${end}",
        timezone=schedule.timezone,
    )
    controls = _add(root, "controls")
    for name, text in request.controls.items():
        _add(controls, name, text)
    if request.data:
        datasets = _add(root, "datasets")
        for one in request.data:
            # The variables of the URI are in UTC, so a day of the data set is a day in UTC too.
            dataset = _add(
                datasets,
                "dataset",
                name=one.name,
                frequency=one.frequency.expression,
                **{"initial-instance": FIRST_INSTANCE},
                timezone="UTC",
            )
            _add(dataset, "uri-template", one.uri)
            _add(dataset, "done-flag", one.done_flag)
    for output, events, event in ((False, "input-events", "data-in"), (True, "output-events", "data-out")):
        chosen = [one for one in request.data if one.output is output]
        holder = _add(root, events) if chosen else root
        for one in chosen:
            element = _add(holder, event, name=one.name, dataset=one.name)
            first, last = (f"${{coord:current({number})}}" for number in one.instances)
            if first == last:
                _add(element, "instance", first)
            else:
                _add(element, "start-instance", first)
                _add(element, "end-instance", last)
    action = _add(root, "action")
    workflow = _add(action, "workflow")
    _add(workflow, "app-path", "${appPath}")
    configuration = _add(workflow, "configuration")
    for name, expression in request.handed_over.items():
        pair = _add(configuration, "property")
        _add(pair, "name", name)
        _add(pair, "value", expression)
    if request.sla:
        info = _add(action, f"{{{SLA_SCHEMA}}}info")
        for name, text in request.sla.items():
            _add(info, name, text)
    lxml().indent(root, "    ")
    return root


def job_properties(request: OozieRequest, path: str, name_node: str, resource_manager: str) -> dict[str, str]:
    """Return the pairs of ``job.properties``.

    Parameters
    ----------
    request : OozieRequest
    path : str
        The application's folder in the cluster's file system.
    name_node, resource_manager : str
        ``hdfs://host:8020``, ``host:8032``.
    """
    schedule = request.schedule
    return {
        "nameNode": name_node,
        "resourceManager": resource_manager,
        APP_PATH: path,
        COORDINATOR_PATH if schedule else WORKFLOW_PATH: path,
        "oozie.use.system.libpath": "true",
        **({"start": schedule.start, "end": schedule.end} if schedule else {}),
        **request.properties,
    }


def _root(namespace: str, tag: str, prefixes: Mapping[str | None, str] = {}, **attributes: str) -> Any:
    return lxml().Element(f"{{{namespace}}}{tag}", attributes, nsmap={None: namespace, **prefixes})


def _add(parent: Any, tag: str, text: str | None = None, **attributes: str) -> Any:
    """Add an element of the parent's namespace, unless the tag has one."""
    name = tag if tag.startswith("{") else f"{{{lxml().QName(parent).namespace}}}{tag}"
    element = lxml().SubElement(parent, name, attributes)
    element.text = text
    return element

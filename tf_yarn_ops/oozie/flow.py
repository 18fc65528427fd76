"""The flow of a workflow: the user's own one with the actions that train among others, and what Oozie refuses. Pure.

The user writes the workflow with an empty action for each training, ``<action name="train"><shell
xmlns="uri:oozie:shell-action:1.0"/>...</action>``; `fill_workflow` fills the shells in, and keeps everything else.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..errors import Fault, FaultCode
from ..validation import check_faults
from .documents import SHELL_SCHEMA, WORKFLOW_SCHEMA, OozieRequest, shell_element
from .packed_job import WORKFLOW
from .schemas import lxml, parse_xml

_SHELL = f"{{{SHELL_SCHEMA}}}shell"
_NODES = ("start", "end", "kill", "action", "decision", "fork", "join")
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
_START = ":start:"


class WorkflowFault(FaultCode):
    """Fault codes for the user's own workflow."""

    NO_ACTION = (
        "it needs one action {name!r} with an empty shell, which is filled in: <action name={name!r}><shell "
        "xmlns={schema!r}/><ok to='...'/><error to='...'/></action>, and has {count}; the workflow's own "
        "namespace is {workflow!r}"
    )
    NO_NODE = "line {line}: {node!r} leads to {given!r}, and there is no such node{hint}; nodes: {allowed}"
    TWO_NODES = "line {line}: there are two nodes {given!r}; names are unique in a workflow"
    LOOP = "line {line}: {given} is a loop, and Oozie refuses loops"
    NOT_REACHED = "line {line}: nothing leads to {given!r}; lead a transition to it, or delete it"
    NO_FUNCTION = "line {line}: {given!r} is not a function of Oozie's workflows{hint}"


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
        shells = [shell for action in actions for shell in action.findall(_SHELL) if not len(shell)]
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


def flow_faults(root: Any) -> Iterator[Fault]:
    """Yield the faults for which Oozie refuses a workflow that fits its schema, and nodes that nothing reaches."""
    nodes: dict[str, Any] = {}
    for element in root:
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _NODES:
            name = element.get("name", _START)
            if name in nodes:
                yield _fault(element, WorkflowFault.TWO_NODES, name)
            nodes[name] = element
    leads = {
        name: [
            (each, target)
            for each in element.iter("{*}*")
            for key in ("to", "start")
            if (target := each.get(key)) is not None and each.tag.startswith(f"{{{WORKFLOW_SCHEMA}}}")
        ]
        for name, element in nodes.items()
    }
    for name, targets in leads.items():
        for element, target in targets:
            if target not in nodes:
                yield _fault(element, WorkflowFault.NO_NODE, target, node=name, allowed=(*nodes,))
    reached: set[str] = set()
    for loop in _walk(_START, [], {name: [to for _, to in targets] for name, targets in leads.items()}, reached):
        yield _fault(nodes[loop[0]], WorkflowFault.LOOP, " -> ".join(loop))
    for name in [name for name in nodes if name not in reached]:
        yield _fault(nodes[name], WorkflowFault.NOT_REACHED, name)
    for element in root.iter("{*}*"):
        for expression in _EXPRESSION.findall(" ".join([element.text or "", *element.attrib.values()])):
            for name in _CALL.findall(_LITERAL.sub("", expression)):
                if name not in _FUNCTIONS:
                    yield _fault(element, WorkflowFault.NO_FUNCTION, name, allowed=_FUNCTIONS)


def _walk(name: str, path: list[str], leads: dict[str, list[str]], reached: set[str]) -> Iterator[list[str]]:
    """Add all nodes that can be reached; yield each loop on the way."""
    if name in path:
        yield [*path[path.index(name) :], name]
    elif name not in reached:
        reached.add(name)
        for target in leads.get(name, ()):
            yield from _walk(target, [*path, name], leads, reached)


def _fault(element: Any, code: WorkflowFault, given: str, **values: Any) -> Fault:
    return Fault(WORKFLOW, code, {"line": element.sourceline, "given": given, **values})

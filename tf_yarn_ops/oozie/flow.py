"""The user's own workflow, with the action that trains among others. Pure.

The user writes the workflow with an empty action, ``<action name="train"><shell
xmlns="uri:oozie:shell-action:1.0"/>...</action>``; `fill_workflow` fills the shell in, and keeps everything else.
"""

import xml.etree.ElementTree as ElementTree

from ..errors import Code, Fault, SpecInvalid
from .application import SHELL_SCHEMA, WORKFLOW_SCHEMA, Application, shell_element
from .contract import ACTION_NAME
from .schemas import parse_xml

_SHELL = f"{{{SHELL_SCHEMA}}}shell"


class Wrong(Code):
    """What is wrong with the user's own workflow."""

    NO_ACTION = ("it needs one action {name!r} with an empty shell, which is filled in: <action name={name!r}><shell "
                 "xmlns={schema!r}/><ok to='...'/><error to='...'/></action>, and has {count}; the workflow's own "
                 "namespace is {workflow!r}")


def fill_workflow(text: str, application: Application) -> str:
    """Return the user's workflow with the action that trains.

    Raises
    ------
    SpecInvalid
        The text is not XML, or has not one empty action ``train``.
    """
    from lxml import etree

    root = parse_xml("workflow", text)
    actions = [action for action in root.iter(f"{{{WORKFLOW_SCHEMA}}}action") if action.get("name") == ACTION_NAME]
    shells = [shell for action in actions for shell in action.findall(_SHELL) if not len(shell)]
    if len(actions) != 1 or len(shells) != 1:
        raise SpecInvalid(Fault("workflow", Wrong.NO_ACTION, {
            "name": ACTION_NAME, "schema": SHELL_SCHEMA, "workflow": WORKFLOW_SCHEMA, "count": len(shells)}))
    element = shell_element(application)
    ElementTree.indent(element, "    ", level=2)
    filled = etree.fromstring(ElementTree.tostring(element))
    filled.tail = shells[0].tail
    shells[0].getparent().replace(shells[0], filled)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{etree.tostring(root, encoding="unicode")}\n'

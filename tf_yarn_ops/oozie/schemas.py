"""Check documents against Oozie's own schemas, which lie in this package with their notice (Apache License 2.0).

They are those of the jar oozie-client 5.2.1, so that nobody needs Maven or a network to pack an application.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import Fault, FaultCode, HadoopClientUnfit, SpecInvalid

SCHEMA_FOLDER = Path(__file__).parent / "schemas"
#: The schema of each namespace.
SCHEMA_FILES = {
    "uri:oozie:workflow:1.0": "oozie-workflow-1.0.xsd",
    "uri:oozie:shell-action:1.0": "shell-action-1.0.xsd",
    "uri:oozie:coordinator:0.5": "oozie-coordinator-0.5.xsd",
    "uri:oozie:sla:0.2": "oozie-sla-0.2.xsd",
}


class SchemaFault(FaultCode):
    """Fault codes for a document."""

    NOT_XML = "not XML: {problem}"
    NOT_VALID = "line {line}: {problem}"
    NO_ACTION = (
        "it needs one action {name!r} with an empty shell, which is filled in: <action name={name!r}><shell "
        "xmlns={schema!r}/><ok to='...'/><error to='...'/></action>, and has {count}; the workflow's own "
        "namespace is {workflow!r}"
    )
    NO_FUNCTION = "line {line}: {given!r} is not a function of Oozie's workflows{hint}"


class SchemasMissing(HadoopClientUnfit):
    """The library that checks XML is not installed."""

    hint = "Install it and try again."


def parse_xml(name: str, text: str) -> Any:
    """Return the root element (lxml) of a document.

    Raises
    ------
    SpecInvalid
        The text is not XML.
    SchemasMissing
        The library lxml is not installed.
    """
    etree = lxml().etree
    try:
        # Oozie's own parser refuses entities; so does this one.
        return etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise SpecInvalid(Fault(name, SchemaFault.NOT_XML, {"problem": str(error)})) from error


def document_faults(roots: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for each place of the documents that Oozie's schemas refuse, with its line in the user's file."""
    etree = lxml().etree
    # One schema of all namespaces: a workflow holds elements of several.
    imports = "".join(
        f'<xs:import namespace="{namespace}" schemaLocation="{SCHEMA_FOLDER / file}"/>'
        for namespace, file in SCHEMA_FILES.items()
    )
    text = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    schema = etree.XMLSchema(etree.fromstring(text))
    for name, root in roots.items():
        if not schema.validate(root):
            for error in schema.error_log:
                yield Fault(name, SchemaFault.NOT_VALID, {"line": error.line, "problem": error.message})


def to_text(root: Any) -> str:
    """Return the text of a document."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{lxml().etree.tostring(root, encoding="unicode")}\n'


def lxml() -> Any:
    """Return the library ``lxml``; raise SchemasMissing if it is not installed."""
    try:
        import lxml.builder
    except ImportError as error:
        raise SchemasMissing(
            "lxml is missing, which checks the documents against Oozie's schemas: pip install 'tf-yarn-ops[oozie]'"
        ) from error
    return lxml

"""Check documents against Oozie's own schemas, which lie in this package with their notice (Apache License 2.0).

They are those of the jar oozie-client 5.2.1, so that nobody needs Maven or a network to pack an application.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import Code, Fault, HadoopClientUnfit, SpecInvalid

FOLDER = Path(__file__).parent / "schemas"
#: The schema of each namespace.
FILES = {
    "uri:oozie:workflow:1.0": "oozie-workflow-1.0.xsd",
    "uri:oozie:shell-action:1.0": "shell-action-1.0.xsd",
    "uri:oozie:coordinator:0.5": "oozie-coordinator-0.5.xsd",
    "uri:oozie:sla:0.2": "oozie-sla-0.2.xsd",
}


class Wrong(Code):
    """What is wrong with a document."""

    NOT_XML = "not XML: {problem}"
    NOT_VALID = "line {line}: {problem}"


class SchemasMissing(HadoopClientUnfit):
    """The library that checks XML is not installed."""

    @property
    def hint(self) -> str:
        return "Install it and try again."


def parse_xml(name: str, text: str) -> Any:
    """Return the root element (lxml) of a document.

    Raises
    ------
    SpecInvalid
        The text is not XML.
    SchemasMissing
        The library lxml is not installed.
    """
    etree = _lxml()
    try:
        # Oozie's own parser refuses entities; so does this one.
        return etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise SpecInvalid(Fault(name, Wrong.NOT_XML, {"problem": str(error)})) from error


def check_documents(documents: dict[str, str]) -> None:
    """Check the XML among the files of an application.

    Parameters
    ----------
    documents : dict of str to str
        Texts by the names of their files.

    Raises
    ------
    SpecInvalid
        With a fault for each place that Oozie would refuse.
    SchemasMissing
        The library lxml is not installed.
    """
    faults = []
    for name, text in documents.items():
        if not name.endswith(".xml"):
            continue
        schema = _schema()
        if not schema.validate(parse_xml(name, text)):
            faults += [Fault(name, Wrong.NOT_VALID, {"line": error.line, "problem": error.message})
                       for error in schema.error_log]
    if faults:
        raise SpecInvalid(faults)


@lru_cache(maxsize=1)
def _schema() -> Any:
    """Return one schema of all namespaces: a workflow holds elements of several."""
    etree = _lxml()
    imports = "".join(f'<xs:import namespace="{namespace}" schemaLocation="{FOLDER / file}"/>'
                      for namespace, file in FILES.items())
    schema = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(schema))


def _lxml() -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise SchemasMissing("lxml is missing, which checks the documents against Oozie's schemas: "
                             "pip install 'tf-yarn-ops[oozie]'") from error
    return etree

"""Diagrams are pictures without scripts, each drawn from its present source and shown by a page."""

import importlib.util
import re
from xml.etree import ElementTree

import pytest

from support.source import ROOT

DOCS = ROOT / "docs"
SOURCES = sorted((DOCS / "diagrams").glob("*.mmd"))
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]
_FOUND = importlib.util.spec_from_file_location("diagrams", DOCS / "diagrams.py")
diagrams = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(diagrams)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_diagram_is_drawn_from_its_source_and_needs_nothing_else(source):
    text = (DOCS / "pictures" / f"{source.stem}.svg").read_text(encoding="utf-8")
    assert text.startswith(diagrams.stamp(source)), "run: python docs/diagrams.py"
    for element in ElementTree.fromstring(text).iter():
        assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a")
    assert not re.search(r"@import|url\((?!['\"]?#)", text)
    assert any(f"pictures/{source.stem}.svg)" in page.read_text(encoding="utf-8") for page in PAGES)


def test_no_page_leaves_a_diagram_to_the_readers_browser():
    assert [page.name for page in PAGES if "```mermaid" in page.read_text(encoding="utf-8")] == []

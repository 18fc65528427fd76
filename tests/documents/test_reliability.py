"""docs/operations/reliability.md has a line for every row of the fault matrix, and no other."""

import re
from pathlib import Path

import pytest

from support.fault_table import PARTS, table_below

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "reliability.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("heading", PARTS)
def test_page_has_the_table_of_the_matrix(heading):
    assert f"### {heading}\n\n{table_below(heading)}\n\n" in PAGE


def test_row_of_a_scheduler_names_a_test():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in named}
    assert named and [(file, name) for file, name in named if f"def {name}(" not in sources[file]] == []

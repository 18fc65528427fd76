"""docs/features.md answers every id of the checklist, and what it calls working has a test that exists."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The checklist's five parts and their numbers of rows: 185 in all.
PARTS = {"SL": 45, "YD": 89, "TY": 26, "SB": 12, "TT": 13}
IDS = [f"{part}-{number}" for part, rows in PARTS.items() for number in range(1, rows + 1)]
PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
ROWS = {row[0]: row for line in PAGE.splitlines() if re.match(r"\| [A-Z]{2}-\d+ \|", line)
        for row in [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]]}  # fmt: skip


@functools.cache
def functions_of(path):
    """Give the names of the test functions of a file; none if there is no such file."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_there_are_185_ids_each_with_its_row():
    assert len(IDS) == 185
    assert list(ROWS) == IDS


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_row_says_what_we_do_and_names_a_test_that_exists(row):
    _, what, status, test = row
    assert len(what) > 3
    assert status in ("works", "part", "no")
    assert test or status == "no", "works and part need a test"
    for one in test.split(", ") if test else ():
        path, name = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", one).groups()
        assert name in functions_of(ROOT / path), f"{one} does not exist"


def test_the_sum_at_the_top_is_right():
    works, part, no = map(int, re.search(r"^(\d+) work, (\d+) in part, (\d+) do not\.$", PAGE, re.M).groups())
    statuses = [row[2] for row in ROWS.values()]
    assert (works, part, no) == tuple(statuses.count(status) for status in ("works", "part", "no"))

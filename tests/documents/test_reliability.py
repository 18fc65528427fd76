"""docs/operations/reliability.md has a line for every row of the fault matrix, and no other."""

import re
from pathlib import Path

import pytest

from support.fault_table import HEAD, PARTS, line

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "reliability.md").read_text(encoding="utf-8")


def lines_below(heading):
    """Return the lines of the table below a heading."""
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n#")[0]
    assert HEAD in section, f"there is no table below {heading!r}"
    return section.partition(HEAD)[2].strip().splitlines()


@pytest.mark.parametrize("heading", PARTS)
def test_the_table_is_that_of_the_tests_with_what_was_measured(heading):
    found = lines_below(heading)
    seconds = [float(re.search(r"\| ([\d.]+) s \|$", text)[1]) for text in found]
    expected = [line(row, measured) for row, measured in zip(PARTS[heading], seconds, strict=True)]
    assert found == expected
    assert all(measured <= row.limit for row, measured in zip(PARTS[heading], seconds, strict=True))


def test_the_number_of_rows_at_the_top_is_right():
    assert f"{sum(map(len, PARTS.values()))} faults" in PAGE


@pytest.mark.parametrize("test", re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE))
def test_row_of_a_scheduler_names_a_test(test):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")

"""docs/development/evidence.md answers every id of the checklist, and what it calls working has tests that can prove it."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The checklist's five parts and their numbers of rows: 185 in all.
PARTS = {"SL": 45, "YD": 89, "TY": 26, "SB": 12, "TT": 13}
IDS = [f"{part}-{number}" for part, rows in PARTS.items() for number in range(1, rows + 1)]
PAGE = (ROOT / "docs" / "development" / "evidence.md").read_text(encoding="utf-8")
#: By id: the sentence, and the tests behind it.
ROWS = {
    row[1]: row.groups(default="")
    for row in re.finditer(r"^- ([A-Z]{2}-\d+): (.+?)(?:; ((?:`tests/[\w/]+\.py::\w+`(?:, )?)+))?$", PAGE, re.M)
}


class Functions:
    """What the syntax tree of a test file tells of its functions.

    Attributes
    ----------
    names : set of str
        All functions.
    golden : set of str
        Those that read a golden file: they or a function that they call use a name that the module gives to a folder
        called golden.
    """

    def __init__(self, source):
        tree = ast.parse(source)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        targets = {ast.unparse(node.targets[0]): node.value for node in assigned}
        folders = {
            name
            for name, value in targets.items()
            if any(isinstance(part, ast.Constant) and part.value == "golden" for part in ast.walk(value))
        }
        self.names = {node.name for node in functions}
        used = {node.name: {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} for node in functions}
        self.golden = {name for name, words in used.items() if words & folders}
        while more := {name for name, words in used.items() if words & self.golden} - self.golden:
            self.golden |= more


@functools.cache
def source_of(path):
    """Return the text of a file, nothing if there is no such file."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


@functools.cache
def functions_of(path):
    """Return the `Functions` of a file, without any function if there is no such file."""
    return Functions(source_of(path))


def named_by(row):
    """Return the tests that a row names: pairs of a file's `Functions` and a function's name."""
    found = [re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", text) for text in row[2].split(", ") if text]
    assert all(found), f"not a list of tests: {row[2]}"
    return [(functions_of(one[1]), one[2]) for one in found]


def test_each_id_has_its_row():
    assert list(ROWS) == IDS


def status_of(row):
    """Return "no", "part" or "works", as the row's sentence says."""
    return "no" if row[1].startswith("no: ") else "part" if "; missing: " in row[1] else "works"


def test_a_row_says_what_we_do_and_names_tests_that_can_prove_it():
    for row in ROWS.values():
        number, what, _ = row
        assert len(what) > 3, number
        found = named_by(row)
        for functions, name in found:
            assert name in functions.names, f"{number}: {name} does not exist"
        if status_of(row) == "no":
            continue
        assert found, f"{number}: what works, or works in part, needs a test"
        golden = all(name in functions.golden for functions, name in found)
        assert not (golden and status_of(row) == "works"), f"{number}: its tests only compare with a golden file"


def test_words_in_backticks_stand_in_a_named_test_file():
    missing = []
    for number, what, tests in ROWS.values():
        source = "".join(source_of(path) for path in re.findall(r"`(tests/[\w/]+\.py)::", tests))
        words = [word for text in re.findall(r"`([^`]+)`", what) for word in re.split(r"[\s|\\]+", text)]
        missing += [(number, word) for word in words if tests and word.removeprefix("--") not in source]
    assert missing == []


EXAMPLE = """
GOLDEN = Path(__file__).parent / "golden"
def test_one(): pass
def read(name): return (GOLDEN / name).read_text()
def test_request(): assert text == read("seed.yaml")
"""


def test_golden_files_are_seen_in_the_syntax_tree():
    assert Functions(EXAMPLE).golden == {"read", "test_request"}


def test_the_golden_test_of_the_requests_is_known_as_such():
    assert "test_the_request_is_what_it_was" in functions_of("tests/submit/test_application.py").golden

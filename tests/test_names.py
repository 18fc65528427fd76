"""One word per idea: no public name and no file name stands for two things in the package."""

import ast
from collections import defaultdict

import pytest

from support.source import MODULES, PACKAGE, ROOT, tree_of

#: Names that mean the same in every module that has them.
SHARED = {
    "logger": "the log of the module",
    "main": "the entry point of a program",
    "register": "what makes a library open hdfs://",
}
#: Files that hold the same idea in each room.
PATTERNS = {
    "__init__.py": "what the room does",
    "commands.py": "the commands of the room for the shell",
    "request.py": "from the words of a door to a request",
    "job.py": "from a request to a JobSpec",
}


def public_names(tree):
    """Yield the classes, functions and constants of a module that have no leading underscore."""
    for node in tree.body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names = [node.name]
            case ast.Assign():
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def several(places):
    return {name: sorted(found) for name, found in places.items() if len(found) > 1}


def test_each_public_name_is_defined_once():
    places = defaultdict(set)
    for path in MODULES:
        for name in public_names(tree_of(path)):
            places[name].add(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in several(places).items() if name not in SHARED} == {}
    assert len(SHARED) <= 5


def test_file_names_recur_only_as_patterns():
    places = defaultdict(set)
    for path in MODULES:
        places[path.name].add(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in several(places).items() if name not in PATTERNS} == {}


@pytest.mark.parametrize(
    "source, names",
    [
        (
            "class A: pass\nasync def b(): pass\nC = D = 1\nE: int = 2\n_F = 3\ndef _g(): pass",
            ["A", "b", "C", "D", "E"],
        ),
        ("if True:\n    x = 1\nimport os\na.b = 2", []),
    ],
)
def test_public_names_are_read_from_the_tree(source, names):
    assert list(public_names(ast.parse(source))) == names


@pytest.mark.slow
def test_names_of_tests_have_at_most_70_characters():
    long = [
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > 70
    ]
    assert long == []

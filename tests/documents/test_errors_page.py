"""docs/guides/errors.md quotes texts that exist: ours in the package, others' in a test, in a link or as produced here."""

import ast
import functools
import re
import subprocess
import sys

import click
import pytest

from support.source import MODULES, ROOT, nodes_of
from tf_yarn_ops.azkaban.commands import azkaban
from tf_yarn_ops.cli.cache import cache
from tf_yarn_ops.cli.parameters import ALL
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.oozie.commands import oozie

PAGE = (ROOT / "docs" / "guides" / "errors.md").read_text(encoding="utf-8")
#: Cells of each row: the texts, who prints them, the meaning, what to do.
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| `")]
OURS = [(text, row) for row in ROWS if row[1] == "`tf_yarn_ops`" for text in re.findall("`([^`]+)`", row[0])]
FOREIGN = [(text, row) for row in ROWS if row[1] != "`tf_yarn_ops`" for text in re.findall("`([^`]+)`", row[0])]
#: Texts of bash, env and Python, by the script whose run prints them; each begins in an empty folder.
PRODUCED = {
    "command not found": "no-such-program",
    "Permission denied": "touch a; ./a",
    "python3\\r": "printf '#!/usr/bin/env python3\\r\\n' > a; chmod +x a; ./a",
    "can't open file": f"{sys.executable} nowhere.py",
    "ModuleNotFoundError: No module named": f"{sys.executable} -c 'import nowhere'",
    "EOF when reading a line": f"{sys.executable} -c 'input()'",
    "Connect call failed": f"{sys.executable} -c 'import asyncio; asyncio.run(asyncio.open_connection(\"127.0.0.1\", 1))'",
}
#: Texts of one meaning, of which each version of bash prints one, for `printf '#!/nowhere' > a; ./a`.
NO_INTERPRETER = ("cannot execute: required file not found", "bad interpreter")


def texts_of(nodes):
    """Yield the strings among the nodes of a module; values in an f-string are ``...``, and docstrings are left out."""
    inner = set()
    for node in nodes:
        if isinstance(node, ast.Expr):
            inner.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            inner |= set(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.value


@functools.cache
def texts_below(folder):
    """Return the strings of the package, or of all tests but this one."""
    files = MODULES if folder == "tf_yarn_ops" else sorted((ROOT / folder).rglob("*.py"))
    return [text for file in files if file.name != "test_errors_page.py" for text in texts_of(nodes_of(file))]


def is_quoted(text, sources):
    """Return whether a string has the parts of a quoted text, which ``...`` separates, in their order."""
    parts = [re.escape(part.strip()) for part in text.split("...")]
    pattern = re.compile(".*".join(parts), re.S)
    return any(map(pattern.search, sources))


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text, _ in OURS])
def test_text_of_ours_stands_in_the_package(text):
    assert is_quoted(text, texts_below("tf_yarn_ops"))


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text, row in FOREIGN if "](https://" not in row[1]])
def test_text_of_others_is_recorded_in_a_test_or_produced(text):
    assert text in PRODUCED or text in NO_INTERPRETER or is_quoted(text, texts_below("tests"))


@pytest.mark.parametrize("text", PRODUCED)
def test_text_of_others_is_what_this_machine_prints(text, tmp_path):
    run = subprocess.run(["bash", "-c", PRODUCED[text]], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True)
    assert text in run.stderr.decode(errors="replace")
    assert any(text == quoted for quoted, _ in FOREIGN)


def test_script_without_its_interpreter_has_one_of_two_texts(tmp_path):
    script = "printf '#!/nowhere\\n' > a; chmod +x a; ./a"
    run = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert any(text in run.stderr for text in NO_INTERPRETER)
    assert set(NO_INTERPRETER) <= {text for text, _ in FOREIGN}


def test_a_text_that_nobody_prints_would_be_seen():
    assert is_quoted("no coordinator on ..., ports ... to", texts_below("tf_yarn_ops"))
    assert not is_quoted("no coordinator at ..., ports ... to", texts_below("tf_yarn_ops"))
    assert list(texts_of(ast.walk(ast.parse("'''A docstring.'''\na = f'x {y} ' 'z'\n")))) == ["x ... z"]


def test_each_row_has_four_cells_and_each_text_stands_once():
    assert [row for row in ROWS if len(row) != 4 or not all(row)] == []
    texts = [text for text, _ in [*OURS, *FOREIGN]]
    assert sorted(texts) == sorted(set(texts))


def commands_below(group):
    """Yield all commands below a group."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        yield name, command
        if isinstance(command, click.Group):
            yield from commands_below(command)


def test_what_to_type_exists():
    commands = [*commands_below(ytf), *commands_below(cache), *commands_below(azkaban), *commands_below(oozie)]
    known = {f"--{option.name}" for option in ALL}
    known |= {name for _, command in commands for parameter in command.params for name in parameter.opts}
    typed = "\n".join(
        re.findall("`([^`]+)`", "\n".join(row[3] for row in ROWS)) + re.findall("```\n(.*?)```", PAGE, re.S)
    )
    ours = re.sub(r"^(hdfs|oozie|yarn) .*$|^'.*'$", "", typed, flags=re.M)  # without other programs
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", ours)) <= known
    assert set(re.findall(r"\bytf ([a-z]+)", ours)) <= {name for name, _ in commands}

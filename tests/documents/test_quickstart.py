"""The quickstart shows the program and the command that its picture was made with, and they are still the ones that run."""

import importlib.util
import re
import shlex

from support.source import ROOT
from tf_yarn_ops.cli.submit import submit

_FOUND = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
picture = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(picture)

PAGE = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")


def blocks(language):
    """Return the blocks of code of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_the_program_is_the_one_of_the_examples():
    assert blocks("python") == [picture.PROGRAM.read_text(encoding="utf-8")]


def test_the_command_is_the_one_of_the_picture_and_its_options_exist():
    assert picture.typed(picture.COMMAND) + "\n" in blocks("sh")
    submit.make_context("ytf-submit", picture.COMMAND[1:])


def test_the_output_and_the_picture_are_of_one_run():
    (output,) = blocks("text")
    svg = (ROOT / "docs" / "picture.svg").read_text(encoding="utf-8")
    first = output.splitlines()[0]
    assert re.fullmatch(r"application_\d+_\d{4}", first) and first in svg
    assert f"{first} SUCCEEDED: " in output


def test_every_command_of_the_page_is_one():
    words = {
        tuple(shlex.split(line, comments=True)[:2])
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("ytf ")
    }
    assert words == {("ytf", "minicluster"), ("ytf", "history"), ("ytf", "report"), ("ytf", "logs")}

"""The README is short, its examples are accepted by the doors that they are for."""

import ast
import re
import shlex
import sys

from support.source import ROOT
from tf_yarn_ops import JobSpec, TaskSpec
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.properties import parse_properties
from tf_yarn_ops.cli.submit import submit

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    """Return the blocks of code of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_command_lines_are_accepted():
    lines = [
        line
        for block in re.findall(r"```\w*\n(.*?)```", README, re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if "ytf-submit" in line
    ]
    assert lines
    for line in lines:
        words = shlex.split(line.replace("\\%", "%"), comments=True)
        words = words[words.index("ytf-submit") + 1 :]
        submit.make_context("ytf-submit", [word for word in words if not word.startswith(">")])


def test_the_python_example_is_a_job():
    code = next(block for block in blocks("python") if "Launcher" in block)
    job = next(
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "JobSpec"
    )
    built = eval(ast.unparse(job), {"JobSpec": JobSpec, "TaskSpec": TaskSpec})
    assert built.tasks["worker"].instances == 4


def test_the_azkaban_example_is_a_job(tmp_path):
    (tmp_path / "train.py").touch()
    (example,) = blocks("properties")
    job, request = read_azkaban_job(parse_properties(example.encode()), tmp_path)
    assert (job.tasks["worker"].instances, job.tasks["worker"].memory, request.warnings) == (4, 8192, [])


def test_requirements_of_an_example_name_all_its_imports():
    for file in (ROOT / "examples").glob("*/requirements.txt"):
        trees = [ast.parse(program.read_text(encoding="utf-8")) for program in file.parent.glob("*.py")]
        names = {
            alias.name.partition(".")[0]
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert names - sys.stdlib_module_names == {*file.read_text(encoding="utf-8").split()}
        assert "ytf env pack requirements.txt" in (file.parent / "README.md").read_text(encoding="utf-8")

"""docs/operations/reasons.md, running.md and the code hold each other: reasons, deadlines, budgets, names."""

import re
from dataclasses import fields
from pathlib import Path

import click

from tf_yarn_ops.cli.cache import cache
from tf_yarn_ops.cli.parameters import ALL
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.job.options import OPTIONS
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.runtime.common.reasons import Reason

FOLDER = Path(__file__).parents[2] / "docs" / "operations"
PAGE = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in ("reasons.md", "running.md"))
#: Words in capitals that are no reasons.
OTHER_NAMES = {"TF_CONFIG", "UNAVAILABLE", "YTF_RESOURCEMANAGER", "YTF_APPLICATION_ID", "APP", "SIGSTOP"}


def section(title):
    """Return the text below a heading, up to the next one."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S).group(1)


def rows(title, header):
    """Return the cells of the table of a section whose first column is named so, without blanks and code marks."""
    lines = section(title).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {header} |"))
    found = []
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip().strip("`") for cell in line.strip("|").split(" | ")])
    return found


def test_every_reason_has_its_exit_code_and_whether_a_retry_helps():
    documented = [(row[0], int(row[1]), row[2]) for row in rows("The reasons", "reason")]
    assert documented == [(r.value, r.exit_code, "yes" if r.retryable else "no") for r in Reason]


def test_every_reason_says_what_it_means_and_what_to_do():
    found = rows("The reasons", "reason")
    assert [row[0] for row in found] == [reason.value for reason in Reason]
    assert all(len(row) == 5 and all(row) for row in found)


def test_no_reason_is_named_that_the_code_does_not_know():
    named = set(re.findall(r"`([A-Z][A-Z_]{2,})`", PAGE))
    assert named - OTHER_NAMES == {reason.value for reason in Reason}


def test_every_deadline_has_its_default():
    documented = {row[0]: float(row[1]) for row in rows("Deadlines", "deadline")}
    assert documented == {field.name: getattr(Deadlines(), field.name) for field in fields(Deadlines)}


def test_a_deadline_ends_as_a_reason_of_the_table():
    known = {reason.value for reason in Reason}
    for row in rows("Deadlines", "deadline"):
        named = re.findall(r"[A-Z_]{4,}", row[4])
        assert set(named) <= known
        assert named or row[0] in ("stop_grace", "evaluator_grace")


def test_policies_and_budgets_are_those_of_the_code():
    assert [row[0].split("`")[0] for row in rows("Restarts and the two budgets", "policy (`--restart`)")] == list(
        OPTIONS["restart"].kind.choices
    )
    budgets = {row[0]: row[1] for row in rows("Restarts and the two budgets", "budget")}
    assert budgets == {
        "max_restarts": f"{RestartPolicy().max_restarts} with `never`, else {RestartPolicy('task').max_restarts}",
        "max_container_losses": str(RestartPolicy().max_container_losses),
    }


def test_every_option_that_is_named_exists():
    submit = {f"--{option.name}" for option in ALL}
    commands = [
        group.get_command(click.Context(group), name)
        for group in (ytf, cache)
        for name in group.list_commands(click.Context(group))
    ]  # some are imported when they are called
    of_ytf = {name for command in commands for parameter in command.params for name in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", PAGE))
    assert named and named <= submit | of_ytf

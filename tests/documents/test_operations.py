"""docs/operations/reasons.md, running.md and the code hold each other: reasons, deadlines, budgets, names."""

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from support.source import MODULES
from tf_yarn_ops.cli.cache import cache
from tf_yarn_ops.cli.options import ALL
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.follow.identity import LAUNCH_RETRIES
from tf_yarn_ops.follow.lease import LIFETIME_SLACK
from tf_yarn_ops.hadoop.resourcemanager import RECOVERY_TIME
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import RESTART_MODES, Deadlines, RestartPolicy
from tf_yarn_ops.launch.retry import LAUNCH_PAUSE, RETRY_PAUSE
from tf_yarn_ops.runtime.common.contract import MAX_TF_CONFIG, RUNTIME_FILE
from tf_yarn_ops.runtime.common.protocol import PORTS
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import driver, ending, lifecycle, overseer
from tf_yarn_ops.staging import sweep
from tf_yarn_ops.submit import certificate

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
    for line in lines[begin + 2:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip().strip("`") for cell in line.strip("|").split(" | ")])
    return found


def test_every_reason_has_its_exit_code_and_whether_a_retry_helps():
    documented = [(row[0], int(row[1]), row[2]) for row in rows("The reasons", "reason")]
    assert documented == [(r.value, r.exit_code, "yes" if r.retryable else "no") for r in Reason]


def test_every_reason_says_what_it_means_where_to_look_and_what_to_do():
    text = section("The reasons").partition("What to look at")[2]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")]
             for line in text.splitlines() if line.startswith("| `")]
    assert [row[0].strip("`") for row in found] == [reason.value for reason in Reason]
    assert all(len(row) == 4 and all(row) for row in found)


def test_no_reason_is_named_that_the_code_does_not_know():
    named = set(re.findall(r"`([A-Z][A-Z_]{2,})`", PAGE))
    assert named - OTHER_NAMES == {reason.value for reason in Reason}


def test_every_deadline_has_its_default():
    documented = {row[0]: float(row[1]) for row in rows("Deadlines", "deadline")}
    assert documented == {field.name: getattr(Deadlines(), field.name) for field in fields(Deadlines)}


def test_a_deadline_ends_as_a_reason_of_the_table():
    known = {reason.value for reason in Reason}
    for row in rows("Deadlines", "deadline"):
        named = re.findall(r"[A-Z]+_[A-Z]+", row[4])
        assert set(named) <= known
        assert named or row[0] == "stop_grace"


def test_policies_and_budgets_are_those_of_the_code():
    assert [row[0].split("`")[0] for row in rows("Restarts and the two budgets", "policy (`--restart`)")] == \
        list(RESTART_MODES)
    budgets = {row[0]: row[1] for row in rows("Restarts and the two budgets", "budget")}
    assert budgets == {
        "max_restarts": f"{RestartPolicy().max_restarts} with `never`, else {RestartPolicy('task').max_restarts}",
        "max_container_losses": str(RestartPolicy().max_container_losses),
    }


@pytest.mark.parametrize("words", [
    f"begins with `backoff` ({RestartPolicy().backoff:g} s) and doubles, up to {lifecycle.MAX_BACKOFF:g} s",
    f"within {lifecycle.QUICK_SECONDS:g} s of their start",
    f"{driver.SILENCE_SECONDS:g} s without a turn of the coordinator's loop",
    f"{overseer.ANSWER_SECONDS:g} s for Skein to say why",
    f"{ending.RESOURCEMANAGER_SECONDS:g} s for which a verdict waits for a ResourceManager",
    f"A verdict waits up to {ending.RESOURCEMANAGER_SECONDS:g} s for it",
    f"may still have to recover, not before {RECOVERY_TIME:g} s |",
    f"every {overseer.LOG_SECONDS:g} s `Waiting for all ports",
    f"`queue` + `total` + {LIFETIME_SLACK:g} s",
    f"{PORTS} consecutive ports",
    f"in {Site().coordinator_ports} ",
    f"(`unreachable_timeout` ({Site().unreachable_timeout:g} s)"[1:],
    f"default `{Site().staging.replace('{user}', '<user>')}`",
    f"above {MAX_TF_CONFIG // 1024} KiB",
    f"up to {sweep.AT_MOST} of the user's own application directories",
    f"{sweep.FORGOTTEN_AFTER // 86_400_000} days after its last change",
    f"| claims | {sweep.CLAIMS_FORGOTTEN_AFTER // 86_400_000} days |",
    f"{certificate.VALID.days} days from its submission, valid from {certificate.BACKDATED.days * 24} h before",
    f"{RUNTIME_FILE} coordinator APP",
    f"{RUNTIME_FILE} agent SERVICE APP",
])
def test_the_figures_and_names_are_those_of_the_code(words):
    assert words in PAGE


def test_every_option_that_is_named_exists():
    submit = {f"--{option.name}" for option in ALL}
    commands = [group.get_command(click.Context(group), name) for group in (ytf, cache)
                for name in group.list_commands(click.Context(group))]  # some are imported when they are called
    of_ytf = {name for command in commands for parameter in command.params for name in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", PAGE))
    assert named and named <= submit | of_ytf


def test_the_pause_before_a_job_is_submitted_again_is_that_of_the_code():
    assert f"after {', '.join(f'{RETRY_PAUSE * n:g} s' for n in (1, 2, 3))}, each times 0.5 to 1.5" in PAGE
    assert f"at most {LAUNCH_RETRIES} times, after {LAUNCH_PAUSE:g} s, where YARN could not launch" in PAGE


def test_the_three_failures_in_a_row_are_those_of_the_code():
    assert lifecycle.QUICK_FAILURES == 3 and "Three failures in a row" in PAGE


@pytest.mark.parametrize("words", [
    "no coordinator on", "needs grpcio", "there is no Python", "are all taken", "was silent for", "needs Python 3.9", "takes us for",
    "no agent registered within", "times in a row", "was lost", "Error launching", "Listening on port", "registered as",
    "Waiting for all ports", "Published the cluster spec", "Verdict: ", "Ended after", "tf_yarn_ops agent:",
])
def test_messages_that_are_quoted_are_those_of_the_code(words):
    assert words in PAGE
    assert any(words in path.read_text(encoding="utf-8") for path in MODULES)

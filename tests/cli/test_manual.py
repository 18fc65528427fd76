"""The manual page of ytf-submit, and the documents about its options."""

import re

import click

from support.programs import ROOT, SUBMIT, run
from tf_yarn_ops.cli.manual import VARIABLES, manual_page
from tf_yarn_ops.cli.parameters import ALL, names_of, shown_default
from tf_yarn_ops.cli.ytf import LAZY, ytf
from tf_yarn_ops.job.spec import JobSpec, TaskSpec


def test_help_is_a_manual_page():
    page = run(SUBMIT, "-h").stdout
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "TASK EXECUTION ENVIRONMENT", "EXAMPLES", "EXIT STATUS"):
        assert f"\n{heading}\n" in f"\n{page}"
    for option in ALL:
        assert f"    {', '.join(names_of(option))}" in page
    for name, _ in VARIABLES:
        assert f"    {name}:" in page
    assert page.startswith("NAME\n    ytf-submit - Submit a TensorFlow session to Apache Hadoop YARN\n")
    assert "Usage: ytf-submit [OPTIONS] -r <cluster_requirement> <task_command>" in page


def test_help_fits_the_terminal():
    words, examples = manual_page(80).split("\nEXAMPLES\n")
    assert [line for line in words.splitlines() if len(line) > 80 and not line.startswith("    -")] == []
    assert [line for line in examples.splitlines() if len(line) > 100] == []


def rows_of(page, heading):
    """Return the cells of the first table below a heading."""
    section = page.split(f"{heading}\n", 1)[1]
    table = section[section.index("|") :].split("\n\n", 1)[0]
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in table.splitlines()[2:]]


def test_docs_cli_has_each_command_and_option():
    page = (ROOT / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    commands = {row[0].strip("`").split()[1] for row in rows_of(page, "\n## ytf")}
    assert commands == {*ytf.commands, *LAZY}
    for words in (row[0].strip("`").split() for row in rows_of(page, "\n## ytf")):
        command = ytf.get_command(click.Context(ytf), words[1])
        assert not isinstance(command, click.Group) or set(words[2].split("\\|")) == set(command.commands), words
    lazy = [ytf.get_command(click.Context(ytf), name) for name in ("logs",)]
    options = {name for command in (*ytf.commands.values(), *lazy) for parameter in command.params
               for name in parameter.opts if name.startswith("--")}  # fmt: skip
    told = re.findall(r"^\| ((?:`-{1,2}[a-z]+`(?:, )?)+) \| (?:all|`wait`|`logs`|`report`)", page, re.M)
    assert options == {name for names in told for name in re.findall(r"`(--[a-z]+)`", names)}


def test_documented_defaults_are_those_of_the_job():
    job = JobSpec(tasks={"worker": TaskSpec()}, command="x")
    defaults = {option.name: shown_default(option) for option in ALL}
    expected = {
        "task_vcores": 1, "task_memory": 8192, "task_gpus": 0, "queue": job.queue, "name": job.name,
        "success": job.success, "restart": job.restart.mode, "max_container_losses": job.restart.max_container_losses,
        "restart_backoff": job.restart.backoff, "allocation_retries": job.restart.allocation_retries,
        "am_memory": job.am_memory, "am_vcores": job.am_vcores,
        "priority": job.priority, "report_log_tail": job.report_log_tail, "queue_timeout": job.deadlines.queue,
        "allocation_timeout": job.deadlines.allocation, "registration_timeout": job.deadlines.registration,
        "heartbeat_timeout": job.deadlines.heartbeat, "execution_timeout": job.deadlines.execution,
        "total_timeout": job.deadlines.total, "stop_grace": job.deadlines.stop_grace,
    }  # fmt: skip
    for key, value in expected.items():
        assert defaults[key] == (
            f"{value:g}" if isinstance(value, float) and value < 1e5 else str(value).removesuffix(".0")
        )

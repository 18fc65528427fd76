"""The end of a command that hides a failure; the codes of the table are bash's."""

import subprocess

import pytest

from tf_yarn_ops.job.request import build_job, find_job_warnings
from tf_yarn_ops.job.shell_commands import hiding_end

HIDING = {
    "python train.py; echo end": "; echo",
    "python train.py\necho end\n": "; echo",
    "cd . && python train.py || true": "|| true",
    "python train.py || echo 'it failed; sorry'": "|| echo",
    "set -e; python train.py || true": "|| true",
    "python train.py &": "&",
    "set -e; python train.py & echo begun": "& echo",
    "set -e; python a.py & wait": "wait",
    "python a.py & python b.py & wait": "wait",
    "nvidia-smi; python train.py ; :": "; :",
}
SHOWING = [
    "python train.py",
    "python train.py;",
    "python train.py && echo end",
    "set -e; python train.py; echo end",
    "set -euo pipefail\npython train.py\necho end",
    "python train.py | tee log",
    'python -c "import sys; sys.exit(1); echo"',
    "echo begin; python train.py",
    "if python train.py; then echo good; else exit 3; fi",
    "python a.py & pid=$!; wait $pid",
    "python train.py --name 'a & b' --all '|| true'",
]
FINE = [
    "echo a; echo b",
    "true",
    "",
    "echo 'open",
    "for i in 1 2; do echo $i; done",
    "echo x &>/dev/null",
    "ls | wc -l",
]


@pytest.mark.parametrize("command, hides", HIDING.items())
def test_end_that_hides_a_failure_is_named(command, hides, tmp_path):
    assert (hiding_end(command), _code(command, tmp_path)) == (hides, 0)
    (doubt,) = find_job_warnings(build_job({"task_command": command, "cluster_requirement": "worker:1"}))
    assert doubt.startswith(f"command: {hides!r} at its end")
    # The advice is only that which helps.
    assert ("put 'set -e;' first" in doubt) == (_code(f"set -e; {command}", tmp_path) != 0)


@pytest.mark.parametrize("command", SHOWING)
def test_command_that_shows_its_failure_is_not_doubted(command, tmp_path):
    assert hiding_end(command) == "" and _code(command, tmp_path) != 0


@pytest.mark.parametrize("command", FINE)
def test_command_without_a_program_is_not_doubted(command):
    assert hiding_end(command) == ""


def test_warning_names_the_type_whose_command_it_is():
    job = build_job({"task_command": "x"}, {"tasks": {"worker": 1, "ps": {"command": "serve; date"}}})
    assert [doubt.partition(":")[0] for doubt in find_job_warnings(job)] == ["tasks.ps.command"]


def _code(command, folder):
    """Return the exit code of a command, as the agent starts it, in which each program fails."""
    shell = "python() { return 7; }; nvidia-smi() { return 0; }; "
    words = ["bash", "-o", "pipefail", "-c", shell + command]
    return subprocess.run(words, cwd=folder, capture_output=True, timeout=60).returncode

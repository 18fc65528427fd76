"""A command is ended with everything that it started, on time."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tf_yarn_ops.runtime.agent import command

ROOT = Path(__file__).resolve().parents[2]
#: An agent's part in the end of a command: SIGTERM once the command has said "ready", then `reap` until it is over. The
#: last argument is the number of processes, which find theirs in N.
PROGRAM = """\
import json, os, select, sys, time
from tf_yarn_ops.runtime.agent.command import Command
from tf_yarn_ops.runtime.common.processes import descendants, set_child_subreaper

set_child_subreaper()
envs = [{**os.environ, "N": str(number)} for number in range(int(sys.argv[3]))]
one = Command(sys.argv[1], dict(os.environ), processes=envs, grace=200)
while not os.path.exists("ready"):
    select.select([], [], [], 0.01)
began = time.monotonic()
if sys.argv[2] != "None":
    one.end(float(sys.argv[2]))
while not one.reap():
    select.select([], [], [], 0.05)
print(json.dumps({"seconds": time.monotonic() - began, "code": one.ending.code, "signal": one.ending.signal,
                  "left": len(descendants())}))
"""
FOREVER = "tail -f /dev/null"
STUBBORN = f"(trap '' TERM; touch ready; {FOREVER})"


def end(folder, command, grace, processes=0):
    """Return how a command ended that got SIGTERM once it was ready: seconds, code, signal, processes left, lines.

    It gets no SIGTERM if the grace is None.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, command, str(grace), str(processes)],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    process.wait(300)  # with its standard input open, as a NodeManager leaves it
    out, err = process.communicate()
    assert process.returncode == 0, err
    *lines, told = out.splitlines()
    return {**json.loads(told), "lines": [*lines, *err.splitlines()]}


def test_standard_input_of_a_command_is_empty(tmp_path):
    """``python`` without arguments, ``input()`` and ``breakpoint()`` end at once."""
    end(tmp_path, f"python3 -c 'input()' 2>error; touch ready; {FOREVER}", grace=1)
    assert "EOFError" in (tmp_path / "error").read_text()


def test_child_forked_after_sigterm_is_ended_at_once(tmp_path):
    """The race of a shell that forks at the moment of SIGTERM, made certain by a trap that does so."""
    told = end(tmp_path, f"trap '{FOREVER} & exit 3' TERM; touch ready; while :; do sleep 0.05; done", grace=200)
    assert (told["code"], told["seconds"] < 60, told["left"]) == (3, True, 0), told


@pytest.mark.slow
def test_an_orphan_that_refuses_sigterm_has_the_short_grace_only(tmp_path):
    """The command has ended by itself, so what it left behind has nothing to save."""
    told = end(tmp_path, f"trap 'exit 3' TERM; {STUBBORN} & while :; do sleep 0.05; done", grace=200)
    assert (told["code"], 0.9 < told["seconds"] < 60, told["left"]) == (3, True, 0), told


@pytest.mark.slow
def test_child_that_refuses_sigterm_is_killed_after_the_grace(tmp_path):
    told = end(tmp_path, f"trap '' TERM; {STUBBORN} & while :; do sleep 0.05; done", grace=1)
    assert (told["signal"], 0.9 < told["seconds"] < 60, told["left"]) == (9, True, 0), told


@pytest.mark.slow
def test_the_program_of_a_shell_that_dies_of_sigterm_keeps_the_whole_grace(tmp_path):
    """A shell without a trap ends at once; its program still writes the last checkpoint."""
    saving = "(trap 'sleep 2; touch saved; exit' TERM; touch ready; while :; do sleep 0.05; done)"
    told = end(tmp_path, f"{saving}\ntrue", grace=200)
    assert (told["signal"], (tmp_path / "saved").exists()) == (15, True), told
    assert told["seconds"] < 60 and told["left"] == 0


def test_first_failure_of_a_process_ends_the_others_and_is_the_commands(tmp_path):
    """The other one has the whole grace for its last checkpoint, and all lines have labels."""
    saving = f"trap 'echo saved; exit 0' TERM; touch ready; {FOREVER} & wait"
    failing = "until [ -e ready ]; do sleep 0.01; done; printf out; exit 9"
    told = end(tmp_path, f"if [ $N = 0 ]; then {saving}; else {failing}; fi", None, processes=2)
    assert (told["code"], told["left"]) == (9, 0)
    assert sorted(told["lines"]) == [
        "[0] saved",
        "[1] out",
        "tf_yarn_ops agent: warning: LOCAL_RANK 1 has ended with exit code 9; the others get SIGTERM",
    ]


def test_failure_while_a_command_ends_leaves_other_processes_time(tmp_path):
    saving = "trap 'until [ -e failed ]; do sleep 0.01; done; echo saved; exit 0' TERM; touch ready"
    failing = "trap 'touch failed; exit 3' TERM; touch set"
    program = f"[ $N = 0 ] && {{ until [ -e set ]; do sleep 0.01; done; {saving}; }} || {failing}; {FOREVER} & wait"
    told = end(tmp_path, program, grace=200, processes=2)
    assert (told["code"], told["left"], told["lines"][-1]) == (3, 0, "[0] saved"), told


def test_command_of_several_processes_succeeds_when_all_have(tmp_path):
    told = end(tmp_path, "touch ready; [ $N = 0 ] || sleep 0.3; echo $N; echo error >&2", None, processes=3)
    assert (told["code"], told["signal"], told["left"]) == (0, None, 0)
    assert sorted(told["lines"]) == sorted(f"[{n}] {text}" for n in "012" for text in (n, "error"))


@pytest.mark.slow
@pytest.mark.parametrize("helper", ["sleep 1; touch saved", "(sleep 1; touch saved) & wait"])
def test_what_a_trap_starts_may_end_its_work(tmp_path, helper):
    """A trap may copy the last checkpoint with a program: SIGTERM is for what was there before it."""
    told = end(tmp_path, f"trap '{helper}; exit 0' TERM; touch ready; while :; do sleep 0.05; done", grace=200)
    assert (told["code"], (tmp_path / "saved").exists()) == (0, True), told
    assert told["seconds"] < 60 and told["left"] == 0


@pytest.mark.parametrize(
    "due, killed",
    [
        ({11: 0.0}, [11, 12, 13]),
        ({12: 0.0}, [12, 13]),
        ({13: 0.0}, [13]),
        ({11: math.inf}, []),
        ({}, []),
    ],
)
def test_children_of_a_process_whose_grace_is_over_are_killed_with_it(monkeypatch, due, killed):
    """A child that was forked after SIGTERM has no grace of its own: 11 is the parent of 12, which is that of 13."""
    sent = []
    monkeypatch.setattr(command, "send_signal", lambda pids, number: sent.append((list(pids), number)))
    monkeypatch.setattr(os, "fork", lambda: 10)
    one = command.Command("x", {})
    one._kill_times = due
    one._kill({11: 10, 12: 11, 13: 12, 14: 10})
    assert sent == [(killed, signal.SIGKILL)]


#: Forks for ten seconds, faster than a look at /proc.
CHAIN = "f() { touch ready; [ $SECONDS -gt 10 ] || { sleep 0.02; f & }; }; f"


@pytest.mark.slow
def test_forking_processes_do_not_hold_the_ending_for_ever(tmp_path):
    """The end is reported at the latest 5 s after the grace; the container's end takes the rest."""
    told = end(tmp_path, f"{CHAIN}; while :; do sleep 0.05; done", grace=1)
    assert told["seconds"] < 9, told


def test_the_end_of_a_log_has_the_last_state_of_a_progress_bar():
    program = (
        "import sys; from tf_yarn_ops.runtime.agent.command import read_log_end; "
        "print('start\\r\\n' + ''.join('\\r%d' % part for part in range(9000)) + '\\nend', flush=True); "
        "sys.stderr.write(repr(read_log_end(4096)))"
    )
    with tempfile.TemporaryFile() as log:
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=log, stderr=subprocess.PIPE, check=True)
    assert done.stderr == b"'start\\n8999\\nend\\n'"

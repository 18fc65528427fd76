"""Programs that we run: whatever happens to us, they do not outlive the call."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from tf_yarn_ops.programs import run_program, running_program
from tf_yarn_ops.terminal.signals import Interrupted, Interruption


def no_child():
    return not [child for child in psutil.Process().children() if child.name() in ("bash", "sleep")]


def test_output_and_exit_code_are_those_of_the_program():
    done = run_program(
        ["bash", "-c", "echo out; echo err >&2; exit 3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(FileNotFoundError):
        run_program(["/no/such/program"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_while_a_program_starts_leaves_no_program(number):
    """The child sends it before it becomes the program, while Popen waits for that."""
    with Interruption() as interruption, pytest.raises(Interrupted), interruption.raised():
        run_program(["sleep", "600"], preexec_fn=lambda: os.kill(os.getppid(), number))
    assert interruption.number == number
    assert no_child()


def test_signal_behind_the_block_ends_the_program():
    command = ["bash", "-c", "read; kill -TERM $PPID; exec sleep 600"]
    with (
        Interruption() as interruption,
        pytest.raises(Interrupted),
        interruption.raised(),
        running_program(command, stdin=subprocess.PIPE) as process,
    ):
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert no_child()


def test_error_in_the_block_ends_the_program():
    with pytest.raises(KeyError), running_program(["sleep", "600"]):
        raise KeyError
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(["sleep", "600"], timeout=0.1)
    assert no_child()


def test_program_of_another_thread_runs_to_its_end():
    ended = []
    thread = threading.Thread(target=lambda: ended.append(run_program(["true"]).returncode))
    thread.start()
    thread.join(60)
    assert ended == [0]


def test_ignored_signal_stays_ignored():
    program = (
        "import signal; from tf_yarn_ops.programs import run_program; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    )
    words = [sys.executable, "-c", program + "run_program(['grep', 'SigIgn', '/proc/self/status'])"]
    ignored = int(subprocess.run(words, capture_output=True, text=True, timeout=60).stdout.split()[1], 16)
    assert ignored & 1 << signal.SIGINT - 1

"""Faults of the user's program, on this machine: YARN has no part in them. See faults.py and docs/operations/reliability.md."""

import signal
import tempfile
import time
from pathlib import Path

import pytest

from support.faults import LocalRig, Matrix, check, job, kill
from support.port_taker import taking_port
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason

# Each row waits for what is played before it.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MATRIX = Matrix()
SMALL = {"memory": 256}
#: What a crowded machine may add to the grace between SIGTERM and SIGKILL, seconds.
STOP_SLACK = 8


def first(report):
    return next(task for task in report.tasks if task.task == report.first_failure)


def fails_with(code):
    def expect(report):
        assert (first(report).task, first(report).exit_code) == ("worker:0", code), report

    return expect


def fails_by(number):
    def expect(report):
        assert (first(report).signal, first(report).exit_code) == (number, None), report

    return expect


@MATRIX.row("the program ends with exit code 1", Reason.TASK_FAILED, 60)
def exit_1(rig):
    return rig.run(job("exit 1"), fails_with(1))


@MATRIX.row("a ps ends with exit code 0 before the workers", Reason.SUCCEEDED, 60)
def ps_exit_0(rig):
    tasks = {"ps": TaskSpec(command="true", **SMALL), "worker": TaskSpec(command="sleep 2", **SMALL)}
    return rig.run(job(tasks=tasks))


@MATRIX.row("the program gets SIGKILL", Reason.TASK_FAILED, 60)
def sigkill(rig):
    return rig.strike(job(), lambda application: kill(rig.commands(application)), expect=fails_by(signal.SIGKILL))


@MATRIX.row("the program ends by SIGSEGV", Reason.TASK_FAILED, 60)
def sigsegv(rig):
    return rig.run(job("kill -SEGV $$"), fails_by(signal.SIGSEGV))


@MATRIX.row("the program ignores SIGTERM at the end of the job", Reason.TASK_FAILED, 60)
def ignores_sigterm(rig):
    """It has SIGTERM and the grace of 2 s, and SIGKILL behind them."""

    def expect(report):
        fails_with(3)(report)
        ended = {task.task: task for task in report.tasks}
        grace = ended["worker:1"].finished_at - ended["worker:0"].finished_at
        assert (ended["worker:1"].signal, ended["worker:1"].exit_code) == (signal.SIGKILL, None), report
        assert told.exists() and 2 <= grace <= 2 + STOP_SLACK, report

    told = rig.folder / "ignored-sigterm"
    stubborn = (
        f"if [ $TASK_INDEX = 0 ]; then sleep 2; exit 3; fi; trap 'touch {told}' TERM; while :; do sleep 0.1; done"
    )
    return rig.run(job(stubborn, workers=2, deadlines=Deadlines(stop_grace=2)), expect)


@MATRIX.row("the program leaves a daemon behind", Reason.SUCCEEDED, 60)
def leaves_a_daemon(rig):
    return rig.run(job("setsid nohup sleep 600 >/dev/null 2>&1 </dev/null & sleep 1; exit 0"))


@MATRIX.row("the command is not found (127)", Reason.TASK_FAILED, 60)
def not_found(rig):
    return rig.run(job("no_such_program_anywhere"), fails_with(127))


@MATRIX.row("the command is not executable (126)", Reason.TASK_FAILED, 60)
def not_executable(rig):
    return rig.run(job("touch thing; chmod 644 thing; exec ./thing"), fails_with(126))


@MATRIX.row("the program writes 1 GB of output and fails", Reason.TASK_FAILED, 60)
def much_output(rig):
    def expect(report):
        fails_with(3)(report)
        assert first(report).log_tail.endswith("the last words\n")
        assert len(first(report).log_tail) <= 8192

    return rig.run(job("yes 'a line of a log' | head -c 1000000000; echo; echo the last words; exit 3"), expect)


@MATRIX.row("invalid UTF-8 and NULs at the end of the log", Reason.TASK_FAILED, 60)
def bytes_at_the_end(rig):
    def expect(report):
        fails_with(3)(report)
        assert "before" in first(report).log_tail and "\0" not in first(report).log_tail

    return rig.run(job(r"echo before; printf '\377\376\000\000\303'; exit 3"), expect)


def without_metrics(report):
    assert report.metrics is None, report.metrics


@MATRIX.row("the result file is broken", Reason.SUCCEEDED, 60)
def broken_result(rig):
    return rig.run(job("printf '{\"accuracy\": ' > $YTF_RESULT_FILE"), without_metrics)


@MATRIX.row("the result file has 10 MB", Reason.SUCCEEDED, 60)
def large_result(rig):
    return rig.run(job("head -c 10000000 /dev/zero | tr '\\0' 1 > $YTF_RESULT_FILE"), without_metrics)


@MATRIX.row("the result file is a list", Reason.SUCCEEDED, 60)
def list_result(rig):
    return rig.run(job('echo "[1, 2]" > $YTF_RESULT_FILE'), without_metrics)


@MATRIX.row("the result file is a pipe", Reason.SUCCEEDED, 60)
def pipe_as_result(rig):
    return rig.run(job("rm -f $YTF_METRICS_FILE; mkfifo $YTF_RESULT_FILE $YTF_METRICS_FILE"), without_metrics)


@MATRIX.row("the result file has 500 nested objects", Reason.SUCCEEDED, 60)
def nested_result(rig):
    nested = r"""print("{\"a\":" * 500 + "1" + "}" * 500)"""
    return rig.run(job(f"python3 -c '{nested}' > $YTF_RESULT_FILE"), without_metrics)


@MATRIX.row("somebody takes the port away from a program that can't share it", Reason.SUCCEEDED, 60)
def port_taken(rig):
    def expect(report):
        assert "its port was taken before it could use it" in report.rounds[1].cause, report

    with tempfile.TemporaryDirectory() as folder, taking_port(Path(folder)) as command:
        return rig.run(job(tasks={"worker": TaskSpec(command=command, hold_port=False, **SMALL)}, losses=1), expect)


# -- deadlines: allocation and heartbeat are rows of test_container.py, queue and registration of test_client.py --


def overdue(rig, words, **deadlines):
    def expect(report):
        assert all(word in report.message for word in words), report.message

    submitted = time.time()
    return rig.end(rig.submit(job(deadlines=Deadlines(stop_grace=1, **deadlines))), submitted, expect=expect)


@MATRIX.row("the execution deadline passes", Reason.EXECUTION_TIMEOUT, 60)
def execution_deadline(rig):
    return overdue(rig, ["the training took longer than 2 s", "running: worker:0"], execution=2)


@MATRIX.row("the total deadline passes", Reason.TOTAL_TIMEOUT, 60)
def total_deadline(rig):
    return overdue(rig, ["the job took longer than 6 s"], total=6)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    return LocalRig(tmp_path_factory.mktemp("rig"))


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_a_fault_of_the_program_ends_as_the_matrix_says(row, played):
    check(row, played)

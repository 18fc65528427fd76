"""A diagnosis as text for people."""

import subprocess
import sys

import click
import pytest

from tf_yarn_ops.terminal.diagnosis import result_lines, summary_line


def result(**values):
    return {"check": "staging", "outcome": "ok", "message": "wrote a file", "advice": None, **values}


def lines(width=60, **values):
    return [click.unstyle(line) for line in result_lines(result(**values), width)]


def test_a_check_is_one_line():
    assert lines() == ["ok       staging         wrote a file"]


def test_what_to_do_stands_below_a_complaint():
    assert lines(
        outcome="fault",
        message="it refused: no space left on the device, and no quota\nsecond line",
        advice="Ask the administrator for a directory, or set staging in site.yaml",
    ) == [
        "fault    staging         it refused: no space left on the",
        "                         device, and no quota; second line",
        "         do: Ask the administrator for a directory, or set",
        "             staging in site.yaml",
    ]


def test_an_address_is_not_broken():
    url = "http://a-very-long-name-of-a-resourcemanager.example.org:8088/ws/v1/cluster/info"
    assert lines(message=f"ask {url}")[-1].endswith(f" {url}")


@pytest.mark.parametrize("outcome", ["ok", "warning", "fault", "skipped"])
def test_each_outcome_has_a_colour(outcome):
    assert "\x1b[" in next(result_lines(result(outcome=outcome)))


def test_the_last_line_counts():
    assert summary_line({"counts": {"ok": 11, "warning": 1, "fault": 2, "skipped": 0}}) == "11 ok, 1 warning, 2 faults"


HANGING = """
import threading
from concurrent.futures import ThreadPoolExecutor
from tf_yarn_ops.terminal.diagnosis import leave

ThreadPoolExecutor(1).submit(threading.Event().wait, 100)
print("2 ok, 1 fault")
leave(4, hanging=True)
"""


def test_a_thread_that_hangs_does_not_keep_the_process_from_ending():
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (4, "2 ok, 1 fault\n")

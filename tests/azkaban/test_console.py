"""Lines in Azkaban's log of a job."""

import os

import pytest

from support.azkaban_process import ID
from tf_yarn_ops.azkaban.console import MAX_CONSOLE_LINE, Console, tame

pytestmark = pytest.mark.slow

LINES = [
    ("plain", "plain"), (f"{ID} runs", f"{ID} runs"), ("application_1_2 x", "'application_1_2' x"),
    (f"a application_1_2:x {ID}, application_3_4", f"a 'application_1_2':x {ID}, 'application_3_4'"),
    ("http://h/application_1_2", "http://h/application_1_2"), ("a\rb\x1b[1m\0\x85c", "a\\u000db\\u001b[1m\\u0000\\u0085c"), ("\tx", "\tx"),
    ("x" * 3000, "x" * MAX_CONSOLE_LINE + " ..."),
]  # fmt: skip


@pytest.mark.parametrize(("line", "tamed"), LINES, ids=range(len(LINES)))
def test_lines_of_programs_are_tamed(line, tamed):
    assert tame(line, [ID]) == tamed


def test_the_console_outlives_its_reader():
    read, write = os.pipe()
    console = Console(write)
    console.echo("one \ud800")
    assert os.read(read, 100) == b"one \\ud800\n"
    os.close(read)
    console.echo("two")
    console.echo("three")
    os.close(write)

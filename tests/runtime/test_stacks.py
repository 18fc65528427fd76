"""Stacks of a command's processes: which are signalled, and what is read of the log."""

import subprocess
import sys

import pytest

from support.programs import ROOT

#: An agent whose command is a Python with the handler, and a process that a signal would end.
AGENT = """\
import subprocess, sys, time
from tf_yarn_ops.runtime.agent.stacks import read_stacks
hanging = "import faulthandler, time\\ndef hang():\\n print('up', flush=True)\\n time.sleep(600)\\n"
begin = "faulthandler.register(50, file=2)\\nhang()"
python = subprocess.Popen([sys.executable, "-c", hanging + begin], stderr=eval(sys.argv[1]))
plain = subprocess.Popen(["sleep", "600"])
while "up" not in open(sys.argv[2]).read():
    time.sleep(0.01)
found = [read_stacks(4000) for _ in range(2)][-1]
ended = [one.poll() for one in (python, plain)]
for one in (python, plain):
    one.kill()
open(sys.argv[2] + ".found", "w").write(f"{ended}\\n{found}")
"""


@pytest.mark.parametrize(
    ("errors", "shown"),
    [("None", "in hang"), ("-3", "its stack is not in the log: its standard error leads elsewhere")],
)
def test_only_processes_with_the_handler_are_signalled(tmp_path, errors, shown):
    log = tmp_path / "log"
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, "-c", AGENT, errors, log], cwd=ROOT, stdout=output, stderr=output, timeout=60, check=True
        )
    ended, *lines = (tmp_path / "log.found").read_text().splitlines()
    assert ended == "[None, None]" and any(shown in line for line in lines), lines
    assert lines[-1].endswith("sleep 600") and lines[-1].startswith("process ")

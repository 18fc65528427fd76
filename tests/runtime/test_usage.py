"""CPU and memory of a program."""

import sys

import pytest

from support.runtime_jobs import job, task
from tf_yarn_ops.runtime.common.reasons import Reason


@pytest.mark.slow
def test_cpu_seconds_and_peak_memory_are_those_of_the_program(run):
    burn = "import time; b = bytearray(100 << 20)\nwhile time.process_time() < 0.5: pass"
    _, report = run(job(f"{sys.executable} -c '{burn}'", ps=False, workers=1))
    assert report.reason is Reason.SUCCEEDED
    assert task(report, "worker:0").cpu_seconds >= 0.5
    assert 100 <= task(report, "worker:0").peak_memory_mib < 200

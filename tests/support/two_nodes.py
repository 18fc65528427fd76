"""What tests on a cluster of two nodes share: jobs by ``ytf-submit`` in a process of its own, and what they leave."""

import contextlib
import os
import subprocess
import sys

from support.access import plain
from support.programs import ROOT, SUBMIT


def launcher_on(hadoop):
    """A launcher whose live jobs are killed at the end."""
    return launcher_by(plain(hadoop))


@contextlib.contextmanager
def launcher_by(access):
    """A launcher of a user, whose live jobs are killed at the end."""
    with contextlib.closing(access.launcher()) as made:
        yield made
        for report in made.list():
            made.kill(report.application_id, "the test is over")


def submit(hadoop, *words, timeout=60):
    return subprocess.run([*SUBMIT, "--environment", f"venv://{sys.prefix}", *words], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **hadoop.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip


def directories(launcher):
    files = launcher.session.staging(launcher.cluster.user).filesystem
    return [status.name for status in files.list(launcher.cluster.staging) if status.name.startswith("application_")]

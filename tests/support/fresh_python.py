"""A Python that has imported nothing yet."""

import subprocess
import sys

from support.programs import ROOT


def words_of(script):
    """Run a script in a new interpreter; return the words that it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True
    )
    return ran.stdout.split()

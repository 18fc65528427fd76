"""Benchmarks: ``./dev bench [NAME ...]``, one idea a file, figures in docs/operations/performance.md.

Every benchmark module has ``TITLE`` and ``measure(runs, quick) -> Samples``. Cases are run
in turn, not one after the other, so that a busy moment of the machine meets all of them.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

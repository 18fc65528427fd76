"""``python -I -X utf8 -m tf_yarn_ops.azkaban``: the launcher, which Azkaban starts for each job of the type."""

import os
import sys
from importlib import import_module
from typing import NoReturn

from ..terminal.signals import Interruption
from .console import Console


def main() -> NoReturn:
    """Run one job. Handle TERM and INT before the slow imports."""
    console = Console()
    sys.stdout = sys.stderr = console  # so that no other code fails at a closed pipe
    with Interruption() as interruption:
        code = import_module("tf_yarn_ops.azkaban.jobtype").run_job(console, interruption, sys.argv[1:], os.environ)
    sys.exit(code)


if __name__ == "__main__":
    main()

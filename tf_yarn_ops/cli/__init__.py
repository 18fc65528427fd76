"""The command line: ``ytf-submit`` and ``ytf``.

Input: the words of a shell. Output: the application's id or the report on stdout, lines for people on stderr, and an
exit code. This room never talks to YARN itself: it calls the rooms below.
"""

import sys
from importlib import import_module
from typing import NoReturn

from ..terminal.signals import Interruption


def submit_main() -> NoReturn:
    """Run ``ytf-submit``."""
    _main("submit", "ytf-submit")


def main() -> NoReturn:
    """Run ``ytf``."""
    _main("ytf", "ytf")


def _main(module: str, name: str) -> NoReturn:
    # Handle signals before the slow imports.
    with Interruption() as interruption:
        command_line = import_module(f"{__name__}.command_line")
        command_line.run_command(getattr(import_module(f"{__name__}.{module}"), module), name, interruption)
    sys.exit(0)

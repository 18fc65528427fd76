"""The command line: ``ytf-submit`` and ``ytf``.

Stands at the end of the path: words of a shell come in, an exit code, the
application's id or the report go out. Only this room writes to the terminal.
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
    # Signals are handled before anything slow is imported.
    with Interruption() as interruption:
        program = import_module(f"{__name__}.program")
        command = getattr(import_module(f"{__name__}.{module}"), module)
        program.run(command, name, interruption)
    sys.exit(0)

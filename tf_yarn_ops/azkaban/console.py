"""The job's log in Azkaban: lines on standard output, even after the pipe has broken.

Only standard output is used: Azkaban reads the two streams in two threads, which could change the order of lines.
"""

import io
import os
import re
from collections.abc import Collection

from ..runtime.common.escaping import escape_controls

_APPLICATION = re.compile(r"(?<!\S)application_\d+_\d+")
#: The most characters of a line in the log.
MAX_CONSOLE_LINE = 2000


class Console(io.TextIOBase):
    """A text stream that works on without a reader.

    Azkaban closes the pipes when it kills a job, while the launcher still has to kill the application. Text that cannot
    be written is dropped.

    Parameters
    ----------
    descriptor : int, optional
        Default: standard output.
    """

    def __init__(self, descriptor: int = 1):
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        content = escape_controls(text).encode()
        try:
            while content:
                content = content[os.write(self._descriptor, content) :]
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)  # from now on
        return len(text)

    def echo(self, line: str = "") -> None:
        """Write a line."""
        self.write(f"{line}\n")


def tame(line: str, own: Collection[str] = ()) -> str:
    """Return a line with its control characters escaped and, where needed, shortened.

    Parameters
    ----------
    line : str
    own : collection of str, optional
        Ids of this job's applications. Azkaban kills every application whose id stands at the beginning of a word in a
        job's log, so all other ids stand in quotes.
    """
    line = _APPLICATION.sub(lambda match: match[0] if match[0] in own else f"'{match[0]}'", escape_controls(line))
    return line if len(line) <= MAX_CONSOLE_LINE else line[:MAX_CONSOLE_LINE] + " ..."

"""What the job's log in Azkaban shows: lines, one after the other, whatever becomes of the pipe.

Standard output only: Azkaban reads the two streams by two threads, and the last line
has to be the last.
"""

import io
import os
import re
import sys
from collections.abc import Collection

_APPLICATION = re.compile(r"(?<!\S)application_\d+_\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
#: Characters of one line that are shown.
MAX_LINE = 2000


class Console(io.TextIOBase):
    """A text stream that outlives its reader.

    Azkaban closes the pipes at the moment of a kill, when there is most to do: what can't
    be written any more is let go.

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
        content = text.encode("utf-8", "backslashreplace")
        try:
            while content:
                content = content[os.write(self._descriptor, content):]
        except OSError:
            self.let_go()
        return len(text)

    def let_go(self) -> None:
        """Write to nowhere from now on."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)

    def say(self, line: str = "") -> None:
        """Write a line."""
        self.write(f"{line}\n")

    def install(self) -> None:
        """Take the place of the process's streams, so that nothing else can fail at a closed pipe."""
        sys.stdout = sys.stderr = self


def tame(line: str, own: Collection[str] = ()) -> str:
    """Give a line of a program's log as it may stand in Azkaban's.

    Parameters
    ----------
    line : str
    own : collection of str, optional
        Ids of applications that are ours. Azkaban kills every application whose id stands
        at the beginning of a word in a job's log: others get a quote before them.
    """
    line = _APPLICATION.sub(lambda match: match[0] if match[0] in own else f"'{match[0]}", _CONTROL.sub(" ", line))
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + " ..."

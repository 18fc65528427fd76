"""Escape characters of programs and people that a terminal would obey, or that reorder text."""

import re

#: C0, DEL, C1, the bidirectional controls and line separators of Unicode, and halves of characters.
CONTROLS = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
#: Carriage returns in a line from which it is a progress bar; fewer may only hide text.
REDRAWN = 3


def escape_controls(text: str, kept: str = "\t\n") -> str:
    """Return a text with each control character as in JSON, ``\\u001b``, except those of `kept`."""
    return re.sub("[%s]" % CONTROLS, lambda found: found[0] if found[0] in kept else "\\u%04x" % ord(found[0]), text)


def last_states(text: str) -> str:
    """Return a text with the last state only of each line that a progress bar redraws; others keep what they hide."""
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return "\n".join(line.rpartition("\r")[2] if line.count("\r") >= REDRAWN else line for line in lines)

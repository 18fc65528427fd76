"""A part of a log file as a line of text: from an agent to its coordinator, which serves the log as it is.

``BEGIN LENGTH CONTENT``: where the part begins, the length of the whole log (bytes), and the bytes in base64.
"""

import base64
import os
from typing import Tuple

#: Bytes of one part: as base64 it fits into a line of the protocol.
LOG_PART = 45 * 1024


def read_log_part(path: str, offset: int) -> str:
    """Return the part of a log from an offset on; empty if it can't be read.

    Parameters
    ----------
    path : str
    offset : int
        Bytes from the begin; below 0 from the end.
    """
    try:
        with open(path, "rb") as log:
            length = os.fstat(log.fileno()).st_size
            begin = log.seek(min(offset, length) if offset >= 0 else max(0, length + offset))
            return "%d %d %s" % (begin, length, base64.b64encode(log.read(LOG_PART)).decode("ascii"))
    except OSError:
        return ""


def parse_log_part(text: str) -> Tuple[int, int, bytes]:
    """Return begin, length and content; raise ValueError if it is not such a text."""
    begin, length, content = text.split(" ")
    return int(begin), int(length), base64.b64decode(content, validate=True)

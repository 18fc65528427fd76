"""The labels on the lines of a task with several processes: ``[0] `` begins each line of process 0.

Each process writes into a pipe of its own. A child of the agent passes whole lines on, so that an agent that waits for
its coordinator delays no program.
"""

import contextlib
import os
import select
import signal
from typing import List, Tuple

#: Bytes that are read at once; a longer line is passed on in pieces.
_PIECE = 64 * 1024


def label_lines(label: bytes, text: bytes) -> Tuple[bytes, bytes]:
    """Return the complete lines of a text, each with its label, and the rest; a carriage return ends a line, too."""
    lines = text.splitlines(keepends=True)
    # A carriage return at the end may be the first half of an end of line.
    rest = lines.pop() if lines and not lines[-1].endswith(b"\n") and len(lines[-1]) < _PIECE else b""
    return b"".join(label + line for line in lines), rest


def start_labels(processes: int) -> Tuple[int, List[int]]:
    """Start the child that labels lines.

    Parameters
    ----------
    processes : int

    Returns
    -------
    pid : int
        It ends when all processes have closed their pipes; SIGTERM has no effect on it.
    writers : list of int
        The pipe of each process.
    """
    pipes = [os.pipe() for _ in range(processes)]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        try:
            _pass_lines([reader for reader, _ in pipes])
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for reader, _ in pipes:
        os.close(reader)
    return pid, [writer for _, writer in pipes]


def _pass_lines(readers: List[int]) -> None:
    """Write the lines of all pipes to the output until the last pipe is closed."""
    signal.set_wakeup_fd(-1)
    for file in map(int, os.listdir("/proc/self/fd")):
        if file > 2 and file not in readers:  # the agent's connection ends with the agent
            with contextlib.suppress(OSError):
                os.close(file)
    labels = {reader: b"[%d] " % number for number, reader in enumerate(readers)}
    rests = dict.fromkeys(readers, b"")
    poll = select.poll()
    for reader in readers:
        poll.register(reader, select.POLLIN)
    while rests:
        for reader, _ in poll.poll():
            piece = os.read(reader, _PIECE)
            text, rest = label_lines(labels[reader], rests[reader] + piece)
            if piece:
                rests[reader] = rest
            else:
                text += labels[reader] + rest + b"\n" if rest else b""
                del rests[reader]
                poll.unregister(reader)
            with contextlib.suppress(OSError):  # a full disk must not end the program
                os.write(1, text)

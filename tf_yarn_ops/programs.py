"""Run other programs: none outlives the call, also if a signal raises an error at any moment."""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def running_program(command: Sequence[Any], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Start a program and wait for its end behind the block; an error in the block, or a signal meanwhile, kills it.

    Parameters
    ----------
    command : sequence
        The program and its words.
    **options
        Those of `subprocess.Popen`.
    """
    process, early = None, list[int]()
    # An error that a handler raises in Popen would lose the process, so the handlers wait until it is known.
    handlers = _replace_handlers(lambda number, _: early.append(number))
    try:
        try:
            process = subprocess.Popen(command, **options)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for number in early:
                signal.raise_signal(number)
        yield process
        process.wait()
    except BaseException:
        if process is not None:
            process.kill()
        raise
    finally:
        if process is not None:
            with process:  # closes its pipes
                pass


def run_program(
    command: Sequence[Any], timeout: float | None = None, **options: Any
) -> "subprocess.CompletedProcess[Any]":
    """Run a program to its end.

    Parameters
    ----------
    command, **options
        As for `running_program`.
    timeout : float, optional
        Seconds. Default: no limit.

    Raises
    ------
    OSError
        It cannot be started.
    subprocess.TimeoutExpired
        It was killed after the timeout.
    """
    with running_program(command, **options) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _replace_handlers(handler: Any) -> dict[int, Any]:
    """Handle Ctrl-C and TERM with another function, in the thread of signals; return what has handled them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {
        number: signal.signal(number, handler)
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(signal.getsignal(number))
    }

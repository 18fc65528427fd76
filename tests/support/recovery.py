"""A real ResourceManager whose recovery lasts as long as a test wants it to."""

import contextlib
import errno
import os
import signal

from support.waiting import until


@contextlib.contextmanager
def slow_recovery(hadoop, while_away=lambda: None):
    """Kill the ResourceManager and start it again; it recovers its applications only at the end of the block.

    ``while_away`` is called between the two.
    Its state store is a folder. It reads all files of an application before it recovers the first one, and
    a pipe among them keeps it reading. Meanwhile it answers as it does in any recovery: 404, and empty lists.
    """
    hadoop.stop_daemon("rm", signal.SIGKILL)
    while_away()
    gate = next((hadoop.directory / "rm/FSRMStateRoot/RMAppRoot").iterdir()) / "gate"
    os.mkfifo(gate)
    try:
        hadoop.start_daemon("rm")
        yield
    finally:
        until(lambda: _opened(gate), 120)
        gate.unlink()


def _opened(gate):
    try:
        os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:  # nobody reads yet
            raise
        return False
    return True

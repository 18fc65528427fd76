"""The program of the task of ``--client``: run its command on the submitting machine, with the terminal.

The command runs until ``ytf-submit`` closes its end of a pipe; the kernel closes it when ``ytf-submit`` is killed.
"""

import fcntl
import os
import select
import signal
from typing import List

from ..common.processes import set_child_subreaper
from .command import Command, end_as, open_wakeup

#: In the working directory; each round holds it until all its processes have ended.
LOCK = ".ytf.client.lock"


def main(arguments: List[str]) -> int:
    """Run the command, DTF_TASK_PROGRAM.

    Parameters
    ----------
    arguments : list of str
        The descriptor of the pipe, and the seconds between SIGTERM and SIGKILL.

    Returns
    -------
    int
        The exit code of the command. After a signal that ended the command this process ends by it.
    """
    lease, grace = int(arguments[0]), float(arguments[1])
    set_child_subreaper()
    wakeup = open_wakeup()
    stopped: List[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command itself, and ytf-submit ends the job
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if select.select([lease], [], [], 0)[0]:
            return 0
        command = Command(os.environ["DTF_TASK_PROGRAM"], os.environ, files=(0, 1, 2))
        while not (ending := command.reap()):
            watched = [wakeup] if command.stopping else [wakeup, lease]
            ready = select.select(watched, [], [], 0.05 if command.waiting else None)[0]
            if wakeup in ready:
                os.read(wakeup, 4096)
            if (stopped or lease in ready) and not command.stopping:
                command.end(grace)
    return end_as(ending)

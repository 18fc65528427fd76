"""A program beside a test run: when the run is over, however it ended, it ends what the run has left.

python reaper.py FOLDER: waits for the end of its input, then ends every process whose words,
environment or working directory name the folder, and says which; then it takes the mounts in the
folder away. The pipe of a run that is killed closes as well as that of one that ends well.
"""

import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil

#: Seconds between SIGTERM and SIGKILL.
GRACE = 5


def left_by(folder):
    """Return the processes that belong to the folder."""
    own = {process.pid for process in [psutil.Process(), *psutil.Process().parents()]}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if process.pid not in own and any(f"{folder}/" in f"{word}/" for word in words):
                found.append(process)
    return found


def end_all(folder):
    """End them, and what they start meanwhile; give what they were."""
    ended = {}
    number = signal.SIGTERM
    while processes := left_by(folder):
        for process in processes:
            with contextlib.suppress(psutil.Error):
                ended[process.pid] = " ".join(" ".join(process.cmdline()).split())[:100]
                process.send_signal(number)
        psutil.wait_procs(processes, GRACE)
        number = signal.SIGKILL
    return ended


def list_mounts(folder):
    """Return the mounts in the folder, the deepest first; a Docker engine leaves one of the host's network."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    places = [re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), line.split()[1]) for line in lines]
    return [place for place in reversed(places) if place.startswith(f"{folder}/")]


def unmount_all(folder):
    """Take the mounts in the folder away."""
    for place in list_mounts(folder):
        subprocess.run(["umount", "--lazy", place], check=False)


if __name__ == "__main__":
    sys.stdin.read()
    for pid, words in end_all(sys.argv[1]).items():
        print(f"left by the tests, ended now: {pid} {words}", flush=True)
    unmount_all(sys.argv[1])

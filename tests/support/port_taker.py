"""Another process of the host that takes a task's port before its program can use it."""

import shlex
import socket
import threading
from contextlib import contextmanager

from support.waiting import until

#: Names its port in round 1, waits until somebody has it, then binds it; it prints nothing of a fault.
_BINDS = """
import os, pathlib, socket, sys, time
folder, port = pathlib.Path(sys.argv[1]), int(os.environ["YTF_PORT"])
if os.environ["YTF_ROUND"] == "1":
    (folder / "new").write_text(str(port))
    (folder / "new").rename(folder / "port")
    while not (folder / "taken").exists():
        time.sleep(0.02)
try:
    socket.create_server(("", port))
except OSError:
    sys.exit(3)
"""


@contextmanager
def taking_port(folder, listens=True):
    """Take the port that the program names in a folder; yields the program's command."""

    def take():
        until((folder / "port").exists, 60, what="the port of the program")
        with socket.socket() as taker:
            taker.bind(("", int((folder / "port").read_text())))
            if listens:
                taker.listen()
            (folder / "taken").touch()
            over.wait(120)

    over = threading.Event()
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield shlex.join(["python3", "-c", _BINDS, str(folder)])
    finally:
        over.set()
        thread.join()

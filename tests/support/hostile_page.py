"""The page of a hostile application: it answers without end, slowly or fast."""

import contextlib
import itertools
import socket
import threading
import time

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _drip(connection):
    connection.sendall(_HEAD + b"\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.2)


def _drip_head(connection):
    connection.sendall(_HEAD)
    while True:
        connection.sendall(b"A: b\r\n")
        time.sleep(0.2)


def _flood(connection):
    connection.sendall(_HEAD + b'\r\n{"schema":1,"x":"')
    while True:
        connection.sendall(b"A" * (1 << 20))


KINDS = {"drip": _drip, "drip head": _drip_head, "flood": _flood}


@contextlib.contextmanager
def hostile_page(*kinds):
    """Serve pages of some of `KINDS` in turn, ``silent`` for no answer; yields their address."""
    turns = itertools.cycle(kinds)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def serve(connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            {**KINDS, "silent": lambda connection: connection.recv(1)}[next(turns)](connection)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()

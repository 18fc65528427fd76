"""Python's debugger at a breakpoint() of a task, which has no terminal; its prompt comes through a Unix socket.

Submit with ``--file breakpoint_socket.py=examples/debugging/breakpoint_socket.py`` and
``--env PYTHONBREAKPOINT=breakpoint_socket.wait``. The program waits at ``breakpoint()``. The log names the place, and
the command that opens the prompt beside the task: ``python breakpoint_socket.py``.
"""

import os
import pdb
import shlex
import socket
import sys
import threading
from contextlib import suppress

ADDRESS = "breakpoint.sock"  # in the task's working directory


class SocketDebugger(pdb.Pdb):
    """A debugger that ends its connection with the last breakpoint; without a connection the program continues."""

    def do_continue(self, argument):
        super().do_continue(argument)
        if not self.breaks:
            self.stdout.close()
            self.stdin.close()
        return True

    do_c = do_cont = do_continue

    def do_EOF(self, argument):
        self.clear_all_breaks()
        return self.do_continue(argument)


def wait():
    """Wait for a connection, and debug the caller; `breakpoint` calls this."""
    with suppress(FileNotFoundError):
        os.unlink(ADDRESS)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(ADDRESS)
        os.chmod(ADDRESS, 0o600)  # who connects runs code in the program
        server.listen()
        caller = sys._getframe(1)
        print(f"waiting at a breakpoint: {caller.f_code.co_filename}:{caller.f_lineno}", flush=True)
        print(f"cd {shlex.quote(os.getcwd())} && {sys.executable} breakpoint_socket.py", flush=True)
        connection, _ = server.accept()
    os.unlink(ADDRESS)
    with connection:  # it stays open until its files are closed
        files = {"stdin": connection.makefile("r"), "stdout": connection.makefile("w")}
    SocketDebugger(**files, nosigint=True).set_trace(caller)


def attach():
    """Connect this terminal to the program that waits; Ctrl-D lets it continue."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(ADDRESS)
        except OSError as error:
            sys.exit(f"no program waits at a breakpoint in {os.getcwd()}: {error}")

        def send():
            for line in sys.stdin:
                connection.sendall(line.encode())
            connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=send, daemon=True).start()
        while data := connection.recv(4096):
            os.write(1, data)


if __name__ == "__main__":
    attach()

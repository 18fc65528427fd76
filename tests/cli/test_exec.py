"""The client of ``ytf exec``, in a process of its own; the coordinator is the test's."""

import base64
import contextlib
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios

import pytest

from support.waiting import until
from tf_yarn_ops.runtime.common.exec_session import ExecChannel
from tf_yarn_ops.runtime.common.link import Link

pytestmark = pytest.mark.slow

#: What `exec_command` does after it has found the coordinator, for one session after the other.
CLIENT = """import os, socket, sys
from tf_yarn_ops.cli.exec import follow_session
from tf_yarn_ops.runtime.common.exec_session import ExecChannel
from tf_yarn_ops.runtime.common.link import Link
terminal = os.isatty(0)
for number in sys.argv[1:]:
    channel = ExecChannel(Link(socket.socket(fileno=int(number))))
    code, reason = follow_session(channel, os.get_terminal_size(1) if terminal else None)
    sys.stderr.write(reason if len(sys.argv) == 2 else f"{code} {reason}\\n")
sys.exit(code)
"""


@contextlib.contextmanager
def client_of_exec(stdin=subprocess.PIPE, stdout=subprocess.PIPE):
    """Start the client; return its process and the other end of its session."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(theirs.fileno())],
            stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()],
        )  # fmt: skip
        theirs.close()
        try:
            yield process, ExecChannel(Link(ours))
        finally:
            process.kill()
            process.wait()


def next_of(channel, kind):
    """Return the next message of a kind."""
    found = []
    until(lambda: found.extend(one for one in channel.receive() if one["type"] == kind) or found, 60, what=kind)
    return found[0]


def test_input_output_and_exit_code_pass():
    with client_of_exec() as (process, channel):
        process.stdin.write(b"typed")
        process.stdin.close()
        channel.send("taken")
        assert next_of(channel, "input")["data"] == b"typed"
        channel.send("taken")
        assert next_of(channel, "input")["data"] == b"", "the end of the input"
        for kind, text in (("output", b"\0out"), ("errors", b"err\xff")):
            channel.send_piece(kind, text)
            next_of(channel, "taken")
        channel.send("exit", code=7)
        assert (process.stdout.read(), process.stderr.read(), process.wait(60)) == (b"\0out", b"err\xff", 7)


def test_reader_that_waits_blocks_only_the_output():
    """While a pager is full, no piece is taken, and the client still follows its session."""
    read, write = os.pipe()
    room = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    with client_of_exec(stdout=write) as (process, channel):
        os.close(write)
        channel.send_piece("output", b"x" * room)
        next_of(channel, "taken")
        channel.send_piece("output", b"y")
        channel.send("reason", why="enough")
        assert process.wait(60) == 255 and process.stderr.read() == b"enough"
        assert os.read(read, 2 * room) == b"x" * room
    os.close(read)


def test_reader_that_has_ended_ends_the_client():
    read, write = os.pipe()
    os.close(read)
    with client_of_exec(stdout=write) as (process, channel):
        os.close(write)
        channel.send_piece("output", b"x")
        assert process.wait(60) == 128 + signal.SIGPIPE


#: What a coordinator sends, or else it closes the connection, and the reason that the client gives.
WITHOUT_EXIT_CODE = {
    b"": b"the session is lost: the coordinator closed the connection",
    b'{"type":"reason","why":"the task ends"}\n': b"the task ends",
    b'{"type":"bye"}\n': b"the session is lost: a message of type 'bye'",
    b'{"type":"exit","code":"0"}\n': b"the session is lost: code is not of type int",
    b'{"type":"output","data":"%"}\n': b"the session is lost: ",
}


def test_session_without_an_exit_code_is_code_255():
    with contextlib.ExitStack() as stack:
        pairs = [[stack.enter_context(end) for end in socket.socketpair()] for _ in WITHOUT_EXIT_CODE]
        for (ours, _), line in zip(pairs, WITHOUT_EXIT_CODE, strict=True):
            ours.sendall(line) if line else ours.close()
        theirs = [end.fileno() for _, end in pairs]
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, *map(str, theirs)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=theirs, timeout=60,
        )  # fmt: skip
    assert done.returncode == 255
    for shown, why in zip(done.stderr.splitlines(), WITHOUT_EXIT_CODE.values(), strict=True):
        assert shown.startswith(b"255 " + why)


def test_terminal_is_raw_resized_and_restored():
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with client_of_exec(theirs, theirs) as (process, channel):
        until(lambda: not termios.tcgetattr(theirs)[3] & termios.ISIG, 60, what="a raw terminal")
        os.write(ours, b"\x03")
        channel.send("taken")
        assert next_of(channel, "input")["data"] == b"\x03", "Ctrl-C is for the command"
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 66, 0, 0))
        size = next_of(channel, "size")
        assert (size["rows"], size["columns"]) == (44, 66)
        channel.link.send(b'{"type":"output","data":"%s"}\n' % base64.b64encode(b"shown"))
        next_of(channel, "taken")
        channel.send("exit", code=0)
        assert process.wait(60) == 0 and b"shown" in os.read(ours, 1000)
        assert termios.tcgetattr(theirs) == before

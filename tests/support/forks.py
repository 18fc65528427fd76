"""Processes forked from one that has imported the package: the imports are most of a short client's CPU."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys

_IMPORTS = """
import json, os, signal, socket, sys
import tf_yarn_ops.cli.command_line, tf_yarn_ops.cli.submit, tf_yarn_ops.cli.ytf
import tf_yarn_ops.follow.live_report, tf_yarn_ops.hadoop.security.gssapi, tf_yarn_ops.history.histories
import tf_yarn_ops.launch.launcher, tf_yarn_ops.hadoop.fast_import
tf_yarn_ops.hadoop.fast_import.import_httpx()
import httpcore
"""
#: Runs each script that a line of its input names in a process of its own, which ends as any Python does.
SERVER = (
    _IMPORTS
    + """
for line in sys.stdin:
    script, words, environ, folder, *outputs = json.loads(line)
    if not (pid := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
os.environ.clear()
os.environ.update(environ)
os.chdir(folder)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, output in enumerate(outputs, 1):
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
sys.argv[1:] = words
exec(script, {"__name__": "__main__"})
"""
)
#: Starts each script that it receives. The parent of its process writes pid and exit code into a pipe.
STARTER = (
    _IMPORTS
    + """
import tf_yarn_ops.azkaban.jobtype
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
orders = socket.socket(fileno=0)
while True:
    order, pipes, *_ = socket.recv_fds(orders, 1 << 20, 4)
    if not order:
        sys.exit()
    if not os.fork():
        break
    for pipe in pipes:
        os.close(pipe)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
*pipes, ending = pipes
if pid := os.fork():
    for pipe in pipes:
        os.close(pipe)
    os.write(ending, b"%d\\n" % pid)
    os.write(ending, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)
os.close(ending)
orders.detach()
for number, pipe in enumerate(pipes):
    os.dup2(pipe, number)
    os.close(pipe)
script, words, environ, folder = json.loads(order)
os.environ.clear()
os.environ.update(environ)
os.chdir(folder)
sys.argv[1:] = words
exec(script, {"__name__": "__main__"})
"""
)


@contextlib.contextmanager
def forking(folder, start=subprocess.Popen):
    """Yield a function that does as `subprocess.run` with ``python -c SCRIPT``, one call at a time.

    Variables that the interpreter or its loader reads at its start have no effect.

    Parameters
    ----------
    folder : Path
        For the outputs.
    start : callable, optional
        Start the process that forks, as `subprocess.Popen` does. Default: on this machine.
    """
    outputs = folder / "out", folder / "err"

    def run(script, words, env, cwd):
        print(json.dumps([script, words, env, *map(str, (cwd, *outputs))]), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(output.read_text() for output in outputs))

    with start([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield run
        finally:
            server.stdin.close()


@contextlib.contextmanager
def starting():
    """Yield a function that does as `subprocess.Popen` with ``python -I -X utf8 -c SCRIPT`` and pipes; see `ForkedProcess`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, ours, subprocess.Popen([sys.executable, "-I", "-X", "utf8", "-c", STARTER], stdin=theirs):
        try:
            yield lambda *order: ForkedProcess(ours, *order)
        finally:
            ours.close()  # so that it ends


class ForkedProcess:
    """A process with pipes, used as one of `subprocess.Popen`: standard input, and one for both outputs.

    Parameters
    ----------
    orders : socket
        That of `STARTER`.
    script : str
    words : sequence of str
        The script's arguments.
    environ : dict of str to str
    folder : path-like
        The working directory.
    """

    def __init__(self, orders, script, words, environ, folder):
        (stdin, writes), (reads, stdout), (ends, ending) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self._ending = os.fdopen(writes, "w"), os.fdopen(reads), os.fdopen(ends)
        order = json.dumps([script, [*map(str, words)], environ, str(folder)]).encode()
        socket.send_fds(orders, [order], [stdin, stdout, stdout, ending])
        for pipe in (stdin, stdout, ending):
            os.close(pipe)
        self.pid, self.returncode = int(self._ending.readline()), None

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._ending], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self.returncode = int(self._ending.readline())
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

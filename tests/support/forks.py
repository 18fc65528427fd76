"""Processes forked from one that has imported the package: the imports are most of a short client's CPU."""

import contextlib
import json
import subprocess
import sys

#: Runs each script that a line of its input names in a process of its own, which ends as any Python does.
SERVER = """
import json, os, sys
import tf_yarn_ops.cli.command_line, tf_yarn_ops.cli.submit, tf_yarn_ops.cli.ytf
import tf_yarn_ops.follow.live_report, tf_yarn_ops.hadoop.security.gssapi, tf_yarn_ops.history.histories
import tf_yarn_ops.launch.launcher, tf_yarn_ops.hadoop.fast_import
tf_yarn_ops.hadoop.fast_import.import_httpx()
import httpcore
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


@contextlib.contextmanager
def forking(folder):
    """Yield a function that does as `subprocess.run` with ``python -c SCRIPT``, one call at a time.

    Variables that the interpreter or its loader reads at its start have no effect.

    Parameters
    ----------
    folder : Path
        For the outputs.
    """
    outputs = folder / "out", folder / "err"

    def run(script, words, env, cwd):
        print(json.dumps([script, words, env, *map(str, (cwd, *outputs))]), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(output.read_text() for output in outputs))

    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield run
        finally:
            server.stdin.close()

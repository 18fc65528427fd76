"""One call of ``ytf-submit`` as a process that can be stopped between two steps."""

import json
import subprocess
import sys

from support.waiting import until
from tf_yarn_ops.launch.identity import Identity

#: ``ytf-submit`` in a process of its own; it stops in the gap that its first word names until it is given a line.
CLIENT = """\
import sys
from tf_yarn_ops.staging import staging_directory
from tf_yarn_ops.submit import rest as restsubmitter
from tf_yarn_ops.cli import submit_main

gap = sys.argv.pop(1)

def stop():
    print("stopped", file=sys.stderr, flush=True)
    sys.stdin.readline()

def stopping(owner, name, at):
    method = getattr(owner, name)
    def replaced(self, *words, **options):
        if at == gap == "before":
            stop()
        answer = method(self, *words, **options)
        if at == gap != "before":
            stop()
        return answer
    setattr(owner, name, replaced)

stopping(restsubmitter.RestSubmitter, "reserve", "before")
stopping(staging_directory.ApplicationDirectory, "make", "during")
stopping(restsubmitter.RestSubmitter, "submit", "after")
sys.argv[0] = "ytf-submit"
submit_main()
"""


class Client:
    """One call of ``ytf-submit --wait --json``.

    Parameters
    ----------
    rig : Rig
    run_id : str or None
        None: the client has no name for its training.
    command : str
    gap : str, optional
        Where it stops. Default: nowhere.
    before : sequence of str, optional
        Words in front of the program.
    options : sequence of str, optional
        Further options of ``ytf-submit``.
    patience : float, optional
        Seconds in which a job that is waited for has to run, or to end.
    """

    def __init__(self, rig, run_id, command, gap="none", before=(), options=(), patience=180, **env):
        words = [*before, sys.executable, "-c", CLIENT, gap, "--wait", "--json", "-r", "worker:1", *options,
                 "-m", "256", "--stop_grace", "2", "--environment", f"venv://{sys.prefix}", command]  # fmt: skip
        words[-1:-1] = [] if run_id is None else ["--run_id", run_id]
        self.rig, self.identity = rig, Identity(f"ytf-submit {run_id}")
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=rig.folder,
            env={**rig.access.environ, **env},
        )
        self.lines = []
        if gap in ("before", "during", "after"):
            self.read_until("stopped")
        elif gap == "waiting":
            until(lambda: self.process.poll() is not None or any(map(rig.commands, self.applications())), patience, 0.4)

    def read_until(self, text):
        while not any(text in line for line in self.lines):
            line = self.process.stderr.readline()
            assert line, self.lines
            self.lines.append(line)

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, seconds=280):
        """Return exit code and report."""
        out, err = self.process.communicate(timeout=seconds)
        assert "Traceback" not in err, err
        return self.process.returncode, json.loads(out) if out.strip() else None

    def applications(self):
        """Return all that YARN knows of this training."""
        return [item["id"] for item in self.rig.launcher.session.resourcemanager.find(tags=[self.identity.tag])]

"""Programs of users of the secured cluster, with neither Java nor Hadoop."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from unittest import mock

import yaml

from support.programs import SUBMIT, call
from support.secure import ask, get_environment
from support.waiting import until
from tf_yarn_ops.cli import main

SMALL = ["--am_memory", "512", "-m", "256", "--environment", f"venv://{sys.prefix}", "-r", "worker:1"]


def call_as(environ, program, *words):
    """Call the function of a program in this process, with a client's variables: it takes a tenth of the CPU."""
    with mock.patch.dict(os.environ, environ, clear=True):
        return call(program, *words)


class Clients:
    """Programs of users of the secured cluster, whose environment names the cluster and a ticket and nothing else."""

    def __init__(self, cluster, folder, tickets):
        self.cluster, self.folder, self.tickets = cluster, folder, tickets
        self.running, self.said = {}, {}
        self.ca_file = str(getattr(cluster, "ca_file", None) or "")
        self.site(folder / "site.yaml")

    def site(self, path, **settings):
        known = {"resourcemanager": self.cluster.resourcemanager_url}
        if self.ca_file:
            known["ca_file"] = self.ca_file
        path.write_text(yaml.safe_dump(known | settings))
        return path

    def environ(self, user, site=None):
        kept = ("KRB5_CONFIG", "KRB5CCNAME", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
        own = {name: value for name, value in self.tickets[user].items() if name in kept}
        return {**own, "PATH": "/nowhere", "YTF_SITE": str(site or self.folder / "site.yaml")}

    def start(self, name, user, *words, site=None, **variables):
        """Start a client; what it says is kept under its name."""
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            self.running[name] = subprocess.Popen(
                words,
                env=self.environ(user, site) | variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.folder,
            )

    def submit(self, name, user, command, *words, **more):
        self.start(name, user, *SUBMIT, "-v", "--submit_with", "rest", "--json", *SMALL, *words, command, **more)

    def end(self, name, seconds=150):
        """Wait for a client; return its exit code, stdout and stderr."""
        code = self.running[name].wait(seconds)
        out, err = ((self.folder / f"{name}.{end}").read_text() for end in ("out", "err"))
        assert "Traceback" not in err, err
        return code, out, err

    def report(self, name):
        code, out, err = self.end(name)
        assert out, (code, err)
        print(f"{name}:", err)  # shown when the test fails
        return code, json.loads(out)

    def ytf(self, name, user, *words):
        """Call ``ytf`` in this process; return exit code and both outputs."""
        done = call_as(self.environ(user), main, *words)
        for end, text in (("out", done.stdout), ("err", done.stderr)):
            (self.folder / f"{name}.{end}").write_text(text)
        return done.returncode, done.stdout, done.stderr

    def status_of(self, user, path):
        """Return the HTTP status of a user's request to WebHDFS."""
        return ask(self.cluster, self.tickets[user], f"{self.cluster.namenode_url}/webhdfs/v1{path}")[0]

    def write(self, user, path, content, method, operation):
        """Create a file of a user, or append to it."""
        (self.folder / "content").write_bytes(content)
        url = f"{self.cluster.namenode_url}/webhdfs/v1{path}?op={operation}"
        status, text = ask(self.cluster, self.tickets[user], url, "-X", method, "-T", str(self.folder / "content"))
        assert status in (200, 201), text

    def is_deleted(self, user, application):
        """Return whether the application's directory, which held the job's key, is gone."""
        return self.status_of(user, f"/user/{user}/.skein/{application}?op=GETFILESTATUS") == 404

    def submitted(self, name):
        """Return the id that a client tells in its log, once it is there."""

        def told():
            ended, text = self.running[name].poll() is not None, (self.folder / f"{name}.err").read_text()
            found = re.search(r"submitted (application_\d+_\d+)", text)
            assert found or not ended, text
            return found

        return until(told, 90)[1]

    def texts(self):
        """Return all that the clients have printed and read, by its places."""
        return {str(path): path.read_text(errors="replace") for path in self.folder.glob("*.*")} | self.said


@contextmanager
def clients_of(cluster, folder, users):
    """Give the clients of users with tickets; what still runs is ended, and its job with it."""
    made = Clients(cluster, folder, {user: get_environment(cluster, folder, user) for user in users})
    try:
        yield made
    finally:
        for process in made.running.values():
            if process.poll() is None:
                process.terminate()
                process.wait(30)

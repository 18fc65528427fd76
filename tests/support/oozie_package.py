"""Jobs and a flow to pack for Oozie, and the call that packs them."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime, timezone
from unittest import mock

import pytest

from support.fake_yarn import FakeYarn, serving
from support.http_server import Handler, running
from tf_yarn_ops.cli import command_line as program
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.oozie.package import Place
from tf_yarn_ops.terminal.signals import Interruption


@contextmanager
def oozie(*answer, coordinators=(), meanwhile=(), starts=True, ended=False):
    handler = type(
        "Oozie",
        (FakeOozie,),
        {
            "seen": [],
            "coordinators": coordinators,
            "workflows": {},
            "external_ids": {},
            "starts": starts,
            "ended": ended,
            "meanwhile": [*meanwhile],
            **({"answer": answer} if answer else {}),
        },
    )
    with running(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/oozie", handler.seen


@contextmanager
def cluster(folder):
    """Serve a ResourceManager whose file system is a folder here."""
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{folder}",
        "yarn.resourcemanager.address": "rm:8032",
    }
    with serving(yarn) as url:
        yield url


NOW = datetime(2026, 11, 21, 10, 7, tzinfo=timezone.utc)
PLACE = Place("hdfs://nn:8020/apps/digits", "hdfs://nn:8020", "rm:8032")
JOB = (
    'name: digits "more"\ncommand: python3 train.py\ntasks: {worker: 1}\nfiles: {train.py: train.py}\nqueue: science\n'
)
SMALL = "command: x\ntasks: {worker: 1}\n"
JOBS = """name: nightly
jobs:
- {name: features, job: job.yaml}
- {name: wide, job: small.yaml, needs: features}
- {name: deep, job: job.yaml, needs: [features]}
- {job: small.yaml, needs: [wide, deep]}
"""
FLOW = """<workflow-app xmlns="uri:oozie:workflow:1.0" name="mine">
    <start to="train"/>
    <!-- kept -->
    <action name="train">
        <shell xmlns="uri:oozie:shell-action:1.0"/>
        <ok to="judge"/>
        <error to="end"/>
    </action>
    <decision name="judge">
        <switch>
            <case to="end">${wf:actionData('train')['metric.accuracy'] ge 0.9}</case>
            <default to="end"/>
        </switch>
    </decision>
    <end name="end"/>
</workflow-app>
"""
ADDRESSES = ("--name-node", "hdfs://nn:8020", "--resource-manager", "rm:8032")


def run(*words, **env):
    """Call ``ytf oozie`` in this process; return what `subprocess.run` would."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR", "OOZIE_URL")
    }
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {**clean, "YTF_SITE": "", **env}, clear=True),
        mock.patch.object(sys, "argv", ["ytf", "oozie", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
        Interruption() as interruption,
        pytest.raises(SystemExit) as ended,
    ):
        program.run_command(ytf, "ytf", interruption)
    return subprocess.CompletedProcess(words, ended.value.code or 0, out.getvalue(), err.getvalue())


class FakeOozie(Handler):
    """Oozie on the wire: the answers to ``POST /oozie/v2/jobs`` and to ``GET``, and what was posted.

    With the answer None it starts a workflow or not, see ``starts``, and closes the connection. A workflow that has
    ``ended`` is in no list of live ones.
    """

    starts, ended = True, False

    answer = (201, {}, '{"id": "0000001-oozie-C"}')
    coordinators: list = []
    seen: list = []
    external_ids: dict = {}
    meanwhile: list = []  # callables, one for each start

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body.decode()))
        if "dryrun" not in self.path and self.meanwhile:
            self.meanwhile.pop()()
        if self.answer == (None,) and "dryrun" not in self.path:
            if self.starts:
                properties = dict(re.findall("<name>([^<]*)</name><value>([^<]*)", body.decode()))
                name = f"000000{len(self.workflows) + 1}-oozie-W"
                self.workflows[name] = properties["oozie.wf.application.path"]
                self.external_ids[properties.get("oozie.wf.external.id")] = name
            self.close_connection = True
            return
        status, headers, text = FakeOozie.answer if self.answer == (None,) else self.answer
        self.reply(status, {"Content-Type": "application/json", **headers}, text)

    def do_GET(self):
        job = re.search(r"/v2/job/([^?/]*)", self.path)
        live = [] if self.ended else [{"id": name} for name in self.workflows]
        found = {"coordinatorjobs": self.coordinators, "workflows": live}
        if external := re.search(r"[?&]external-id=([^&]*)", self.path):
            found = {"id": self.external_ids.get(external[1], "")}
        answer = {"id": job[1], "appPath": self.workflows[job[1]]} if job else found
        self.reply(200, {"Content-Type": "application/json"}, json.dumps(answer))

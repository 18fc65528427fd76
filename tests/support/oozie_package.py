"""Jobs and a flow to pack for Oozie, and the call that packs them."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest

from tf_yarn_ops.cli import command_line as program
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.oozie.package import Place
from tf_yarn_ops.terminal.signals import Interruption

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 21, 10, 7, tzinfo=timezone.utc)
PLACE = Place("hdfs://nn:8020/apps/digits", "hdfs://nn:8020", "rm:8032")
JOB = "name: digits \"more\"\ncommand: python3 train.py\ntasks: {worker: 1}\nfiles: {train.py: train.py}\nqueue: science\n"
SMALL = "command: x\ntasks: {worker: 1}\n"
JOBS = """name: nightly
jobs:
- {name: features, job: job.yaml}
- {name: wide, job: small.yaml, needs: features, delete: "/models/wide/${nominalStamp}", mkdir: "${models}/${user}"}
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
    clean = {name: value for name, value in os.environ.items()
             if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR", "OOZIE_URL")}
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, {**clean, "YTF_SITE": "", **env}, clear=True), \
            mock.patch.object(sys, "argv", ["ytf", "oozie", *words]), redirect_stdout(out), redirect_stderr(err), \
            Interruption() as interruption, pytest.raises(SystemExit) as ended:
        program.run_command(ytf, "ytf", interruption)
    return subprocess.CompletedProcess(words, ended.value.code or 0, out.getvalue(), err.getvalue())

"""The command lines of both programs, as a test starts them: without a wrapper, by this interpreter."""

import contextlib
import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from tf_yarn_ops.cli import main, submit_main

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = [sys.executable, "-c", "from tf_yarn_ops.cli import submit_main; submit_main()"]
YTF = [sys.executable, "-c", "from tf_yarn_ops.cli import main; main()"]


def run(program, *words, env=None, timeout=60):
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=timeout, cwd=ROOT,
                          env=_variables(env), stdin=subprocess.DEVNULL)  # fmt: skip


def _variables(env):
    clean = {
        name: value for name, value in os.environ.items() if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR")
    }
    return {**clean, "YTF_SITE": "", **(env or {})}


def run_here(program, *words, env=None):
    """Do as `run` in this process, which has the modules already: it takes a tenth of the CPU."""
    with mock.patch.dict(os.environ, _variables(env), clear=True):
        return call({id(SUBMIT): submit_main, id(YTF): main}[id(program)], *words)


def call(program, *words):
    """Call the function of a program in this process; return what `run` would."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with (
        mock.patch.object(sys, "argv", ["x", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(logging.getLogger(), "handlers", []),  # the program adds its own
    ):
        try:
            code = program()
        except SystemExit as ended:
            code = ended.code
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, code, *texts)

"""The command lines of both programs, as a test starts them: without a wrapper, by this interpreter."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = [sys.executable, "-c", "from tf_yarn_ops.cli import submit_main; submit_main()"]
YTF = [sys.executable, "-c", "from tf_yarn_ops.cli import main; main()"]


def run(program, *words, env=None, timeout=60):
    clean = {
        name: value for name, value in os.environ.items() if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR")
    }
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=timeout, cwd=ROOT,
                          env={**clean, "YTF_SITE": "", **(env or {})}, stdin=subprocess.DEVNULL)  # fmt: skip

"""The command ``ytf-server`` where it can't serve; tests/launch/test_jobs_cluster.py trains on it."""

import subprocess
import sys

from tf_yarn_ops.submit.runtime_zip import runtime_zip


def test_environment_without_tensorflow_is_named(tmp_path):
    (tmp_path / ".ytf.zip").write_bytes(runtime_zip())
    ran = subprocess.run(
        [sys.executable, "-I", "-S", ".ytf.zip", "server"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (
        1,
        f"ytf-server needs TensorFlow, which {sys.executable} does not have: name an environment that has it\n",
    )

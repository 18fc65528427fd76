"""``conda://``: a job runs in a folder with conda's layout.

No conda comes from PyPI or Debian, so the folder is made by hand as conda lays it out: a whole prefix and not a venv,
with the interpreter, its library and ``site-packages`` of its own, ``conda-meta``, and links beside ``bin/python3.X``.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.submit.container_environment import build_container_environment

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
#: Written to the result file by the job's program.
TELL = "import json, os, shutil, sys; json.dump({'prefix': sys.prefix, 'python': shutil.which('python'), 'tool': shutil.which('own-tool')}, open(os.environ['YTF_RESULT_FILE'], 'w'))"


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """Return a folder as ``conda create -p`` leaves it."""
    folder = tmp_path_factory.mktemp("envs") / "tensorflow"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), folder / "bin" / PYTHON)
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(PYTHON)
    library = folder / "lib" / PYTHON
    library.mkdir(parents=True)
    for part in Path(sysconfig.get_path("stdlib")).iterdir():
        if part.name != "site-packages":
            (library / part.name).symlink_to(part)
    (library / "site-packages").mkdir()
    (library / "site-packages" / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (folder / "conda-meta").mkdir()
    (folder / "conda-meta" / "history").write_text(
        "==> 2026-11-22 10:00:00 <==\n# cmd: conda create -p tensorflow python\n"
    )
    (folder / "conda-meta" / f"python-{sys.version.split()[0]}-0.json").write_text(json.dumps({"name": "python"}))
    tool = folder / "bin" / "own-tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    return folder


def test_the_interpreter_of_a_conda_folder_is_its_own(conda):
    """A venv would say the prefix of the Python that made it in ``sys.base_prefix``."""
    inside = build_container_environment(Environment.parse(f"conda://{conda}"))
    command = [inside.interpreter, "-c", "import sys; print(sys.prefix, sys.base_prefix)"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env={})
    assert ran.stdout.split() == [str(conda), str(conda)]
    assert inside.path == (f"{conda}/bin",)


@pytest.mark.cluster
def test_a_job_runs_in_a_conda_folder(minicluster, conda):
    """Agent and coordinator too: the nodes' own Python is not asked."""
    launcher = Launcher(discover(minicluster.resourcemanager_url, environ={}), submit_with="rest")
    spec = JobSpec(
        command=f'python -c "{TELL}"',
        tasks={"worker": TaskSpec(memory=256)},
        environment=Environment.parse(f"conda://{conda}"),
    )
    try:
        report = launcher.wait(launcher.submit(spec), timeout=120)
    finally:
        launcher.close()
    assert report.reason is Reason.SUCCEEDED, report.message
    assert report.metrics == {"prefix": str(conda), "python": f"{conda}/bin/python", "tool": f"{conda}/bin/own-tool"}

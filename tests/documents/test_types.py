"""The Python blocks of README and the documents pass the type checker; a page's blocks are one program.

So does a DAG that shows what the operator's stub, written by docs/tables.py, knows of its options, and a program that
shows that the public names are not Any.
"""

import fcntl
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "\n```python\n" in page.read_text()
]
#: Of these files only, so that all that they import comes from the cache of ./dev lint. What a reader's own functions and
#: names lack is no fault of ours, and neither are libraries without types.
LENIENT = """\
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-subclassing-any
# mypy: allow-any-generics, allow-untyped-decorators
# mypy: disable-error-code="name-defined,import-untyped,import-not-found,no-redef"
"""
#: An ignored line without an error is an error.
DAG = """\
from datetime import timedelta
from airflow.sdk import DAG, task
from tf_yarn_ops.airflow import TensorFlowYarnOperator

@task
def newest() -> str:
    return "hdfs:///data/newest"

with DAG("train"):
    TensorFlowYarnOperator(
        task_id="right", task_command="python train.py", cluster_requirement="ps:1,worker:2", framework="tensorflow",
        task_memory="4096,worker:8 GiB", task_gpus=1, script="{{ params.script }}", env={"A": 1}, file=["a.py", "b.py"],
        restart="{{ params.restart }}", max_restarts=3, input=newest(), retries=2, execution_timeout=timedelta(hours=6),
    )
    TensorFlowYarnOperator(task_id="a", cluster_requirement={"ps": 1, "worker": 2}, task_command="python train.py")
    TensorFlowYarnOperator(task_id="b", task_command=["python", "train.py"])  # type: ignore[arg-type]
    TensorFlowYarnOperator(task_id="c", cluster_requirement=3)  # type: ignore[arg-type]
    TensorFlowYarnOperator(task_id="d", max_restarts=[3])  # type: ignore[arg-type]
    TensorFlowYarnOperator(task_id="e", poll_interval="5")  # type: ignore[arg-type]
"""
PUBLIC_NAMES = """\
from typing_extensions import assert_type
from tf_yarn_ops import Fault, Identity, JobSpec, Launcher, SpecInvalid, TaskSpec, __version__, discover

assert_type(Launcher(discover("http://rm:8088")).submit(JobSpec(tasks={"worker": TaskSpec()})), str)
assert_type(Identity("digits").key, str)
assert_type(SpecInvalid("x").faults, tuple[Fault, ...])
assert_type(__version__, str)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_python_blocks_pass_the_type_checker(tmp_path):
    files = []
    for number, page in enumerate(PAGES):
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        files.append(tmp_path / f"page_{number}_{re.sub('[^a-z]', '_', page.stem.lower())}.py")
        files[-1].write_text(LENIENT + "\n".join(blocks))
    for name, program in {"dag_of_types": LENIENT + DAG, "public_names": PUBLIC_NAMES}.items():
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(program)
    (ROOT / ".ytf").mkdir(exist_ok=True)
    # ./dev lint, which CI runs beside the tests, writes the same cache.
    with (ROOT / ".ytf" / "mypy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True, timeout=600
        )
    assert done.returncode == 0, done.stdout + done.stderr

"""Committed output: what a commit costs. `commit_soak` kills everything around it."""

import tempfile
import time

from tf_yarn_ops.runtime.common.committed_output import CommitPlan
from tf_yarn_ops.runtime.common.file_storage import LocalFolder
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.master.commit import OutputCommit

from .hadoop import hadoop
from .samples import Figures, Samples, interleave

TITLE = "Commit: one rename is wanted, however many files"


def measure(runs: int, quick: bool) -> Samples:
    """Measure commits to a real HDFS and to a folder of this machine."""
    with hadoop() as cluster, tempfile.TemporaryDirectory(prefix="ytf-bench-") as folder:
        known = cluster.launcher.cluster
        stores = {
            "HDFS": (Hdfs(known.storage.webhdfs, known.user, {}), "/tmp/bench"),
            "a folder": (LocalFolder("/"), folder),
        }
        sizes = (1, 20) if quick else (1, 2_000)
        cases = {
            f"{size:,} files in {name}": lambda store=store, size=size: _commit(store[0], store[1], size)
            for name, store in stores.items()
            for size in sizes
        }
        return interleave(cases, runs, Samples())


def _commit(files: Hdfs | LocalFolder, parent: str, size: int) -> Figures:
    """Commit a folder with so many files."""
    plan = CommitPlan("new", f"{parent}/{time.monotonic_ns()}/model")
    made = OutputCommit(plan, "application_1_1", files)
    made.prepare()
    for number in range(size):
        files.create(f"{made.working_url}/part-{number:05d}", b"", 0o644)
    began = time.perf_counter()
    made.commit({})
    return {"commit, ms": 1000 * (time.perf_counter() - began)}

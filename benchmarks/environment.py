"""An environment that travels: pack it, put it into HDFS, submit with it twice; TensorFlow's by default."""

import sys
import time
from pathlib import Path

from tf_yarn_ops.environments.pack import pack_environment
from tf_yarn_ops.staging.prune import prune_cache

from .hadoop import MEMORY, Hadoop, hadoop, times
from .samples import Figures, Samples, interleave

TITLE = "An environment that travels: the archive packed, uploaded, and brought to a node"
_PINS = Path(__file__).parents[1] / "constraints.txt"


def measure(runs: int, quick: bool) -> Samples:
    """Measure the first and the second submission with an environment against the upload of its archive."""
    with hadoop() as cluster:
        wanted, archive = cluster.folder / "requirements.txt", cluster.folder / "environment.tar.gz"
        wanted.write_text(f"-c {_PINS}\n" + ("six\n" if quick else "tensorflow-cpu\ntensorboard\n"))

        def pack() -> Figures:
            began = time.monotonic()
            pack_environment(wanted, archive)
            return {"s": time.monotonic() - began, "MiB": archive.stat().st_size / 2**20}

        def put() -> Figures:
            ended = cluster.run(["sh", "-c", f"hdfs dfs -put -f {archive} /environment.tar.gz && echo done"])
            return {"upload MiB/s": archive.stat().st_size / 2**20 / ended.seconds, "peak MiB": ended.peak_mib}

        def first() -> Figures:
            prune_cache(cluster.launcher.session.staging(), -1)  # HDFS notes reads to the hour
            figures = _submit(cluster, archive)
            return {"upload MiB/s": archive.stat().st_size / 2**20 / figures["whole process s"], **figures}

        samples = Samples(against={"ytf-submit, first": "hdfs dfs -put"})
        interleave({"ytf env pack": pack}, 1, samples)
        cluster.run([*_ytf_submit(archive), "true"])  # Skein's jar and ours are in the cache
        rounds = {
            "hdfs dfs -put": put,
            "ytf-submit, first": first,
            "ytf-submit, again": lambda: _submit(cluster, archive),
        }
        for _ in range(runs):  # in this order: the second submission finds what the first has left
            for case, run in rounds.items():
                samples.add(case, run())
        return samples


def _ytf_submit(archive: Path) -> list[str]:
    program = str(Path(sys.executable).parent / "ytf-submit")
    return [program, "--environment", str(archive), "-m", str(MEMORY), "-r", "worker:2"]


def _submit(cluster: Hadoop, archive: Path) -> Figures:
    marks = cluster.marks()
    ended = cluster.run([*_ytf_submit(archive), f"date +%s.%N >{marks}/started.$DTF_TASK_INDEX"])
    accepted = cluster.finish(ended.answer)["startedTime"] / 1000
    cluster.quieten()
    return {
        "whole process s": ended.seconds,
        "accepted -> commands s": max(times(marks, "started")) - accepted,
        "peak MiB": ended.peak_mib,
    }

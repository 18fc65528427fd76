"""How fast a program in a container reads and writes HDFS, against Hadoop's own client and the disk."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

from .hadoop import Hadoop, hadoop
from .samples import Figures, Samples, interleave

TITLE = "A file of HDFS read and written by one process"
_MIB = 1 << 20
_PROGRAM = """\
import json, os, sys, time
library, size = sys.argv[1], int(sys.argv[2])
if library == "fsspec":
    import fsspec
    opened = lambda path, mode: fsspec.open(path, mode).open()
else:
    import tensorflow
    opened = tensorflow.io.gfile.GFile
opened("hdfs:///data/first", "wb").close()
began, count, piece = time.monotonic(), 0, bytes(1 << 20)
with opened("hdfs:///data/input", "rb") as file:
    while data := file.read(1 << 20):
        count += len(data)
assert count == size, count
read = time.monotonic()
with opened("hdfs:///data/" + library, "wb") as file:
    for _ in range(size >> 20):
        file.write(piece)
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"read MiB/s": (size >> 20) / (read - began),
               "write MiB/s": (size >> 20) / (time.monotonic() - read)}, file)
"""


def measure(runs: int, quick: bool) -> Samples:
    """Measure 1 GiB, or 128 MiB: the disk, ``hdfs dfs``, and programs with fsspec and TensorFlow."""
    size = (128 if quick else 1024) * _MIB
    with hadoop() as cluster:
        (cluster.folder / "program.py").write_text(_PROGRAM)
        cluster.run(["sh", "-c", "hdfs dfs -mkdir /data && echo done"])
        put = f"head -c {size} /dev/zero | hdfs dfs -put -f - /data/"
        cluster.run(["sh", "-c", f"{put}input && echo done"])
        plain = "hdfs dfs -cat, -put"
        cases = {
            "disk": lambda: _disk(cluster.folder / "disk", size),
            plain: lambda: {
                "read MiB/s": _rate(cluster, "hdfs dfs -cat /data/input | wc -c", size),
                "write MiB/s": _rate(cluster, f"{put}put && echo done", size),
            },
            "fsspec": lambda: _job(cluster, "fsspec", size),
            "TensorFlow": lambda: _job(cluster, "TensorFlow", size),
        }
        return interleave(cases, runs, Samples(against={"fsspec": plain, "TensorFlow": plain}))


def _forget(files: Iterable[Path]) -> None:
    """Write files to the disk and drop them from the memory of the kernel."""
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:  # HDFS deletes those of old files
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _disk(path: Path, size: int) -> Figures:
    """Write a file until it is on the disk, and read it from there."""
    piece, began = bytes(_MIB), time.monotonic()
    with path.open("wb", buffering=0) as file:
        for _ in range(size // _MIB):
            file.write(piece)
        os.fsync(file.fileno())
    written = time.monotonic()
    _forget([path])
    start = time.monotonic()
    with path.open("rb", buffering=0) as file:
        while file.read(_MIB):
            pass
    ended = time.monotonic()
    path.unlink()
    return {"read MiB/s": size / _MIB / (ended - start), "write MiB/s": size / _MIB / (written - began)}


def _rate(cluster: Hadoop, command: str, size: int) -> float:
    """Run Hadoop's client; its rate in MiB/s includes the start of its JVM."""
    _forget(cluster.folder.glob("hadoop/**/blk_*"))
    return size / _MIB / cluster.run(["sh", "-c", command]).seconds


def _job(cluster: Hadoop, library: str, size: int) -> Figures:
    cluster.quieten()
    _forget(cluster.folder.glob("hadoop/**/blk_*"))
    report = cluster.launcher.run(
        JobSpec(
            name="data",
            command=f"python program.py {library} {size}",
            script=str(cluster.folder / "program.py"),
            environment=Environment.parse(f"venv://{sys.prefix}"),
            tasks={"worker": TaskSpec(memory=1024)},
        )
    )
    if report.exit_code:
        raise RuntimeError(json.dumps(report.to_dict(), indent=1))
    return dict(report.metrics or {})

"""``python -m benchmarks.record_classes``: write the lists of classes for the archives of the tests anew.

To be run after a change of Hadoop's or Skein's version. A job runs on a cluster of its own, and each JVM writes down
which classes it loads. An outdated list does no harm: Java passes over names that it does not find.
"""

import gzip
import os
import tempfile
from pathlib import Path
from unittest import mock

from support.hadoop import class_archive, settings
from tf_yarn_ops.minicluster import daemons

from .hadoop import hadoop

MASTER_CLASS = "com/anaconda/skein/ApplicationMaster"


def read_names(path: Path) -> set[str]:
    """Return the names of the classes in a list that Java has written; its other lines are for one release of Java."""
    lines = path.read_text().splitlines()
    return {line.partition(" ")[0] for line in lines if line and not line.startswith(("#", "@"))}


def main() -> None:
    build_environment = daemons.build_environment
    with tempfile.TemporaryDirectory() as folder:
        flag = {"JAVA_TOOL_OPTIONS": f"-XX:DumpLoadedClassList={folder}/%p.txt"}
        with (
            mock.patch.object(settings, "use_archive", lambda *_: ()),
            mock.patch.object(daemons, "build_environment", lambda *given: build_environment(*given) | flag),
            hadoop() as cluster,
        ):
            cluster.submit(2, "true", "--wait")
        lists: dict[str, set[str]] = {class_archive.DAEMONS: set(), class_archive.MASTER: set()}
        for path in Path(folder).iterdir():
            names = read_names(path)
            lists[class_archive.MASTER if MASTER_CLASS in names else class_archive.DAEMONS] |= names
    for name, names in lists.items():
        target = Path(class_archive.__file__).with_name(f"classes-{name}.txt.gz")
        target.write_bytes(gzip.compress("".join(f"{line}\n" for line in sorted(names)).encode(), mtime=0))
        print(f"{len(names)} classes in {os.path.relpath(target)}")


if __name__ == "__main__":
    main()

"""Jars of servers besides Hadoop's: Maven fetches them once, into a folder of the cache."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tf_yarn_ops.minicluster.artefacts import cache_folder, find_maven, publish, run_maven

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>server</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{}</dependencies>
</project>
"""
#: The web shell of Knox 2, which no test opens, needs what no repository of Maven has.
_LEFT_OUT = "<exclusion><groupId>org.jetbrains.pty4j</groupId><artifactId>*</artifactId></exclusion>"
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    f"<exclusions>{_LEFT_OUT}</exclusions></dependency>"
)


def fetch_jars(name: str, artefacts: Sequence[str], *, transitive: bool = False) -> Path:
    """Return the folder ``name`` of the cache with the jars of artefacts; fetch them once.

    Parameters
    ----------
    name : str
    artefacts : sequence of str
        ``group:artefact:version``.
    transitive : bool, optional
        Also the jars on which they depend. Default: only they, for servers that run on Hadoop's jars.

    Raises
    ------
    MiniClusterError
        Maven is missing or fails.
    """
    target = cache_folder(os.environ) / name
    if target.is_dir():
        return target
    maven = find_maven(name, os.environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        if transitive:
            pom = folder / "pom.xml"
            pom.write_text(_POM.format("".join(_DEPENDENCY.format(*artefact.split(":")) for artefact in artefacts)))
            goals = [[f"{_PLUGIN}:copy-dependencies", "-f", str(pom), "-DincludeScope=runtime"]]
        else:
            goals = [[f"{_PLUGIN}:copy", f"-Dartifact={artefact}"] for artefact in artefacts]
        for goal in goals:
            run_maven(maven, [*goal, f"-DoutputDirectory={folder}"], folder, os.environ)
        folder.chmod(0o755)
        publish(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target

"""`find_client`: the Hadoop client of this node, as the variables by which libhdfs and PyArrow find it."""

import glob
import os
import subprocess
from typing import Dict, Mapping, Optional, Sequence, Tuple

from ..common.processes import find_program

#: Variables with the folder of an installation: YARN gives them to containers.
_HOMES = ("HADOOP_HOME", "HADOOP_HDFS_HOME", "HADOOP_COMMON_HOME")
#: Where distributions install Hadoop.
_PLACES = (
    "/opt/cloudera/parcels/CDH",
    "/usr/hdp/current/hadoop-client",
    "/usr/lib/hadoop",
    "/opt/hadoop",
    "/usr/local/hadoop",
    "/usr",
)
#: Where they put libraries, below those.
_LIBRARIES = ("lib/native", "lib64", "lib")
#: Seconds for ``hadoop classpath``, which starts a JVM.
_SECONDS = 60
#: The heap of Hadoop's own clients: by default Java takes a part of the node's memory. -Xrs leaves signals to the
#: program, whose handler of SIGTERM Java would replace.
_JAVA_OPTIONS = "-Xmx512m -Xrs -Djava.library.path="


class NoClient(Exception):
    """This node has no Hadoop client, or not all of it; the text says where it was looked for."""


def find_client(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables of the container that lead to this node's Hadoop client.

    Parameters
    ----------
    environ : mapping of str to str
        The container's environment. Its HADOOP_HDFS_HOME and LIBHDFS_OPTS stay.

    Raises
    ------
    NoClient
        Without the program ``hadoop``, libhdfs.so or Java.

    References
    ----------
    Hadoop, "C API libhdfs": CLASSPATH without wildcards. Arrow, ``hdfs_internal.cc``: ARROW_LIBHDFS_DIR, JAVA_HOME.
    """
    homes = [environ[name] for name in _HOMES if environ.get(name)]
    path = environ.get("PATH", os.defpath)
    hadoop = _first(
        [*(home + "/bin" for home in homes), *path.split(":"), *(place + "/bin" for place in _PLACES)],
        "hadoop",
        "program hadoop",
        os.X_OK,
    )
    home = os.path.dirname(os.path.dirname(os.path.realpath(hadoop)))
    folders = [folder + "/" + name for folder in (*homes, home, *_PLACES) for name in _LIBRARIES]
    libraries = os.path.dirname(_first([environ.get("ARROW_LIBHDFS_DIR", ""), *folders], "libhdfs.so", "libhdfs.so"))
    java, jvm = _find_java(environ.get("JAVA_HOME"), path)
    return {
        "CLASSPATH": _query_class_path(hadoop, {**environ, "JAVA_HOME": java}),
        "HADOOP_HDFS_HOME": environ.get("HADOOP_HDFS_HOME") or home,
        "ARROW_LIBHDFS_DIR": libraries,
        "LIBHDFS_OPTS": environ.get("LIBHDFS_OPTS") or _JAVA_OPTIONS + libraries,
        "JAVA_HOME": java,
        "LD_LIBRARY_PATH": ":".join(filter(None, (environ.get("LD_LIBRARY_PATH"), jvm))),
    }


def _first(folders: Sequence[str], name: str, what: str, access: int = os.R_OK) -> str:
    """Return the first file of this name."""
    seen = [folder for folder in dict.fromkeys(folders) if folder]
    for folder in seen:
        found = os.path.join(folder, name)
        if os.path.isfile(found) and os.access(found, access):
            return found
    raise NoClient("no %s in %s" % (what, ", ".join(seen)))


def _find_java(given: Optional[str], path: str) -> Tuple[str, str]:
    """Return the folder of Java, and that of its libjvm.so, which Java 8 keeps deeper."""
    program = find_program("java", path)
    home = given or (os.path.dirname(os.path.dirname(os.path.realpath(program))) if program else "JAVA_HOME and PATH")
    for pattern in ("lib/server", "jre/lib/*/server", "lib/*/server"):
        for found in glob.glob(os.path.join(glob.escape(home), pattern, "libjvm.so")):
            return home, os.path.dirname(found)
    raise NoClient("no libjvm.so of Java in %s" % home)


def _query_class_path(hadoop: str, environ: Mapping[str, str]) -> str:
    """Return the class path of a client; the program may print warnings before it."""
    command = [hadoop, "classpath", "--glob"]
    try:
        ran = subprocess.run(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            encoding="utf-8",
            errors="replace",
        )
        if ran.returncode == 0 and ran.stdout.strip():
            return ran.stdout.strip().splitlines()[-1]
        why = "exit code %d: %s" % (ran.returncode, ran.stderr.strip()[-300:] or "no output")
    except subprocess.TimeoutExpired:
        why = "no answer within %d s" % _SECONDS
    except OSError as error:
        why = str(error)
    raise NoClient("%s: %s" % (" ".join(command), why))

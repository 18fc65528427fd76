"""The versions of Hadoop that the tests run, with what their daemons need of Java."""

from dataclasses import dataclass

from tf_yarn_ops.errors import MiniClusterError


@dataclass(frozen=True)
class HadoopVersion:
    """A version of Hadoop.

    Attributes
    ----------
    number : str
        Such as ``3.4.3``.
    size : int
        Size of its jars, MB.
    oldest_java, newest_java : int
        Feature releases of Java.
    hdfs_opens : bool
        Whether NameNode and DataNode too need access to Java's own classes, from Java 17 on.
    kerberos_opens : bool
        Whether all programs of a secured cluster need access to Java's own classes of Kerberos, from Java 17 on.
    left_out : str
        Maven's name of a group whose jars are left out: two versions of the same classes.
    """

    number: str
    size: int
    oldest_java: int = 11
    newest_java: int = 23
    hdfs_opens: bool = False
    kerberos_opens: bool = False
    left_out: str = ""


#: By number, oldest first.
VERSIONS = {
    version.number: version
    for version in (
        HadoopVersion("2.10.2", 61, hdfs_opens=True, kerberos_opens=True, left_out="org.ow2.asm"),
        HadoopVersion("3.1.4", 65, hdfs_opens=True, kerberos_opens=True),
        HadoopVersion("3.2.4", 72, hdfs_opens=True),
        HadoopVersion("3.3.6", 87, hdfs_opens=True),
        HadoopVersion("3.4.3", 90, newest_java=25),
        HadoopVersion("3.5.0", 99, oldest_java=17, newest_java=25),
    )
}


def find_version(number: str) -> HadoopVersion:
    """Return a version that the tests run.

    Raises
    ------
    MiniClusterError
        The number is unknown; the message names the known ones.
    """
    if number not in VERSIONS:
        raise MiniClusterError(f"Hadoop {number} is not known to work; use one of {', '.join(VERSIONS)}")
    return VERSIONS[number]

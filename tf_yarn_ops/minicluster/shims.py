"""``yarn``, ``hdfs`` and ``hadoop``: small shell scripts that stand first on PATH.

Skein calls ``yarn classpath --glob`` each time it starts its JVM, and the script answers without a JVM. All other
commands run a Java main class with the cluster's configuration.
"""

import os
from pathlib import Path

from .configuration import Settings
from .daemons import JVM_FLAGS, kerberos_flags

_YARN = "org.apache.hadoop.yarn.client.cli"

#: Main class by command. ``*`` after it: the class needs the command's name as its first argument.
COMMANDS = {
    "yarn": {
        "application": f"{_YARN}.ApplicationCLI *",
        "app": f"{_YARN}.ApplicationCLI *",
        "applicationattempt": f"{_YARN}.ApplicationCLI *",
        "container": f"{_YARN}.ApplicationCLI *",
        "logs": f"{_YARN}.LogsCLI",
        "node": f"{_YARN}.NodeCLI",
        "queue": f"{_YARN}.QueueCLI",
        "cluster": f"{_YARN}.ClusterCLI",
        "rmadmin": f"{_YARN}.RMAdminCLI",
        "jar": "org.apache.hadoop.util.RunJar",
        "version": "org.apache.hadoop.util.VersionInfo",
    },
    "hdfs": {
        "dfs": "org.apache.hadoop.fs.FsShell",
        "haadmin": "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
        "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
        "fsck": "org.apache.hadoop.hdfs.tools.DFSck",
        "getconf": "org.apache.hadoop.hdfs.tools.GetConf",
        "version": "org.apache.hadoop.util.VersionInfo",
    },
    "hadoop": {
        "fs": "org.apache.hadoop.fs.FsShell",
        "jar": "org.apache.hadoop.util.RunJar",
        "version": "org.apache.hadoop.util.VersionInfo",
    },
}

_TEMPLATE = """\
#!/bin/sh
# {program} of the minicluster in {directory}
JAVA_HOME="${{JAVA_HOME:-{java_home}}}"
HADOOP_CONF_DIR="${{HADOOP_CONF_DIR:-{configuration}}}"
export JAVA_HOME HADOOP_CONF_DIR
command="$1"
[ $# -gt 0 ] && shift
case "$command" in
  classpath)
    if [ "$1" = --glob ]; then
      set -- "{jars}"/*.jar{more_files}
      IFS=:
      echo "$HADOOP_CONF_DIR:$*"
    else
      echo "$HADOOP_CONF_DIR:{jars}/*{more}"
    fi
    exit 0 ;;
{cases}
  *)
    echo "{program}: unknown command '$command'; this minicluster knows: classpath {known}" >&2
    exit 2 ;;
esac
# shellcheck disable=SC2086
exec "$JAVA_HOME/bin/java" -Xmx256m {flags} $HADOOP_CLIENT_OPTS -cp "$HADOOP_CONF_DIR:{jars}/*" "$class" "$@"
"""


def build_shims(
    directory: Path, jars: Path, java_home: Path, flags: tuple[str, ...] = (), additions: Path | None = None
) -> dict[str, str]:
    """Return the scripts: text by file name.

    Parameters
    ----------
    directory : Path
        The cluster's folder.
    jars : Path
        Folder with Hadoop's jars.
    java_home : Path
        The Java that is used if JAVA_HOME is not set.
    flags : tuple of str, optional
        Further flags of the JVM.
    additions : Path, optional
        Folder with further jars.
    """
    return {program: _build(program, directory, jars, java_home, flags, additions) for program in COMMANDS}


def lead_here(settings: Settings, path: str) -> dict[str, str]:
    """Return the variables by which programs find a cluster; its shims stand before ``path`` in PATH."""
    shims = str(settings.shims)
    others = [entry for entry in path.split(os.pathsep) if entry != shims]
    homes = ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_YARN_HOME")
    return {
        "PATH": os.pathsep.join([shims, *others]),
        "JAVA_HOME": str(settings.java_home),
        "HADOOP_CONF_DIR": str(settings.configuration),
        **dict.fromkeys(homes, str(settings.directory)),
        "YTF_RESOURCEMANAGER": ",".join(map(settings.web_address, settings.resourcemanagers)),
        **({"YTF_SITE": str(settings.site_file)} if settings.https else {}),
        **(_lead_to_realm(settings) if settings.kerberos else {}),
    }


def _lead_to_realm(settings: Settings) -> dict[str, str]:
    return {
        "KRB5_CONFIG": str(settings.realm.krb5_conf),
        # A cache of its own leaves the user's other tickets alone.
        "KRB5CCNAME": f"FILE:{settings.realm.folder}/ticket",
        "JDK_JAVA_OPTIONS": " ".join(kerberos_flags(settings)),
    }


def _build(
    program: str, directory: Path, jars: Path, java_home: Path, flags: tuple[str, ...], additions: Path | None
) -> str:
    cases = []
    for command, target in COMMANDS[program].items():
        main_class, _, named = target.partition(" ")
        again = f' set -- {command} "$@" ;' if named else ""
        cases.append(f"  {command}) class={main_class} ;{again};")
    return _TEMPLATE.format(
        program=program,
        directory=directory,
        configuration=directory / "conf",
        jars=jars,
        java_home=java_home,
        more=f":{additions}/jars/*" if additions else "",
        more_files=f' "{additions}"/jars/*.jar' if additions else "",
        flags=" ".join((*JVM_FLAGS, *flags)),
        cases="\n".join(cases),
        known=" ".join(COMMANDS[program]),
    )

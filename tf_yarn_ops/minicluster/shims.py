"""``yarn``, ``hdfs`` and ``hadoop``: small shell scripts that stand first on PATH.

Skein calls ``yarn classpath --glob`` each time it starts its JVM, and the script answers without a JVM. All other
commands run a Java main class with the cluster's configuration.
"""

from .daemon_settings import Settings

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
      set -- {files}
      IFS=:
      echo "$HADOOP_CONF_DIR:$*"
    else
      echo "$HADOOP_CONF_DIR:{jars}"
    fi
    exit 0 ;;
{cases}
  *)
    echo "{program}: unknown command '$command'; this minicluster knows: classpath {known}" >&2
    exit 2 ;;
esac
# shellcheck disable=SC2086
exec "$JAVA_HOME/bin/java" -Xmx256m {flags} $HADOOP_CLIENT_OPTS -cp "{tools}:$HADOOP_CONF_DIR" "$class" "$@"
"""


def build_shims(settings: Settings) -> dict[str, str]:
    """Return the scripts: text by file name."""
    return {program: _build(program, settings) for program in COMMANDS}


def _build(program: str, settings: Settings) -> str:
    cases = []
    for command, target in COMMANDS[program].items():
        main_class, _, named = target.partition(" ")
        again = f' set -- {command} "$@" ;' if named else ""
        cases.append(f"  {command}) class={main_class} ;{again};")
    return _TEMPLATE.format(
        program=program,
        directory=settings.directory,
        configuration=settings.configuration,
        tools=":".join(settings.tool_jars),
        java_home=settings.java_home,
        jars=":".join(f"{folder}/*" for folder in settings.client_jars),
        files=" ".join(f'"{folder}"/*.jar' for folder in settings.client_jars),
        flags=" ".join(settings.client_flags),
        cases="\n".join(cases),
        known=" ".join(COMMANDS[program]),
    )

"""The launcher's environment, without the variables that a job must not set.

Azkaban puts a job's ``env.*`` into the environment of the launcher. The launcher, its libraries and the programs that
it starts read the variables that remain.
"""

import os
from collections.abc import Mapping

#: Variables for the user and the options of Hadoop's programs. The operating system, Kerberos or the site sets them.
DROPPED = frozenset({"HADOOP_USER_NAME", "HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION", "JAVA_TOOL_OPTIONS",
                     "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "HADOOP_OPTS", "HADOOP_CLIENT_OPTS"})
#: Dropped too: the launcher runs with ``-I`` and ignores these variables, but another Python that it starts reads them.
DROPPED_PREFIX = "PYTHON"


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that a job must not set."""
    return {name: value for name, value in environ.items()
            if name not in DROPPED and not name.startswith(DROPPED_PREFIX)}


def replace_own(environ: Mapping[str, str]) -> None:
    """Replace the process's environment, because Kerberos and other libraries read only that."""
    for name in [name for name in os.environ if name not in environ]:
        del os.environ[name]
    os.environ.update(environ)

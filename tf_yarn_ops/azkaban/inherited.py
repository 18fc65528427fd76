"""The environment that a launcher works with: what Azkaban gives it, without what no job may say.

In comes the process's environment, into which ``env.*`` of the job has been put; out goes
what the launcher, its libraries and the programs that it starts read.
"""

import os
from collections.abc import Mapping

#: As whom, and with which options, Hadoop's programs run: the operating system's to say, or Kerberos', or the site's.
DROPPED = frozenset({"HADOOP_USER_NAME", "HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION", "JAVA_TOOL_OPTIONS",
                     "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "HADOOP_OPTS", "HADOOP_CLIENT_OPTS"})
#: ``-I`` keeps them from the launcher, not from a Python that it starts.
DROPPED_PREFIX = "PYTHON"


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """Give an environment without what no job may say."""
    return {name: value for name, value in environ.items()
            if name not in DROPPED and not name.startswith(DROPPED_PREFIX)}


def replace_own(environ: Mapping[str, str]) -> None:
    """Make an environment the process's own: the Kerberos library and others read nothing else."""
    for name in [name for name in os.environ if name not in environ]:
        del os.environ[name]
    os.environ.update(environ)

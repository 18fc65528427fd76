"""What Skein's Java client needs on this machine; it submits where HTTP is closed."""

import shutil
from collections.abc import Mapping


def missing_for_skein(environ: Mapping[str, str]) -> str:
    """Return which programs are missing, joined by "and"; empty if Skein's client can run.

    Parameters
    ----------
    environ : mapping of str to str
        The environment of the process that would submit jobs.
    """
    java = shutil.which("java", path=f"{environ['JAVA_HOME']}/bin" if environ.get("JAVA_HOME") else environ.get("PATH"))
    found = {"'yarn' on PATH": shutil.which("yarn", path=environ.get("PATH")), "Java": java}
    return " and ".join(name for name, path in found.items() if not path)

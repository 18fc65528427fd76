"""The launcher's environment: that of the executor and of the administrator, without the variables of the job.

Azkaban's ``ProcessJob`` puts every property ``env.NAME`` into the environment of the process, those of the job over
those of the plugin. It sets the variables in `AZKABANS` itself, after all of these.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from .properties import parse_properties

#: The variables that Azkaban sets for each process after those of the job.
AZKABANS = frozenset({"JOB_PROP_FILE", "JOB_NAME", "JOB_OUTPUT_PROP_FILE", "KRB5CCNAME"})
#: Variables of the executor that choose a user. The operating system, Kerberos or the site's limits choose it.
DROPPED = frozenset({"HADOOP_USER_NAME", "HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION"})
#: Releases before 3.72 read the second one, too.
_PREFIXES = ("env.", "ENV.")


def launcher_environment(
    environ: Mapping[str, str], properties: Mapping[str, str], plugin: Path | None, of_site: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the environment of the launcher, and the keys of the variables that the job sets in vain.

    Parameters
    ----------
    environ : mapping of str to str
        The environment of the process.
    properties : mapping of str to str
        The properties of the job, those of the plugin included.
    plugin : Path or None
        The plugin's folder. The administrator gives variables in its files and in the folder of all plugins.
    of_site : mapping of str to str
        The variables of the site's limits, which win.
    """
    files = (plugin.parent / "common.properties", plugin / "plugin.properties") if plugin else ()
    of_plugin = {
        name: value
        for file in files
        if file.is_file()
        for _, name, value in _variables(parse_properties(file.read_bytes()))
    }
    of_job = {name for _, name, _ in _variables(properties)} - AZKABANS
    kept = {name: value for name, value in environ.items() if name not in of_job}
    replaced = {name: value for name, value in _executors().items() if name in of_job}
    allowed = {name: value for name, value in {**kept, **replaced, **of_plugin}.items() if name not in DROPPED}
    ignored = sorted(
        key
        for key, name, value in _variables(properties)
        if of_plugin.get(name) != value and name not in AZKABANS | DROPPED
    )
    return {**allowed, **of_site}, ignored


def replace_own(environ: Mapping[str, str]) -> None:
    """Replace the process's environment, because Kerberos and other libraries read only that."""
    os.environ.clear()
    os.environ.update(environ)


def _executors() -> dict[str, str]:
    """Return the environment of the executor, our parent; empty where it runs as another user than its jobs."""
    try:
        content = Path(f"/proc/{os.getppid()}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (os.fsdecode(part).partition("=") for part in content.split(b"\0") if part)
    return {name: value for name, _, value in pairs}


def _variables(properties: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key, value in properties.items():
        if key.startswith(_PREFIXES):
            yield key, key.partition(".")[2], value

"""`Site`: the settings of a site's administrator, read from ``site.yaml``.

Every setting has a default, and most sites need no file. Unknown keys are errors.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..errors import Fault, FaultCode, GeneralFault, SpecInvalid, did_you_mean
from ..runtime.common.protocol import PORTS
from ..runtime.common.values import plain_text
from ..validation import (
    Reader,
    check_faults,
    invalid,
    normalise,
    not_a_mapping,
    optional,
    read_choice,
    read_count,
    read_flag,
    read_part,
    read_seconds,
    read_text,
    read_texts,
)
from .security.credentials import PASSWORD_FILE, TOKEN_FILE, HttpCredentials
from .security.tickets import Tickets

SUBMIT_WITH = ("auto", "rest", "skein")
#: Below the ephemeral ports of Linux (32768 and up).
COORDINATOR_PORTS = "20000-29999"

#: The first two shorten the start of the application master's JVM by 15 %; the last one is for Skein's page links on
#: Java 17.
AM_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC --add-opens=java.base/java.util=ALL-UNNAMED"


class SiteFault(FaultCode):
    """Fault codes for a site file."""

    UNREADABLE = "can't be read: {error}"
    NOT_A_RANGE = "{given!r} is not a range of ports such as {example}"
    SMALL_RANGE = "{given!r} is not a range of at least {least} ports between 1024 and 65535"
    NOT_ABSOLUTE = "{given!r} is not an absolute path of the file system"
    NOT_ABSOLUTE_FILE = "{given!r} is not an absolute path"
    TWO_LOGINS = "a gateway gets a token or a password; remove this setting or {other}"
    NO_SETTINGS = "has no settings: each line is NAME: VALUE"
    NO_TIMEOUT = "0 would wait without end; give a number of seconds"


def _read_port_range(value: object) -> str:
    first, dash, last = str(value).partition("-")
    if not (dash and first.strip().isdecimal() and last.strip().isdecimal()):
        raise invalid(SiteFault.NOT_A_RANGE, given=value, example=COORDINATOR_PORTS)
    low, high = int(first), int(last)
    if not 1024 <= low <= high - PORTS + 1 <= 65535 or high > 65535:
        raise invalid(SiteFault.SMALL_RANGE, given=value, least=PORTS)
    return f"{low}-{high}"


def _read_namenodes(value: object) -> dict[str, tuple[str, ...]]:
    """Return the HTTP addresses of NameNodes by the URL of their file system."""
    if not isinstance(value, Mapping):
        raise not_a_mapping(value, "file systems to addresses")
    return {
        read_text(url).rstrip("/"): tuple(one.rstrip("/") for one in read_texts(addresses))
        for url, addresses in value.items()
    }


#: How a setting is read, by its type; some have a reader of their own.
_READERS: Mapping[Any, Reader] = {
    str: read_text,
    str | None: optional(read_text),
    tuple[str, ...]: read_texts,
    bool: read_flag,
    int: read_count(0),
    float: read_seconds,
}
_SPECIAL: Mapping[str, Reader] = {
    "namenodes": _read_namenodes,
    "coordinator_ports": _read_port_range,
    "submit_with": read_choice(*SUBMIT_WITH),
}


@dataclass(frozen=True)
class Site:
    """Settings of a site; None and empty mean "as the cluster's own configuration says".

    Parameters
    ----------
    resourcemanager : sequence of str, optional
        HTTP addresses of the ResourceManagers.
    default_filesystem : str, optional
        ``fs.defaultFS``, for clusters whose ``/conf`` can't be read.
    staging_url : str, optional
        URL of another file system for the staging directory, ``hdfs://other:8020``.
        Default: the default file system.
    webhdfs : sequence of str, optional
        HTTP addresses of its NameNodes, or of an HttpFS.
    namenodes : mapping of str to sequence of str, optional
        HTTP addresses of the NameNodes of further file systems, by URL: ``{hdfs://other:8020: http://other:9870}``.
        A secured cluster gives tokens there. Default: as the cluster's configuration says, else port 9870.
    resourcemanager_service : sequence of str, optional
        ``host:port`` of each ResourceManager for Hadoop's own clients, ``yarn.resourcemanager.address``; for secured
        clusters whose ``/conf`` can't be read.
    token_renewer : str, optional
        The user or principal that renews the tokens of applications on a secured cluster. Default:
        ``yarn.resourcemanager.principal``, else the ResourceManager's user.
    staging : str, optional
        Directory for applications and the cache. ``{user}`` is replaced. Default ``/user/{user}/.skein``.
    shared_cache : str, optional
        Directory of a second cache, which ``trusted_owner`` fills for all users; it is searched first.
    trusted_owner : str, optional
        A user whose cached files are used besides those of the submitting user.
    environment_cache : str, optional
        Folder of submitting machines for the environments of ``requirements://``, for users who trust each other.
        Default: each user's own, below ``~/.cache``.
    history_days : int, optional
        Days for which the records of ended jobs stay below the staging directory. Default 365; 0 keeps none.
    application_classpath : sequence of str, optional
        Replaces ``yarn.application.classpath`` of the cluster. Default: the cluster's value.
    ui_url : str, optional
        Address of the site's ``ytf ui``, ``https://ytf.example.com``: ended jobs lead to their pages there.
    ui_realms : sequence of str, optional
        Realms or domains of the users that a proxy names to ``ytf ui``: ``ann@EXAMPLE.COM`` is then the user ann.
        Default: none, so that such a name is no user of YARN.
    log_server : str, optional
        REST base of the job history or timeline server, ``http://host:19888/ws/v1/history``.
    coordinator_ports : str, optional
        The ports on which coordinators listen, ``first-last``. Default 20000-29999.
    am_java_options : str, optional
        JDK_JAVA_OPTIONS of the application master; empty leaves the variable alone.
    docker_folders : sequence of str, optional
        Folders of the nodes that Docker containers see read-only, such as the nodes' HADOOP_HOME,
        HADOOP_CONF_DIR and JAVA_HOME. Default: none.
    tensorboard_direct : bool, optional
        Whether TensorBoard also listens on its node's own name, where everybody who reaches the node may look. Default
        false: it is reached through YARN's proxy only.
    request_timeout : float, optional
        Seconds for one request to the ResourceManager or a NameNode. Default 10.
    unreachable_timeout : float, optional
        Seconds for which a waiting client goes on without a ResourceManager. Default 600: a fail-over takes one
        minute, a restart with recovery several.
    submit_with : {"auto", "rest", "skein"}, optional
        Default auto: plain HTTP, or Skein's Java client where the cluster does not allow that.
    ca_file : str, optional
        PEM file with the certificates of the CAs that sign the daemons' certificates. Default: the machine's CAs.
    gateway_password_file, gateway_token_file : str, optional
        File with the line ``USER:PASSWORD`` or with a token, for a gateway such as Apache Knox in front of the
        addresses; only one of both. Other users must not be able to read it. Default: no gateway asks for a login.
    keytab : str, optional
        File with the keys of the Kerberos principal that submits; its tickets need no kinit and are renewed.
        Default: the process's ticket cache.
    principal : str, optional
        The Kerberos principal that submits, ``ann@EXAMPLE.COM``. Default: the first one in the keytab, or that of the
        ticket cache.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    resourcemanager: tuple[str, ...] = ()
    default_filesystem: str | None = None
    staging_url: str | None = None
    webhdfs: tuple[str, ...] = ()
    namenodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    resourcemanager_service: tuple[str, ...] = ()
    token_renewer: str | None = None
    staging: str = "/user/{user}/.skein"
    shared_cache: str | None = None
    trusted_owner: str | None = None
    environment_cache: str | None = None
    history_days: int = 365
    application_classpath: tuple[str, ...] = ()
    ui_url: str | None = None
    ui_realms: tuple[str, ...] = ()
    log_server: str | None = None
    coordinator_ports: str = COORDINATOR_PORTS
    am_java_options: str = AM_JAVA_OPTIONS
    docker_folders: tuple[str, ...] = ()
    tensorboard_direct: bool = False
    request_timeout: float = 10.0
    unreachable_timeout: float = 600.0
    submit_with: str = "auto"
    ca_file: str | None = None
    gateway_password_file: str | None = None
    gateway_token_file: str | None = None
    keytab: str | None = None
    principal: str | None = None

    def __post_init__(self) -> None:
        faults = normalise(self, {one.name: _SPECIAL.get(one.name) or _READERS[one.type] for one in fields(self)})
        if not faults and not self.staging.startswith("/"):
            faults.append(Fault("staging", SiteFault.NOT_ABSOLUTE, {"given": self.staging}))
        if not faults and self.environment_cache and not self.environment_cache.startswith("/"):
            faults.append(Fault("environment_cache", SiteFault.NOT_ABSOLUTE_FILE, {"given": self.environment_cache}))
        if not faults and self.keytab and not self.keytab.removeprefix("FILE:").startswith("/"):
            faults.append(Fault("keytab", SiteFault.NOT_ABSOLUTE_FILE, {"given": self.keytab}))
        if self.gateway_password_file and self.gateway_token_file:
            faults.append(Fault(TOKEN_FILE, SiteFault.TWO_LOGINS, {"other": PASSWORD_FILE}))
        if not faults and not self.request_timeout:
            faults.append(Fault("request_timeout", SiteFault.NO_TIMEOUT))
        check_faults(faults)

    @property
    def credentials(self) -> HttpCredentials | None:
        """Where the login for a gateway comes from; None if no gateway asks for one."""
        for setting, file in ((PASSWORD_FILE, self.gateway_password_file), (TOKEN_FILE, self.gateway_token_file)):
            if file:
                return HttpCredentials(setting, file)
        return None

    @property
    def tickets(self) -> Tickets:
        """Where the Kerberos tickets come from."""
        return Tickets(self.keytab, self.principal)

    def base_port(self, seed: int) -> int:
        """Return the first of 16 consecutive ports for one job, chosen by ``seed``, the job's number."""
        low, high = map(int, self.coordinator_ports.split("-"))
        blocks = (high - low + 1) // PORTS
        return low + (seed % blocks) * PORTS


def read_site(path: str | Path) -> Site:
    """Read a site file.

    A fault never shows the content of the file: somebody who may not read a file might name it as a site file.

    Raises
    ------
    SpecInvalid
        The file can't be read, or has faults; an unknown key is reported with its line and the nearest known key.
    """
    from ..yaml_text import YamlFault, load_yaml

    where = f"site file {plain_text(str(path))}"
    try:
        read = load_yaml(Path(path).read_text(encoding="utf-8"))
    except SpecInvalid as error:
        (fault,) = error.faults
        if fault.code is YamlFault.NOT_YAML:
            fault = replace(fault, values={**fault.values, "problem": "expected 'key: value'"})
        if fault.code is YamlFault.KEY_TWICE:
            fault = replace(fault, values={**fault.values, "key": _Unshown()})
        raise SpecInvalid(fault.in_file(where)) from None
    except (OSError, ValueError) as error:  # a name with NUL or half of a character is a ValueError
        what = getattr(error, "strerror", "it is not text")
        raise SpecInvalid(Fault(where, SiteFault.UNREADABLE, {"error": what})) from None
    document = {} if read.value is None else read.value
    if not isinstance(document, Mapping):
        raise SpecInvalid(Fault(where, SiteFault.NO_SETTINGS))
    try:
        return read_part(Site)(document)
    except SpecInvalid as error:
        raise SpecInvalid(_without_content(fault, read.lines).in_file(where) for fault in error.faults) from None


def read_setting(name: str, text: str) -> Any:
    """Return the value of a setting that is given as a text, as the site file has it after ``name:``.

    Parameters
    ----------
    name : str
        A field of `Site`.
    text : str
        YAML; a list may also be texts joined by commas.
    """
    from ..yaml_text import load_yaml

    kind = next(one.type for one in fields(Site) if one.name == name)
    if kind in (str, str | None):
        return text
    try:
        value = load_yaml(text).value
    except SpecInvalid:
        return text  # the reader of the setting names the fault
    return value.split(",") if kind == tuple[str, ...] and isinstance(value, str) else value


def _without_content(fault: Fault, lines: Mapping[str, int]) -> Fault:
    """Return a fault with the line of the file in place of its content."""
    if fault.code is GeneralFault.UNKNOWN_KEY:
        values = {**fault.values, "given": "", "hint": did_you_mean(fault.path, fault.values["allowed"])}
        return Fault(f"line {lines.get(fault.path, 1)}", GeneralFault.UNKNOWN_KEY, values)
    key = fault.path.partition(".")[0]
    values = {name: value for name, value in fault.values.items() if name != "item"}
    return replace(fault, path=key, values={**values, **({"given": _Unshown()} if "given" in values else {})})


class _Unshown:
    """Stands in a fault for a value of a site file."""

    def __repr__(self) -> str:
        return "the value"


def find_site(environ: Mapping[str, str]) -> Site:
    """Return the settings of this machine: from $YTF_SITE, the user's file or the file in /etc, else the defaults."""
    path = find_site_file(environ)
    return Site() if path is None else read_site(path)


def find_site_file(environ: Mapping[str, str]) -> Path | None:
    """Return the site file of this machine; None if there is none. A file that $YTF_SITE names may be missing."""
    if environ.get("YTF_SITE"):
        return Path(environ["YTF_SITE"])
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    for path in (Path(home, "tf_yarn_ops", "site.yaml"), Path("/etc/tf_yarn_ops/site.yaml")):
        if path.is_file():
            return path
    return None

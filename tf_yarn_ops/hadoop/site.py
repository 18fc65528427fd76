"""`Site`: the settings of a site's administrator, read from ``site.yaml``.

Every setting has a default, and most sites need no file. Unknown keys are errors.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .. import kinds
from ..declaration import Converted, Part, Texts, option
from ..errors import Fault, FaultCode, GeneralFault, SpecInvalid, did_you_mean, why_unreadable
from ..runtime.common.protocol import PORTS
from ..runtime.common.values import plain_text, read_text_file
from ..runtime.common.web_address import is_url
from ..validation import check_faults, invalid, not_a_mapping, read_part, read_text, read_texts
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
    NOT_A_URL = "{given!r} is not a URL such as hdfs://namenode:8020"
    TWO_LOGINS = "a gateway gets a token or a password; remove this setting or {other}"
    NO_SETTINGS = "has no settings: each line is NAME: VALUE"
    NOT_CERTIFICATES = "{file} can't be read as certificates in PEM format: {error}"
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


@dataclass(frozen=True)
class Site(Part):
    """Settings of a site; None and empty mean "as the cluster's own configuration says"."""

    resourcemanager: Texts = option((), kinds.TEXTS, "HTTP addresses of all ResourceManagers of the cluster.")
    default_filesystem: str | None = option(
        None, kinds.TEXT, "The default file system, for clusters whose /conf can't be read.", in_words="fs.defaultFS"
    )
    staging_url: str | None = option(
        None,
        kinds.TEXT,
        "Another file system for the staging directory, hdfs://other:8020.",
        in_words="the default file system",
    )
    webhdfs: Texts = option(
        (),
        kinds.TEXTS,
        "HTTP addresses of the NameNodes of the staging directory, or of an HttpFS.",
        in_words="from dfs.namenode.http-address",
    )
    namenodes: Converted[Mapping[str, tuple[str, ...]], Mapping[str, Sequence[str]]] = option(
        dict,
        kinds.Kind(
            "variables",
            _read_namenodes,
            schema={"type": "object", "additionalProperties": kinds.TEXTS.schema},
        ),
        "HTTP addresses of the NameNodes of further file systems, by URL: {hdfs://other:8020: http://other:9870}, or "
        "of those behind an HttpFS. Nodes read and write there; on a secured cluster a job's tokens for these file "
        "systems come from there.",
        in_words="as /conf says, else port 9870",
    )
    resourcemanager_service: Texts = option(
        (),
        kinds.TEXTS,
        "host:port of each ResourceManager for Hadoop's own clients. Secured clusters whose /conf can't be read need "
        "it.",
        in_words="yarn.resourcemanager.address",
    )
    token_renewer: str | None = option(
        None,
        kinds.TEXT,
        "The user or principal that renews the tokens of jobs on a secured cluster.",
        in_words="yarn.resourcemanager.principal, else the ResourceManager's user",
    )
    staging: str = option(
        "/user/{user}/.skein", kinds.TEXT, "Directory of applications, cache, claims and the history."
    )
    shared_cache: str | None = option(
        None, kinds.TEXT, "A second cache, which trusted_owner fills for all users; it is searched first."
    )
    trusted_owner: str | None = option(
        None, kinds.TEXT, "A user whose cached files are used, besides those of the submitting user."
    )
    environment_cache: str | None = option(
        None,
        kinds.TEXT,
        "Folder of submitting machines for the environments of requirements://, for users who trust each other.",
        in_words="each user's ~/.cache",
    )
    history_days: int = option(
        365, kinds.count(0), "For how many days the record of an ended job stays in the history; 0 keeps none."
    )
    application_classpath: Texts = option(
        (),
        kinds.TEXTS,
        "Where Skein's application master finds Hadoop's classes.",
        in_words="yarn.application.classpath",
    )
    ui_url: str | None = option(
        None, kinds.TEXT, "Address of the site's ytf ui, to whose pages ended jobs lead: https://ytf.example.com."
    )
    ui_realms: Texts = option(
        (),
        kinds.TEXTS,
        "Realms or domains that ytf ui for a team leaves off the user that its proxy names: with [EXAMPLE.COM], "
        "ann@EXAMPLE.COM is ann.",
    )
    log_server: str | None = option(
        None,
        kinds.TEXT,
        "REST base of the job history or timeline server, http://host:19888/ws/v1/history.",
        in_words="yarn.log.server.web-service.url, else yarn.log.server.url",
    )
    coordinator_ports: str = option(
        COORDINATOR_PORTS,
        kinds.Kind("text", _read_port_range, schema={"type": "string", "pattern": r"^\s*[0-9]+\s*-\s*[0-9]+\s*$"}),
        "Ports on which coordinators listen, 16 per job; the firewall must open the range from every node to every "
        "node.",
    )
    am_java_options: str = option(
        AM_JAVA_OPTIONS,
        kinds.TEXT,
        "JDK_JAVA_OPTIONS of the application master. Set '' where yarn.nodemanager.admin-env sets the variable too: "
        "YARN joins both with a colon, and Java refuses that.",
    )
    docker_folders: Texts = option(
        (), kinds.TEXTS, "Folders of the nodes, such as HADOOP_HOME, that Docker containers see, read-only."
    )
    tensorboard_direct: bool = option(
        False,
        kinds.FLAG,
        "true: TensorBoard listens on its node's own name too, for everybody who reaches the node; else through "
        "YARN's proxy only.",
    )
    allow_exec: bool = option(
        False, kinds.FLAG, "true: the owner of a job may run commands beside its tasks, by ytf exec."
    )
    request_timeout: float = option(
        10.0,
        kinds.SECONDS,
        "How long one request may take; three times as long for changes and reads in HDFS, nine times for content "
        "that is written.",
    )
    unreachable_timeout: float = option(
        600.0, kinds.SECONDS, "For how long a waiting client continues without a ResourceManager."
    )
    submit_with: str = option(
        "auto",
        kinds.choice(*SUBMIT_WITH),
        "rest (HTTP), skein (Skein's Java client), or auto: HTTP, or Skein's client if YARN refuses HTTP.",
    )
    ca_file: str | None = option(
        None,
        kinds.TEXT,
        "File (PEM) with the certificates of the authorities that signed the daemons' HTTPS certificates.",
        in_words="the machine's",
    )
    gateway_password_file: str | None = option(
        None,
        kinds.TEXT,
        "File with the line USER:PASSWORD for a gateway such as Knox; other users must not be able to read it.",
    )
    gateway_token_file: str | None = option(
        None,
        kinds.TEXT,
        "File with a token for such a gateway, for example a KnoxToken; read again when it changes.",
    )
    keytab: str | None = option(
        None,
        kinds.TEXT,
        "File with the keys of the Kerberos principal that submits; its tickets need no kinit.",
        in_words="the process's ticket cache",
    )
    principal: str | None = option(
        None,
        kinds.TEXT,
        "The Kerberos principal that submits, ann@EXAMPLE.COM.",
        in_words="the first one in the keytab, or that of the ticket cache",
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        for name, begin, code in (
            ("staging", "/", SiteFault.NOT_ABSOLUTE),
            ("environment_cache", "/", SiteFault.NOT_ABSOLUTE_FILE),
            ("keytab", ("/", "FILE:/"), SiteFault.NOT_ABSOLUTE_FILE),
        ):
            given = getattr(self, name)
            if name not in wrong and (given or name == "staging") and not given.startswith(begin):
                yield Fault(name, code, {"given": given})
        for name in ("default_filesystem", "staging_url"):
            if name not in wrong and not is_url(getattr(self, name) or ""):
                yield Fault(name, SiteFault.NOT_A_URL, {"given": getattr(self, name)})
        if self.request_timeout == 0:
            yield Fault("request_timeout", SiteFault.NO_TIMEOUT)
        if self.gateway_password_file and self.gateway_token_file:
            yield Fault(TOKEN_FILE, SiteFault.TWO_LOGINS, {"other": PASSWORD_FILE})

    @property
    def credentials(self) -> HttpCredentials | None:
        """Where the login for a gateway comes from; None if no gateway asks for one."""
        files = ((PASSWORD_FILE, self.gateway_password_file), (TOKEN_FILE, self.gateway_token_file))
        return next((HttpCredentials(setting, file) for setting, file in files if file), None)

    @property
    def tickets(self) -> Tickets:
        """Where the Kerberos tickets come from."""
        return Tickets(self.keytab, self.principal)

    def base_port(self, seed: int) -> int:
        """Return the first of 16 consecutive ports for one job, chosen by ``seed``, the job's number."""
        low, high = map(int, self.coordinator_ports.split("-"))
        return low + seed % ((high - low + 1) // PORTS) * PORTS


def read_site(path: str | Path) -> Site:
    """Read a site file.

    A fault never shows the content of the file: somebody who may not read a file might name it as a site file.

    Raises
    ------
    SpecInvalid
        The file can't be read, or has faults; an unknown key is reported with its line and the nearest known key.
    """
    from ..yaml_text import YamlFault, load_yaml

    where, twice = f"site file {plain_text(str(path))}", list[Fault]()
    try:
        read = load_yaml(read_text_file(path), twice)
    except SpecInvalid as error:
        (fault,) = error.faults
        if fault.code is YamlFault.NOT_YAML:
            fault = replace(fault, values={**fault.values, "problem": "expected 'key: value'"})
        raise SpecInvalid(fault.in_file(where)) from None
    except (OSError, ValueError) as error:  # a name with NUL or half of a character is a ValueError
        raise SpecInvalid(Fault(where, SiteFault.UNREADABLE, {"error": why_unreadable(error)})) from None
    document = {} if read.value is None else read.value
    if not isinstance(document, Mapping):
        raise SpecInvalid(Fault(where, SiteFault.NO_SETTINGS))
    faults = [replace(fault, values={**fault.values, "key": _Unshown()}) for fault in twice]
    try:
        site = read_part(Site)(document)
    except SpecInvalid as error:
        faults += [_without_content(fault, read.lines) for fault in error.faults]
    check_faults(fault.in_file(where) for fault in faults)
    return site


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

    kind: kinds.Kind = next(one.metadata["option"].kind for one in fields(Site) if one.name == name)
    if kind.word == "text" or kind.choices:
        return text
    try:
        value = load_yaml(text).value
    except SpecInvalid:
        return text  # the reader of the setting names the fault
    return value.split(",") if kind is kinds.TEXTS and isinstance(value, str) else value


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
    files = (Path(home, "tf_yarn_ops", "site.yaml"), Path("/etc/tf_yarn_ops/site.yaml"))
    return next(filter(os.path.isfile, files), None)  # Path.is_file raises where no file can have such a name

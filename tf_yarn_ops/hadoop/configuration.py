"""Hadoop's configuration as a plain mapping: from ``*-site.xml`` files or a daemon's ``/conf``.

Input: files or JSON. Output: a `Configuration`, which returns for example the HTTP addresses of the NameNodes and
the target of a viewfs mount.
"""

import getpass
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from ..runtime.common.contract import EVERYBODY, ViewersPlan
from ..runtime.common.values import read_file

_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$ ]+)\}")
#: Hadoop too gives up after this number of substitutions in one value.
_DEPTH = 20
#: The ResourceManager's default port for Hadoop's own clients.
CLIENT_PORT = 8032
#: Hadoop's default of yarn.application.classpath for clients of any platform.
CROSS_PLATFORM_CLASSPATH = (
    "{{HADOOP_CONF_DIR}}",
    "{{HADOOP_COMMON_HOME}}/share/hadoop/common/*",
    "{{HADOOP_COMMON_HOME}}/share/hadoop/common/lib/*",
    "{{HADOOP_HDFS_HOME}}/share/hadoop/hdfs/*",
    "{{HADOOP_HDFS_HOME}}/share/hadoop/hdfs/lib/*",
    "{{HADOOP_YARN_HOME}}/share/hadoop/yarn/*",
    "{{HADOOP_YARN_HOME}}/share/hadoop/yarn/lib/*",
)


def read_configuration_file(path: Path) -> dict[str, str]:
    """Return the names and values of a file of Hadoop's configuration; raise ValueError for a broken file."""
    try:
        root = ElementTree.fromstring(read_file(path))
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two for an encoding
        raise ValueError(f"{path} is not XML: {error}") from error
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): value for name, value in pairs if name and value is not None}


class Configuration:
    """The names and values of a Hadoop configuration; ``${...}`` is substituted when a value is read.

    Parameters
    ----------
    values : mapping of str to str
        The values as the files have them, before substitution.
    environ : mapping of str to str, optional
        For ``${env.NAME}``. Default: empty.
    """

    def __init__(self, values: Mapping[str, str], environ: Mapping[str, str] | None = None):
        self._values = dict(values)
        self._environ = dict(environ or {})

    @classmethod
    def from_directory(cls, directory: str | Path, environ: Mapping[str, str] | None = None) -> "Configuration":
        """Read the ``*-site.xml`` files of a HADOOP_CONF_DIR; raise ValueError for a broken file."""
        values: dict[str, str] = {}
        for path in (Path(directory) / name for name in _FILES):
            if path.is_file():
                values |= read_configuration_file(path)
        return cls(values, environ)

    @classmethod
    def from_conf(cls, document: Any) -> "Configuration":
        """Read the JSON of a daemon's ``/conf``; raise ValueError for any other document."""
        try:
            pairs = [(str(item["key"]), item.get("value")) for item in document["properties"]]
            return cls({name: str(value) for name, value in pairs if value is not None})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("not the JSON of Hadoop's /conf") from error

    def names(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        return sorted(name for name in self._values if name.startswith(prefix))

    def get(self, name: str, default: str = "") -> str:
        """Return a value with its variables substituted, trimmed; ``default`` when it is unset or empty."""
        value = self._values.get(name, "")
        for _ in range(_DEPTH):
            match = _VARIABLE.search(value)
            if match is None or (found := self._variable(match[1])) is None:
                break
            value = value[: match.start()] + found + value[match.end() :]
        return value.strip() or default

    def _variable(self, name: str) -> str | None:
        if name.startswith("env."):
            variable, _, default = name[4:].partition(":-" if ":-" in name else "-")
            return self._environ.get(variable) or default or None
        if name == "user.name":
            return self._environ.get("HADOOP_USER_NAME") or system_user()
        return self._values.get(name)

    def list(self, name: str) -> tuple[str, ...]:
        """Return the parts of a value that is separated by commas."""
        return _parts(self.get(name))

    def resourcemanagers(self) -> tuple[str, ...]:
        """Return the HTTP addresses of the ResourceManagers; empty when none is configured.

        References
        ----------
        Hadoop, ``yarn-default.xml``: ``yarn.resourcemanager.webapp.address[.<rm-id>]``.
        """
        scheme = self._yarn_scheme()
        key, port = ("webapp.https.address", 8090) if scheme == "https" else ("webapp.address", 8088)
        addresses = []
        for suffix in [f".{rm}" for rm in self.list("yarn.resourcemanager.ha.rm-ids")] or [""]:
            host = self.get(f"yarn.resourcemanager.hostname{suffix}")
            if address := self.get(f"yarn.resourcemanager.{key}{suffix}") or (f"{host}:{port}" if host else ""):
                addresses.append(f"{scheme}://{_with_host(address, host) if host else address}")
        return tuple(addresses)

    def _yarn_scheme(self) -> str:
        return "https" if self.get("yarn.http.policy") == "HTTPS_ONLY" else "http"

    def proxies(self) -> tuple[str, ...]:
        """Return the HTTP addresses to which the tracking URLs of applications lead.

        References
        ----------
        Hadoop, ``WebAppUtils.getProxyHostAndPort``: ``yarn.web-proxy.address``, else the ResourceManager's own.
        """
        address = self.get("yarn.web-proxy.address")
        return (f"{self._yarn_scheme()}://{address}",) if address else self.resourcemanagers()

    def resourcemanager_services(self, known_as: str) -> tuple[str, ...]:
        """Return ``host:port`` of each ResourceManager for Hadoop's own clients; empty when it is not configured.

        Parameters
        ----------
        known_as : str
            The host to name where the configuration says 0.0.0.0.

        References
        ----------
        Hadoop, ``ClientRMProxy.getRMDelegationTokenService``: a token for two ResourceManagers names both.
        """
        found = []
        for suffix in [f".{rm}" for rm in self.list("yarn.resourcemanager.ha.rm-ids")] or [""]:
            host = self.get(f"yarn.resourcemanager.hostname{suffix}")
            if address := self.get(f"yarn.resourcemanager.address{suffix}") or host:
                name, _, port = address.partition(":")
                found.append(f"{_with_host(f'{name}:{port or CLIENT_PORT}', known_as)}".lower())
        return tuple(found)

    def renewer(self, known_as: str) -> str:
        """Return the principal that renews the tokens of applications: the ResourceManager's; empty if not configured.

        Parameters
        ----------
        known_as : str
            As in `resourcemanager_services`.

        References
        ----------
        Hadoop, ``YarnClientUtils.getRmPrincipal``: ``_HOST`` stands for the ResourceManager's host, in lower case.
        """
        host = (self.resourcemanager_services(known_as) or (known_as,))[0].partition(":")[0]
        return self.get("yarn.resourcemanager.principal").replace("_HOST", host.lower())

    def administrators(self) -> ViewersPlan:
        """Return the users and groups that may view every application, and the groups of users that are configured.

        Hadoop's default, which makes everybody an administrator, names nobody.

        References
        ----------
        Hadoop, ``AccessControlList``: users, a blank, groups; core-default.xml, ``hadoop.user.group.static.mapping``.
        """
        value = self._values.get("yarn.admin.acl", "")
        users, _, groups = ("" if value.strip() == EVERYBODY else value).partition(" ")
        static = (part.partition("=") for part in self.get("hadoop.user.group.static.mapping.overrides").split(";"))
        memberships = {user.strip(): _parts(names) for user, _, names in static if user.strip()}
        return ViewersPlan(_parts(users), _parts(groups), memberships)

    def nameservices(self) -> dict[str, tuple[str, ...]]:
        """Return the HTTP addresses of the NameNodes by the name of each high-available pair.

        References
        ----------
        Hadoop, ``HAUtilClient.isLogicalUri``: a name is logical if it has a ``dfs.client.failover.proxy.provider``.
        """
        return {
            name: self.namenodes(f"hdfs://{name}")
            for name in self.list("dfs.nameservices")
            if self.get(f"dfs.client.failover.proxy.provider.{name}") or self.list(f"dfs.ha.namenodes.{name}")[1:]
        }

    def namenodes(self, filesystem: str) -> tuple[str, ...]:
        """Return the HTTP addresses of the NameNodes of an ``hdfs://`` file system.

        Returns
        -------
        tuple of str
            Every NameNode of a high-available pair; empty if the configuration does not name them.

        References
        ----------
        Hadoop, ``hdfs-default.xml``: ``dfs.namenode.http-address[.<nameservice>[.<namenode>]]``.
        """
        authority = urlsplit(filesystem).netloc
        scheme = "https" if self.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
        key = f"dfs.namenode.{scheme}-address"
        names = [key]
        if authority in self.list("dfs.nameservices"):
            pair = [f"{key}.{authority}.{nn}" for nn in self.list(f"dfs.ha.namenodes.{authority}")]
            names = pair or [f"{key}.{authority}", key]
        host = urlsplit(filesystem).hostname or ""
        found = [address for name in names if (address := self.get(name))]
        if len(names) == 1 and not found and ":" in authority:
            found = [f"0.0.0.0:{9871 if scheme == 'https' else 9870}"]
        return tuple(f"{scheme}://{_with_host(address, host)}" for address in found)

    def mounted(self, filesystem: str, path: str) -> str:
        """Return the URL behind a path of a ``viewfs://`` file system; empty when it is not mounted.

        References
        ----------
        Hadoop, ViewFs guide: ``fs.viewfs.mounttable.<table>.link.<path>`` and ``.linkMergeSlash``.
        """
        prefix = f"fs.viewfs.mounttable.{urlsplit(filesystem).netloc or 'default'}."
        if merged := self.get(f"{prefix}linkMergeSlash"):
            return merged.rstrip("/") + path
        for name in sorted(self.names(f"{prefix}link."), key=len, reverse=True):
            mount = name[len(prefix) + len("link.") :].rstrip("/")
            if path == mount or path.startswith(f"{mount}/"):
                return self.get(name).rstrip("/") + path[len(mount) :]
        return ""


def system_user() -> str:
    """Return the user of this process as the operating system knows it; LOGNAME and USER can be set to any name.

    A user id without a name, as in a container with a user of its own, is the name in LOGNAME or USER, else its number.
    """
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # ImportError on Windows
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # OSError since Python 3.13
            return str(os.getuid())


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _with_host(address: str, host: str) -> str:
    """Return an address with a host in place of the one that stands for all, or that is missing before the port."""
    name, colon, port = address.rpartition(":")
    return f"{host}:{port}" if colon and name in ("0.0.0.0", "") else address

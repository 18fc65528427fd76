"""Ask the daemons for the state of the cluster, and make the first folders in HDFS, over HTTP."""

import http.client
import json
import urllib.error
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MiniClusterError
from . import daemons
from .configuration import Settings, node_names
from .kerberos import USERS
from .web import open_page

_ASK_SECONDS, _TELL_SECONDS = 5.0, 30.0


@dataclass(frozen=True)
class DaemonStatus:
    """The present state of one daemon.

    Attributes
    ----------
    name, title : str
        Its name, and Hadoop's name for it.
    pid : int or None
        None if it does not run.
    active : bool or None
        Whether it is the active one of a pair; None if it is not one of a pair.
    """

    name: str
    title: str
    pid: int | None
    active: bool | None = None


@dataclass(frozen=True)
class ClusterStatus:
    """The present state of a cluster.

    Attributes
    ----------
    directory : Path
        Its folder.
    daemons : tuple of DaemonStatus
        Its daemons in the order of their start; empty if none was ever started.
    active_nodes : int
        Number of NodeManagers that are active for the ResourceManager.
    ready : bool
        Whether every daemon runs, every node is active, and HDFS, if any, accepts files.
    """

    directory: Path
    daemons: tuple[DaemonStatus, ...]
    active_nodes: int
    ready: bool


def ask_status(settings: Settings) -> ClusterStatus:
    """Return the state of every daemon, and whether the cluster is ready."""
    pairs = (*settings.resourcemanagers, *settings.namenodes) if settings.ha else ()
    active = {find_active(settings, pair) for pair in (settings.resourcemanagers, settings.namenodes)} if pairs else ()
    rows = tuple(
        DaemonStatus(daemon.name, daemon.title, daemons.find(settings.directory, daemon.name),
                     daemon.name in active if daemon.name in pairs else None)
        for daemon in daemons.list_daemons(settings)
    )  # fmt: skip
    ready = all(row.pid for row in rows) and describe_missing(settings) is None
    return ClusterStatus(settings.directory, rows, count_active_nodes(settings) or 0, ready)


def describe_missing(settings: Settings) -> str | None:
    """Return the part that the cluster still lacks to be ready, as text; None if it is ready."""
    for name in settings.resourcemanagers if settings.ha else ():
        if _ask_role(settings, name) is None:
            return f"the answer of {name}"
    active = count_active_nodes(settings)
    if active is None:
        return "an active ResourceManager" if settings.ha else "the ResourceManager's answer"
    if active < settings.nodes:
        sick = "".join(f" ({report})" for report in _list_unhealthy_nodes(settings))
        return f"{settings.nodes - active} of {settings.nodes} active nodes{sick}"
    silent = [name for name in node_names(settings.nodes) if not answers(settings, settings.web_address(name))]
    if silent:
        return f"the answer of {', '.join(silent)}"
    if settings.ha and not settings.light and find_active(settings, settings.namenodes) is None:
        return "an active NameNode"
    if not all(has_left_safe_mode(settings, name) for name in settings.namenodes):
        return "HDFS out of safe mode with a DataNode"
    return None


def find_active(settings: Settings, names: Sequence[str]) -> str | None:
    """Return the active one of the ResourceManagers or NameNodes; None if there is none. A single one is active."""
    if len(names) < 2:
        return next(iter(names), None)
    return next((name for name in names if _ask_role(settings, name) == "active"), None)


def active_page(settings: Settings, names: Sequence[str]) -> str:
    """Return the URL of the active one's pages, or of the first one's if none is active."""
    return settings.web_address(find_active(settings, names) or names[0])


def answers(settings: Settings, url: str) -> bool:
    """Return whether a daemon answers at this URL, with any HTTP status."""
    try:
        open_page(settings, url, _ASK_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False
    return True


def count_active_nodes(settings: Settings) -> int | None:
    """Return the number of active NodeManagers, or None if the ResourceManager does not answer."""
    metrics = _get(settings, f"{active_page(settings, settings.resourcemanagers)}/ws/v1/cluster/metrics")
    return None if metrics is None else int(metrics["clusterMetrics"]["activeNodes"])


def list_nodes(settings: Settings, state: str) -> list[dict[str, Any]]:
    """Return the NodeManagers in a state (``RUNNING``, ``UNHEALTHY``) as the ResourceManager describes them."""
    page = active_page(settings, settings.resourcemanagers)
    answer = _get(settings, f"{page}/ws/v1/cluster/nodes?states={state}") or {}
    return list((answer.get("nodes") or {}).get("node", []))


def make_folders(settings: Settings) -> None:
    """Make the folders that jobs need in HDFS: the users' homes and the shared ones.

    Raises
    ------
    MiniClusterError
        The NameNode refused; the message has its answer.
    """
    rights = {"/user": "755", "/tmp": "1777", "/tmp/logs": "1777"}
    homes = dict.fromkeys(USERS, "700") if settings.kerberos else {settings.user: "755"}
    rights |= {f"/user/{user}": permission for user, permission in homes.items()}
    for path, permission in rights.items():
        # MKDIRS does not change the permissions of an existing folder.
        for operation in ("MKDIRS", "SETPERMISSION"):
            _put(settings, path, {"op": operation, "permission": permission, "user.name": settings.superuser})
    if settings.kerberos:
        for user in homes:
            _put(settings, f"/user/{user}", {"op": "SETOWNER", "owner": user})


def _list_unhealthy_nodes(settings: Settings) -> tuple[str, ...]:
    return tuple(f"{node['id']}: {node['healthReport']}" for node in list_nodes(settings, "UNHEALTHY"))


def _ask_role(settings: Settings, name: str) -> str | None:
    """Return ``active``, ``standby`` or ``initializing`` for one of a pair; None if it does not answer."""
    page = settings.web_address(name)
    if name in settings.namenodes:
        beans = _ask_namenode(settings, name, "NameNodeStatus")
        return str(beans[0]["State"]) if beans else None
    info = (_get(settings, f"{page}/ws/v1/cluster/info") or {}).get("clusterInfo", {})
    return str(info["haState"]).lower() if "haState" in info else None


def _ask_namenode(settings: Settings, name: str, bean: str) -> list[dict[str, Any]]:
    answer = _get(settings, f"{settings.web_address(name)}/jmx?qry=Hadoop:service=NameNode,name={bean}")
    return list((answer or {}).get("beans", []))


def has_left_safe_mode(settings: Settings, name: str) -> bool:
    """Return whether a NameNode, once it is active, takes writes: it knows the blocks of a DataNode."""
    beans = _ask_namenode(settings, name, "FSNamesystemState")
    return any(bean["FSState"] == "Operational" and bean["NumLiveDataNodes"] > 0 for bean in beans)


def _get(settings: Settings, url: str) -> dict[str, Any] | None:
    try:
        with open_page(settings, url, _ASK_SECONDS) as answer:
            parsed = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _put(settings: Settings, path: str, query: Mapping[str, str]) -> None:
    page = active_page(settings, settings.namenodes)
    url = f"{page}/webhdfs/v1{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"
    try:
        open_page(settings, url, _TELL_SECONDS, "PUT").close()
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode("utf-8", "replace")
        raise MiniClusterError(f"HDFS refused {query['op']} {path}: {said}") from error
    except (OSError, http.client.HTTPException) as error:
        raise MiniClusterError(f"HDFS did not answer {query['op']} {path}: {error}") from error

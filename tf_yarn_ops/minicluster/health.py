"""Ask the daemons for the state of the cluster, and make the first folders in HDFS, over HTTP."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from ..errors import MiniClusterError
from .daemon_settings import Settings, node_names

_ASK_SECONDS, _TELL_SECONDS = 5.0, 30.0


@dataclass(frozen=True)
class ClusterStatus:
    """The present state of a cluster.

    Attributes
    ----------
    daemons : mapping of str to int or None
        The names of its daemons in the order of their start to their pids, None for one that does not run; empty if
        none was ever started.
    active_nodes : int
        Number of NodeManagers that are active for the ResourceManager.
    ready : bool
        Whether every daemon runs, every node is active, and HDFS, if any, accepts files.
    """

    daemons: Mapping[str, int | None]
    active_nodes: int
    ready: bool


def describe_missing(settings: Settings) -> str | None:
    """Return the part that the cluster still lacks to be ready, as text; None if it is ready."""
    if (active := count_active_nodes(settings)) is None:
        return "the ResourceManager's answer"
    if active < settings.nodes:
        sick = "".join(f" ({node['id']}: {node['healthReport']})" for node in list_nodes(settings, "UNHEALTHY"))
        return f"{settings.nodes - active} of {settings.nodes} active nodes{sick}"
    silent = [name for name in node_names(settings.nodes) if not answers(settings, settings.web_address(name))]
    if silent:
        return f"the answer of {', '.join(silent)}"
    if not all(has_left_safe_mode(settings, name) for name in settings.namenodes):
        return "HDFS out of safe mode with a DataNode"
    return None


def open_page(
    settings: Settings, url: str, seconds: float, method: str = "GET", body: bytes | None = None
) -> HTTPResponse:
    """Send a request to a daemon, with JSON as its body, and return the open answer.

    Raises
    ------
    urllib.error.HTTPError
        The daemon answered with an error.
    OSError, http.client.HTTPException
        It did not answer.
    """
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body else {})}
    return settings.send(urllib.request.Request(url, body, headers, method=method), seconds)


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
    metrics = _get_cluster(settings, "metrics")
    return None if metrics is None else int(metrics["clusterMetrics"]["activeNodes"])


def list_nodes(settings: Settings, state: str) -> list[dict[str, Any]]:
    """Return the NodeManagers in a state (``RUNNING``, ``UNHEALTHY``) as the ResourceManager describes them."""
    answer = _get_cluster(settings, f"nodes?states={state}") or {}
    return list((answer.get("nodes") or {}).get("node", []))


def _get_cluster(settings: Settings, path: str) -> dict[str, Any] | None:
    """Return the JSON object of a path of the ResourceManager's REST interface; None if there is none."""
    return get_json(settings, f"{settings.active_page(settings.resourcemanagers)}/ws/v1/cluster/{path}")


def make_folders(settings: Settings) -> None:
    """Make the folders that jobs need in HDFS: the users' homes and the shared ones.

    Raises
    ------
    MiniClusterError
        The NameNode refused; the message has its answer.
    """
    for name, permission in settings.folders.items():
        # MKDIRS does not change the permissions of an existing folder.
        for operation in ("MKDIRS", "SETPERMISSION"):
            put(settings, f"/{name}", {"op": operation, "permission": permission, "user.name": settings.superuser})


def query_namenode(settings: Settings, name: str, bean: str) -> list[dict[str, Any]]:
    """Return what a NameNode measures under a name; nothing if it does not answer."""
    url = f"{settings.web_address(name)}/jmx?qry=Hadoop:service=NameNode,name={bean}"
    return list((get_json(settings, url) or {}).get("beans", []))


def has_left_safe_mode(settings: Settings, name: str) -> bool:
    """Return whether a NameNode, once it is active, takes writes: it knows the blocks of a DataNode."""
    return any(
        bean["FSState"] == "Operational" and bean["NumLiveDataNodes"] > 0
        for bean in query_namenode(settings, name, "FSNamesystemState")
    )


def get_json(settings: Settings, url: str) -> dict[str, Any] | None:
    """Return the JSON object of a page; None if there is none."""
    try:
        with open_page(settings, url, _ASK_SECONDS) as answer:
            parsed = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None


def put(settings: Settings, path: str, query: Mapping[str, str]) -> None:
    """Send a WebHDFS operation without a body.

    Raises
    ------
    MiniClusterError
        The NameNode refused or did not answer.
    """
    page = settings.active_page(settings.namenodes)
    url = f"{page}/webhdfs/v1{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"
    try:
        open_page(settings, url, _TELL_SECONDS, "PUT").close()
    except urllib.error.HTTPError as error:
        raise MiniClusterError(
            f"HDFS refused {query['op']} {path}: {error.read(2000).decode('utf-8', 'replace')}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise MiniClusterError(f"HDFS did not answer {query['op']} {path}: {error}") from error

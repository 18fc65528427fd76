"""Ask the daemons over HTTP how they are, and lay HDFS's first folders."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from ..errors import MiniClusterError

_SECONDS = 10.0
#: Daemons are on this machine; a proxy from the environment has no business here.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def count_active_nodes(resourcemanager_url: str) -> int | None:
    """Give the number of active NodeManagers, or None while the ResourceManager does not answer."""
    metrics = _get(f"{resourcemanager_url}/ws/v1/cluster/metrics")
    return None if metrics is None else int(metrics["clusterMetrics"]["activeNodes"])


def list_unhealthy_nodes(resourcemanager_url: str) -> tuple[str, ...]:
    """Give what each unhealthy NodeManager says of itself."""
    answer = _get(f"{resourcemanager_url}/ws/v1/cluster/nodes?states=UNHEALTHY") or {}
    nodes = (answer.get("nodes") or {}).get("node", [])
    return tuple(f"{node['id']}: {node['healthReport']}" for node in nodes)


def has_left_safe_mode(namenode_url: str) -> bool:
    """Tell whether HDFS takes files: the NameNode is out of safe mode and has a DataNode."""
    answer = _get(f"{namenode_url}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
    beans = (answer or {}).get("beans", [])
    return any(bean["FSState"] == "Operational" and bean["NumLiveDataNodes"] > 0 for bean in beans)


def answers(url: str) -> bool:
    """Tell whether something serves HTTP there, whatever it says."""
    try:
        _OPENER.open(url, timeout=_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False
    return True


def make_folder(namenode_url: str, user: str, path: str, permission: str) -> None:
    """Make a folder in HDFS with exactly these rights.

    Raises
    ------
    MiniClusterError
        The NameNode refused; the message has its answer.
    """
    _put(namenode_url, path, {"op": "MKDIRS", "permission": permission, "user.name": user})
    # MKDIRS leaves a folder that exists as it is.
    _put(namenode_url, path, {"op": "SETPERMISSION", "permission": permission, "user.name": user})


def _get(url: str) -> dict[str, Any] | None:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            parsed = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _put(namenode_url: str, path: str, query: Mapping[str, str]) -> None:
    url = f"{namenode_url}/webhdfs/v1{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"
    try:
        _OPENER.open(urllib.request.Request(url, method="PUT"), timeout=_SECONDS).close()
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode("utf-8", "replace")
        raise MiniClusterError(f"HDFS refused {query['op']} {path}: {said}") from error
    except (OSError, http.client.HTTPException) as error:
        raise MiniClusterError(f"HDFS did not answer {query['op']} {path}: {error}") from error

"""YARN node labels: read them from a command line, check them, and send them to the ResourceManager.

The ResourceManager keeps them in its own store, so they survive its restart.
"""

import http.client
import json
import re
import urllib.error
from collections.abc import Mapping, Sequence
from typing import Any

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster.daemon_settings import node_names
from tf_yarn_ops.minicluster.health import list_nodes, open_page

from .settings import HadoopSettings

_SECONDS = 30.0
#: YARN's rule (CommonNodeLabelsManager).
_LABEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,254}")


def read_labels(words: Sequence[str]) -> dict[str, str]:
    """Return the labels by node of words such as ``nm2=gpu``.

    Raises
    ------
    MiniClusterError
        A word has no ``=``, or a node has two labels.
    """
    pairs = [word.partition("=") for word in words]
    wrong = [f"{node!r}" for node, mark, _ in pairs if not mark]
    if wrong:
        raise MiniClusterError(f"a label is written as NODE=LABEL, such as nm2=gpu, not as {', '.join(wrong)}")
    labels = {node.strip(): label.strip() for node, _, label in pairs}
    if len(labels) < len(pairs):
        raise MiniClusterError(f"a node has at most one label in YARN; given: {', '.join(words)}")
    return labels


def check_labels(labels: Mapping[str, str], nodes: int) -> None:
    """Refuse labels that YARN does not accept, and labels of unknown nodes.

    Raises
    ------
    MiniClusterError
        The message lists every fault.
    """
    known = node_names(nodes)
    faults = [f"there is no node {node!r}, only {', '.join(known)}" for node in labels if node not in known]
    faults += [
        f"{label!r} cannot be a node label: use letters, digits, - and _"
        for label in labels.values()
        if not _LABEL.fullmatch(label)
    ]
    if faults:
        raise MiniClusterError("; ".join(faults))


def put_labels(settings: HadoopSettings) -> None:
    """Set the label of every node, and remove its other labels; an empty label is none.

    Do nothing in a cluster without labels.

    Raises
    ------
    MiniClusterError
        The ResourceManager refused; the message has its answer.
    """
    if not settings.labels:
        return
    if names := sorted(filter(None, set(settings.labels.values()))):
        _post(settings, "add-node-labels", {"nodeLabelInfo": [{"name": name, "exclusivity": True} for name in names]})
    ids = {int(node["id"].rpartition(":")[2]): node["id"] for node in list_nodes(settings, "RUNNING")}
    for name in node_names(settings.nodes):
        label = settings.labels.get(name, "")
        if settings.ports[name] not in ids:
            raise MiniClusterError(f"{name} left the cluster before it had its label; see {settings.logs}")
        _post(settings, f"nodes/{ids[settings.ports[name]]}/replace-labels?labels={label}", {})


def _post(settings: HadoopSettings, path: str, body: Mapping[str, Any]) -> None:
    mark = "&" if "?" in path else "?"
    url = f"{settings.active_page(settings.resourcemanagers)}/ws/v1/cluster/{path}{mark}user.name={settings.user}"
    try:
        open_page(settings, url, _SECONDS, "POST", json.dumps(body).encode()).close()
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode("utf-8", "replace")
        raise MiniClusterError(f"the ResourceManager refused {path}: {said}") from error
    except (OSError, http.client.HTTPException) as error:
        raise MiniClusterError(f"the ResourceManager did not answer {path}: {error}") from error

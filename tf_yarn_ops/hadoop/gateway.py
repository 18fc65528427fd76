"""Addresses of a ResourceManager behind a gateway: its REST interface, pages and node logs have other paths there.

Input: the configured address and a path of YARN. Output: the URL at the gateway. An address without a path is a
ResourceManager's own.

References
----------
Apache Knox, the service definitions ``yarn-rm`` and ``yarnui``: the service RESOURCEMANAGER serves ``/ws/v1`` of the
ResourceManager at ``<topology>/resourcemanager/v1`` and empties the addresses in its answers; the service YARNUI
serves ``/ws/v1``, ``/conf``, ``/proxy`` and the NodeManagers' log pages below ``<topology>/yarn``. In JSON it replaces
each string of one line that looks like a path or an address of YARN, such as ``/logs/digits``, by one of its own.
"""

import html
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ..runtime.common.local_job import SCHEME
from ..runtime.common.web_address import safe_url

#: Knox's services, as the last part of an address.
_REST, _PAGES = "/resourcemanager", "/yarn"
#: The NodeManagers' pages below the address of a gateway, and the logs there.
_NODES, _LOGS = "/nodemanager", "/node/containerlogs/"
#: What to do about a gateway that asks the standby of two ResourceManagers.
ADVICE = (
    "Let the gateway ask the active ResourceManager for every path (Knox: an HaProvider for YARNUI and "
    "RESOURCEMANAGER), or give each ResourceManager a path and name both: resourcemanager: [https://gateway/rm1, https://gateway/rm2]"
)
#: The begin of a tag or of a character's name at the end of a chunk, which the next one goes on with.
_CUT, _LONGEST_NAME = re.compile(r"[<&][^;>]*\Z"), 40
#: A number that is no character, and perhaps longer than Python reads.
_NO_CHARACTER = re.compile(r"&#\w{9,};?")


def is_gateway(address: str) -> bool:
    """Return whether an address has a path, so that a gateway serves it."""
    return bool(urlsplit(address).path) and not address.startswith(SCHEME)


def place(address: str, path: str) -> str:
    """Return the URL of a ResourceManager's path, such as ``/ws/v1/cluster/info`` or ``/conf``.

    Parameters
    ----------
    address : str
        The configured address, without a slash at the end.
    path : str
    """
    if address.endswith(_REST):
        return address + path.removeprefix("/ws") if path.startswith("/ws/") else f"{pages(address)}{path}"
    return address + path


def topology(address: str) -> str | None:
    """Return the address of a Knox topology, ``https://host:8443/gateway/default``; None for any other address."""
    return next((address.removesuffix(service) for service in (_REST, _PAGES) if address.endswith(service)), None)


def tracking_page(address: str, application_id: str) -> str:
    """Return the URL at which an application's own pages are shown; empty for one of this machine."""
    return "" if address.startswith(SCHEME) else f"{pages(address)}/proxy/{application_id}/"


def from_outside(application: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return YARN's ``app`` object with URLs that lead through the gateway, not into the cluster."""
    found = dict(application)
    if is_gateway(address) and found.get("trackingUrl"):
        found["trackingUrl"] = tracking_page(address, str(found["id"]))
    if is_gateway(address) and found.get("amContainerLogs") and found.get("amHostHttpAddress"):
        link = str(found["amContainerLogs"])
        if node := safe_url(f"{urlsplit(node_of(link)).scheme}://{found['amHostHttpAddress']}"):
            found["amContainerLogs"] = log_page(address, node, _log_path(link))
    return found


def node_of(link: str) -> str:
    """Return the NodeManager's own address, ``http://host:8042``, of the URL of a log page, its own or a gateway's.

    Empty if there is none that `safe_url` lets pass: a report of others may name the page.
    """
    if not safe_url(link):
        return ""
    split = urlsplit(link)
    where = dict(parse_qsl(split.query))
    if {"scheme", "host", "port"} <= set(where):
        split = urlsplit(safe_url(f"{where['scheme']}://{where['host']}:{where['port']}"))
    return f"{split.scheme}://{split.netloc}" if split.netloc else ""


def log_link(link: str, master_link: str) -> str:
    """Return the URL of a task's log page as it can be opened where that of the application master can.

    Parameters
    ----------
    link : str
        The page on its node; the coordinator does not know for sure the scheme of NodeManagers.
    master_link : str
        YARN's ``amContainerLogs``, after `from_outside`; empty if it is not known.

    Returns
    -------
    str
        Empty if the link names no node.
    """
    scheme, own = urlsplit(node_of(master_link)).scheme, node_of(link)
    if not scheme:
        return link
    if not own:
        return ""
    node = urlsplit(own)._replace(scheme=scheme).geturl()
    gateway, through, _ = master_link.partition(_NODES)
    return log_page(gateway, node, _log_path(link)) if through else f"{node}{urlsplit(link).path}"


def _log_path(link: str) -> str:
    return urlsplit(link).path.partition(_LOGS)[2]


def log_page(address: str, node: str, path: str, start: int = 0) -> str:
    """Return the URL of a container's log page.

    Parameters
    ----------
    address : str
        The configured address of the ResourceManager.
    node : str
        The NodeManager's own address, ``http://host:8042``.
    path : str
        ``container/user/file``.
    start : int, optional
        First byte of the log. Default 0.
    """
    split = urlsplit(node)
    where = {"scheme": split.scheme, "host": split.hostname or "", "port": str(split.port or "")}
    return f"{pages(address)}{_NODES}{_LOGS}{path}?{urlencode({'start': str(start), **where})}"


def read_log_page(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the log in a NodeManager's page piece by piece, as the page comes; nothing if it has none."""
    decoder = getincrementaldecoder("utf-8")("replace")
    held, within = "", False
    for chunk in chain(chunks, [b""]):
        held += decoder.decode(chunk, not chunk)
        place = 0
        while (found := held.find(tag := "</pre>" if within else "<pre>", place)) >= 0:
            if within:
                yield unescape_page(held[place:found]).encode()
            within, place = not within, found + len(tag)
        cut = _CUT.search(held, max(place, len(held) - _LONGEST_NAME)) if chunk else None
        end = cut.start() if cut else len(held)
        if within and (place < end or not chunk):
            yield unescape_page(held[place:end]).encode()
        held = held[end:]


def unescape_page(text: str) -> str:
    """Return the text of HTML without tags, with its characters in place of their names and numbers."""
    return html.unescape(_NO_CHARACTER.sub("", text))


def pages(address: str) -> str:
    """Return the URL below which the ResourceManager's pages ``/cluster`` and ``/proxy`` are."""
    known = topology(address)
    return address if known is None else known + _PAGES

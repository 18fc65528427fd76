"""One HTTP request to one of several ResourceManagers: fail-over, back-off, deadlines, errors.

What decides (`Failover`, `check`) is free of any client: `send` here is the loop around it for the
blocking one, and the watcher has the same loop for its asynchronous one.
"""

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ApplicationNotFound, ClusterUnreachable, SubmissionRejected
from .spnego import wants_negotiation

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: Seconds for a connection; a host that is there answers at once.
CONNECT_TIMEOUT = 3.0
#: Seconds for which one call tries all addresses again before it gives up.
PATIENCE = 5.0
MAX_HOPS = 4
HEADERS = {"X-XSRF-HEADER": "tf_yarn_ops", "Accept": "application/json"}

_STANDBY = re.compile(r"standby RM|Can not find any active RM|StandbyException|RetriableException", re.IGNORECASE)
_EXCEPTION_NAMES = re.compile(r"(?:[\w.$]+(?:Exception|Error): )+")


class RestUnavailable(SubmissionRejected):
    """The way over HTTP is closed on this cluster; Skein's Java client may have another."""


class OddAnswer(ClusterUnreachable):
    """What answers does not answer as YARN does."""


class KerberosDemanded(RestUnavailable):
    """An address wants a Kerberos ticket, and was not shown one."""


class Addresses:
    """The addresses of a service, the one that answered last first.

    Parameters
    ----------
    urls : iterable of str
        ``http://host:port``, at least one.
    """

    def __init__(self, urls: Iterable[str]):
        self.urls = [url.rstrip("/") for url in urls]
        self._lock = threading.Lock()

    def current(self) -> str:
        """Give the address to ask now."""
        return self.urls[0]

    def prefer(self, url: str) -> None:
        """Put an address first, a new one as well: the standby knows who is active."""
        with self._lock:
            self.urls = [url, *(known for known in self.urls if known != url)]

    def move_on(self, url: str) -> None:
        """Put an address that failed last, unless somebody else has done so."""
        with self._lock:
            if self.urls[0] == url:
                self.urls = [*self.urls[1:], url]

    def __str__(self) -> str:
        return ", ".join(self.urls)


class Failover:
    """The tries of one call.

    Parameters
    ----------
    addresses : Addresses
    patience : float, optional
        Seconds, counted from the start, after which a failure is final.
    clock : callable, optional
        Monotonic seconds.
    """

    def __init__(self, addresses: Addresses, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic):
        self._addresses = addresses
        self._give_up = clock() + patience
        self._clock = clock
        self._tries = 0
        self._hops = 0
        self.address = addresses.current()

    def failed(self, why: str) -> float:
        """Take a failure; give the seconds to wait before the next try.

        Raises
        ------
        ClusterUnreachable
            When every address was tried and the patience is over.
        """
        self._tries += 1
        if self._tries >= len(self._addresses.urls) and self._clock() >= self._give_up:
            raise ClusterUnreachable(
                f"no ResourceManager answers at {self._addresses}: {why}. Check the address "
                f"(--resourcemanager, $YTF_RESOURCEMANAGER or site.yaml) and that the ResourceManager runs")
        self._addresses.move_on(self.address)
        self.address = self._addresses.current()
        rounds = self._tries // max(1, len(self._addresses.urls))
        delay = min(2.0, 0.1 * 2.0**rounds) * random.uniform(0.5, 1.0) if rounds else 0.0
        return min(delay, max(0.0, self._give_up - self._clock()))

    def answered(self, response: "httpx.Response") -> float | None:
        """Take an answer; None when it is one, else the seconds to wait before the next try."""
        if response.status_code in (302, 307, 308) and response.headers.get("location"):
            target = urlsplit(response.headers["location"])
            self._hops += 1
            if self._hops > MAX_HOPS or not target.netloc:
                return self.failed(f"{self.address} redirects in a circle")
            self.address = f"{target.scheme}://{target.netloc}"
            self._addresses.prefer(self.address)
            return 0.0
        text = response.text[:4000] if response.status_code in (200, 500, 503) else ""
        standby = _STANDBY.search(text) if response.status_code != 200 or not is_json(response) else None
        if response.status_code == 503 or standby:
            return self.failed(f"{self.address} is not active ({explain(response)})")
        return None


def is_json(response: "httpx.Response") -> bool:
    """Tell whether an answer says that it is JSON."""
    return "json" in str(response.headers.get("content-type", ""))


def explain(response: "httpx.Response") -> str:
    """Give what an answer says went wrong: the RemoteException's message, else its first line."""
    message = ""
    if is_json(response):
        try:
            message = str(response.json()["RemoteException"]["message"])
        except (ValueError, KeyError, TypeError):
            message = ""
    text = message or re.sub(r"<[^>]*>", " ", response.text[:2000])
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _EXCEPTION_NAMES.sub("", line)[:500] or f"HTTP {response.status_code}"


def check(response: "httpx.Response", what: str) -> None:
    """Translate an answer that is not a success into an error of ours.

    Raises
    ------
    ApplicationNotFound
        404.
    KerberosDemanded
        401 that asks for a ticket, and none was sent.
    RestUnavailable
        Any other 401, and 403 where submission over HTTP is switched off.
    SubmissionRejected
        Any other 4xx.
    ClusterUnreachable
        5xx, and what Hadoop would not answer.
    """
    status = response.status_code
    if status < 300 and (is_json(response) or not response.content):
        return
    why = explain(response)
    if status == 401:
        raise _login_refused(response, what, why)
    if status == 403 and "via REST" in why:
        raise RestUnavailable(f"{what}: {why}")
    if status == 404:
        raise ApplicationNotFound(f"{what}: {why}")
    if 400 <= status < 500:
        raise SubmissionRejected(f"{what}: YARN answers {status}: {why}")
    if status < 300:
        raise ClusterUnreachable(f"{what}: {response.url} answers, but is no YARN ResourceManager: {why}")
    raise ClusterUnreachable(f"{what}: {response.url} answers {status}: {why}")


def read_json(response: "httpx.Response", what: str, *keys: str) -> Any:
    """Give the object of a successful answer, or what stands in it under keys within keys.

    Raises
    ------
    OddAnswer
        It is no JSON, or has no such keys: something between us and YARN has answered, or cut the answer.
    TfYarnError
        As `check` does.
    """
    check(response, what)
    try:
        document = response.json()
        if not isinstance(document, dict):
            raise TypeError(f"a {type(document).__name__} is no object")
        for key in keys:
            document = document[key]
    except (ValueError, KeyError, TypeError) as error:
        raise OddAnswer(f"{what}: {response.url} does not answer as YARN does "
                        f"({type(error).__name__}: {error})") from error
    return document


def read_items(document: Mapping[str, Any], outer: str, inner: str) -> list[dict[str, Any]]:
    """Give the items of a list as YARN writes it: an empty one as null, and in some versions one of one as its item.

    Raises
    ------
    OddAnswer
        It is no such list.
    """
    found = document.get(outer) or {}
    items = (found.get(inner) or []) if isinstance(found, dict) else found
    items = [items] if isinstance(items, dict) else items
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise OddAnswer(f"what answers does not list {outer} as YARN does, but gives a {type(items).__name__}")
    return items


def _login_refused(response: "httpx.Response", what: str, why: str) -> RestUnavailable:
    """Build the error of a 401: by what was offered, and whether a ticket was sent."""
    offered, who = response.headers.get("www-authenticate", ""), response.url.netloc.decode("ascii")
    if "authorization" in response.request.headers:
        return RestUnavailable(f"{what}: {who} does not accept the Kerberos ticket ({why})")
    if wants_negotiation(offered):
        return KerberosDemanded(f"{what}: {who} wants a Kerberos ticket. Only an address that is configured as "
                                f"resourcemanager is shown one; name {who} there if it is yours ({why})")
    if offered:
        return RestUnavailable(f"{what}: {who} wants a login that is not Kerberos: {offered} ({why})")
    return RestUnavailable(f"{what}: {who} wants Kerberos or another login ({why})")


def client_options(timeout: float, ca_file: str | None, urls: Iterable[str]) -> dict[str, Any]:
    """Give the options of an httpx client: deadlines, no proxies, certificates only where https is used."""
    from .fast_import import import_httpx

    httpx = import_httpx()
    secure = any(url.startswith("https:") for url in urls)
    verify: Any = True
    if not secure:
        verify = False  # nothing to verify; reading the machine's certificates takes 20 ms
    elif ca_file:
        import ssl

        verify = ssl.create_default_context(cafile=ca_file)
    return {"trust_env": False, "verify": verify, "headers": HEADERS, "follow_redirects": False,
            "timeout": httpx.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout))}


def send(client: Any, failover: Failover, method: str, path: str, *, params: Mapping[str, Any],
         json: Any = None, sleep: Callable[[float], None] = time.sleep) -> "httpx.Response":
    """Send a request until an address answers it or the failover gives up."""
    from .fast_import import import_httpx

    errors = import_httpx()
    while True:
        try:
            response: httpx.Response = client.request(method, failover.address + path, params=params, json=json)
        except (errors.TransportError, errors.InvalidURL) as error:
            try:
                delay: float | None = failover.failed(f"{failover.address}: {error or type(error).__name__}")
            except ClusterUnreachable as unreachable:
                raise unreachable from error
        else:
            delay = failover.answered(response)
            if delay is None:
                return response
        if delay:
            sleep(delay)

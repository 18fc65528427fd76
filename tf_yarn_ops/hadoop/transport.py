"""HTTP to Hadoop: one client, and one fail-over, back-off and error mapping for its daemons.

`Failover` and `check_response` decide without a client; `send_request` is the loop around them.
"""

import logging
import math
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import ApplicationNotFound, ClusterUnreachable, CredentialsRefused, KerberosRefused, SubmissionRejected
from ..runtime.common.container_http import MAX_HOPS, REDIRECTS
from ..runtime.common.values import parse_json
from ..runtime.common.webhdfs_calls import PROBE, Answer, probe_rounds
from . import gateway, tls
from .fast_import import import_httpx
from .security import credentials
from .security.authentication import Authentication
from .security.origin import DEFAULT_PORTS
from .security.tickets import wants_negotiation

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: Seconds for opening a connection; a host that is up answers at once.
CONNECT_TIMEOUT = 3.0
#: Seconds for which one call repeats a failed request, at all addresses in turn.
CALL_PATIENCE = 5.0
#: Hadoop's filter against cross-site requests refuses requests without the first header.
HEADERS = {"X-XSRF-HEADER": "tf_yarn_ops", "Accept": "application/json"}
#: A compressed answer of 8 MiB may be one of 8 GiB.
_UNCOMPRESSED = {"Accept-Encoding": "identity"}

#: What a standby ResourceManager says of a delegation token that the active one has issued.
_UNKNOWN_TOKEN = "can't be found in cache"
_STANDBY = re.compile(r"standby RM|any active RM|no active RM|StandbyException|RetriableException", re.IGNORECASE)
#: Linear for any text, like those below: a server may be another user's program.
_EXCEPTION_NAMES = re.compile(r"(?<![\w.$])(?:[\w.$]+(?:Exception|Error|\$NoMatchingRule): )+")
#: Keys of the message in an error of JSON: of Hadoop and Jetty, of Knox, of OAuth.
_MESSAGE_KEYS = ("message", "error_description", "error", "detail", "reason")
#: The message in an error of XML, else what a page of HTML shows.
_XML_MESSAGE = re.compile(r"<message>(.*?)(?:</message>|\Z)", re.DOTALL | re.IGNORECASE)
_UNSHOWN = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_MOST_EXPLAINED = 16 * 1024
#: What Hadoop answers to a principal that no rule of hadoop.security.auth_to_local maps to a user.
_NO_RULE = "No rules applied to"

#: Loggers that show addresses and headers, and the secrets in these.
_LOGGERS = ("httpx", "httpcore.http11")
_SECRETS = re.compile(r"""(\b(?:delegation|token)=)[^&\s"']+|(hadoop\.auth="?|Negotiate |Basic |Bearer )[^\s"';]+""")


class RestUnavailable(SubmissionRejected):
    """The cluster refuses the request over HTTP; Skein's Java client may succeed."""


class LoginRefused(RestUnavailable):
    """An address refuses the ticket or the login of a request, or there is none."""

    command = "ytf doctor"
    hint = "Correct what the message says about the login, then try again."


class UnexpectedAnswer(ClusterUnreachable):
    """The address answers, but its answer is not YARN's."""


class RedirectRefused(UnexpectedAnswer):
    """An answer leads to a place that the reader's own rule does not allow."""


class KerberosDemanded(LoginRefused):
    """An address asks for a Kerberos ticket and got none: we have none yet, or the address may not see one."""


class AnswerLimits(NamedTuple):
    """What one answer may take.

    Attributes
    ----------
    timeouts : int
        So many times the seconds that the server may be silent.
    size : int
        Bytes.
    """

    timeouts: int
    size: int


#: A page of an application, which is its user's program.
PAGE_LIMITS = AnswerLimits(3, 8 << 20)
#: A daemon's document. YARN's list of 10,000 applications has about 20 MiB.
DOCUMENT_LIMITS = AnswerLimits(6, 256 << 20)
#: A file's content through WebHDFS; what reads it asks for ranges of some MiB.
FILE_LIMITS = AnswerLimits(60, 1 << 30)


class Service(NamedTuple):
    """A daemon of Hadoop that several addresses serve, as error messages describe it.

    Attributes
    ----------
    name : str
    option : str
        The key of ``site.yaml`` that holds the addresses.
    advice : str
        What to check when no address answers, as a sentence without a full stop.
    redirects_to_active : bool
        Whether a redirect names the active daemon. A NameNode redirects to a DataNode instead.
    rules : str, optional
        The properties with the rules by which the daemon finds the user of a principal.
    probe : str, optional
        A path that also a standby answers.
    """

    name: str
    option: str
    advice: str
    redirects_to_active: bool
    rules: str = "hadoop.security.auth_to_local"
    probe: str = "/"


RESOURCEMANAGER = Service(
    "ResourceManager",
    "resourcemanager",
    "Check the address (--resourcemanager, $YTF_RESOURCEMANAGER or site.yaml) and that the ResourceManager runs",
    True,
    probe="/ws/v1/cluster/info",
)
NAMENODE = Service(
    "NameNode",
    "webhdfs",
    "Check webhdfs in site.yaml (default: what the cluster's dfs.namenode.http-address says)",
    False,
    "hadoop.security.auth_to_local, at an HttpFS in httpfs.authentication.kerberos.name.rules",
    probe=PROBE,
)


class Addresses:
    """The addresses of a service; the one that answered last stands first.

    Parameters
    ----------
    urls : iterable of str
        ``http://host:port``, at least one.
    service : Service, optional
        Default: the ResourceManager.

    Attributes
    ----------
    urls : list of str
        The first one is asked next.
    answering : set of str
        Those that have answered, and have not failed since.
    """

    def __init__(self, urls: Iterable[str], service: Service = RESOURCEMANAGER):
        self.urls = [url.rstrip("/") for url in urls]
        self.service = service
        self.answering: set[str] = set()
        self._lock = threading.Lock()

    def prefer(self, url: str) -> None:
        """Put an address first. It may be a new one: a standby ResourceManager names the active one."""
        with self._lock:
            self.urls = [url, *(known for known in self.urls if known != url)]

    def move_on(self, url: str) -> str:
        """Put an address that failed last, unless another thread has done so; return the address to ask next."""
        with self._lock:
            if self.urls[0] == url:
                self.urls = [*self.urls[1:], url]
            return self.urls[0]

    def __str__(self) -> str:
        return ", ".join(self.urls)


class Failover:
    """The addresses that one call tries, one after the other.

    Parameters
    ----------
    addresses : Addresses
    patience : float, optional
        Seconds from now after which a failure is final. Every address is tried at least once. Default 5.
    clock : callable, optional
        Monotonic seconds.

    Attributes
    ----------
    address : str
        The address to ask next.
    """

    def __init__(
        self, addresses: Addresses, patience: float = CALL_PATIENCE, clock: Callable[[], float] = time.monotonic
    ):
        self._addresses = addresses
        self._give_up = clock() + patience
        self._clock = clock
        self._tries = 0
        self._hops = 0
        self._whys: dict[str, str | Exception] = {}
        self._skipped: list[str] = []
        self._tried: set[str] = set()
        self.address = addresses.urls[0]

    def place(self, path: str) -> str:
        """Return the URL of a daemon's path at the address to ask next."""
        return gateway.place(self.address, path)

    def probe(self, limit: float | None) -> tuple[str, float] | None:
        """Return a URL that shows whether the address to ask next hangs, and its seconds; None: send the request.

        A daemon that hangs takes connections and answers nothing. The whole time limit of a request holds only for an
        address that has answered before, or that is the last one.

        Parameters
        ----------
        limit : float or None
            Seconds that the request may take; a short one, as before a kill, needs no probe.
        """
        left = set(self._addresses.urls) - {self.address} - self._tried
        rounds = probe_rounds(math.inf if limit is None else limit)[self._skipped.count(self.address) :]
        if not left or not rounds or self.address in self._addresses.answering:
            return None
        return self.place(self._addresses.service.probe), rounds[0]

    def skip(self, why: Exception) -> None:
        """Leave an address to the end that does not answer its probe."""
        self._whys[self.address] = why
        self._skipped.append(self.address)
        self.address = self._addresses.move_on(self.address)

    def failed(self, why: str | Exception) -> float | None:
        """Note why the address does not answer; return the seconds to wait before the next try.

        Returns
        -------
        float or None
            None if the failure is final: every address was tried, and the patience is over. Then raise `unreachable`.
        """
        self._whys[self.address] = why
        if isinstance(why, Exception):
            self._addresses.answering.discard(self.address)
        self._tried.add(self.address)
        self._tries += 1
        self._hops = 0
        if self._tries >= len(self._addresses.urls) and self._clock() >= self._give_up:
            return None
        self.address = self._addresses.move_on(self.address)
        rounds = self._tries // max(1, len(self._addresses.urls))
        delay = min(2.0, 0.1 * 2.0**rounds) * random.uniform(0.5, 1.0) if rounds else 0.0
        return min(delay, max(0.0, self._give_up - self._clock()))

    def unreachable(self) -> ClusterUnreachable:
        """Return the error for a final failure, with the last failure of each address.

        It may ask the last address again, see `explain_failure`, if no response came from there.
        """
        service, whys = self._addresses.service, []
        for address, why in self._whys.items():
            if isinstance(why, str):
                whys.append(f"{address} {why}")
                continue
            cause = explain_failure(why) if address == self.address else str(why) or type(why).__name__
            # With one address the message has named it.
            whys.append(cause if len(self._addresses.urls) == 1 else f"{address}: {cause}")
        return ClusterUnreachable(
            f"no {service.name} answers at {self._addresses}: {'; '.join(whys)}. {service.advice}"
        )

    def answered(self, response: "httpx.Response") -> float | None:
        """Return None if a response is the answer of the active daemon, else the seconds to wait before the next try.

        Raises
        ------
        ClusterUnreachable
            The failure is final.
        """
        service, status = self._addresses.service, response.status_code
        self._addresses.answering.add(self.address)
        if service.redirects_to_active and is_redirect(response) and not gateway.is_gateway(self.address):
            target = urlsplit(response.headers["location"])
            self._hops += 1
            if self._hops > MAX_HOPS or not target.netloc:
                return self._refused("redirects in a circle")
            self.address = f"{target.scheme}://{target.netloc}"
            self._addresses.prefer(self.address)
            return 0.0
        # Without an active ResourceManager a standby answers 200, or a redirect without a target, with a page of text;
        # a 200 of HttpFS may be the content of a file.
        may_be_standby = status in (403, 500, 503, *REDIRECTS) or (
            status == 200 and service.redirects_to_active and not is_json(response)
        )
        if status == 503 or (may_be_standby and _STANDBY.search(response.text[:4000])):
            advice = f". {gateway.ADVICE}" if gateway.is_gateway(self.address) else ""
            return self._refused(f"is not active ({explain_response(response)}){advice}")
        # Only the active one knows the tokens; if no other one is left to ask, the token itself is at fault.
        if status == 403 and self._tries + 1 < len(self._addresses.urls) and _UNKNOWN_TOKEN in response.text[:4000]:
            return self._refused(f"does not know the token ({explain_response(response)})")
        return None

    def _refused(self, why: str) -> float:
        if (delay := self.failed(why)) is None:
            raise self.unreachable()
        return delay


def address_of(url: "httpx.URL") -> str:
    """Return a URL as messages show it: without a login, and without the query, which may hold a token."""
    return str(url.copy_with(query=None, fragment=None, userinfo=b""))


def seconds_ahead(response: "httpx.Response", now: float) -> float | None:
    """Return the seconds by which a server's clock is ahead of ours; None if its answer has no date."""
    try:
        # The date has whole seconds. Servers behind Jetty may name the same one twice.
        date = parsedate_to_datetime(response.headers.get("date", "").split("GMT")[0] + "GMT")
        return date.timestamp() + 0.5 - now
    except (TypeError, ValueError, OverflowError):
        return None


def is_redirect(response: "httpx.Response") -> bool:
    """Return whether a response names another address to ask."""
    return response.status_code in REDIRECTS and bool(response.headers.get("location"))


def is_json(response: "httpx.Response") -> bool:
    """Return whether a response declares itself as JSON."""
    return "json" in str(response.headers.get("content-type", ""))


def remote_exception(response: "httpx.Response") -> tuple[str, str]:
    """Return the class name and the message of Hadoop's ``RemoteException``; empty when the response has none."""
    return Answer(response.status_code, response.content).exception() if is_json(response) else ("", "")


def explain_response(response: "httpx.Response") -> str:
    """Return the cause in a failed response, else its status."""
    return explain_body(response.text) or f"HTTP {response.status_code}"


def explain_body(text: str) -> str:
    """Return the cause in the body of an error, one line: the message in JSON or XML, else the first line of the text.

    Parameters
    ----------
    text : str
        Of any server: YARN, HDFS, a KMS, the Jetty that serves them, or a gateway.
    """
    text = text[:_MOST_EXPLAINED]
    try:
        found = _find_message(parse_json(text)) or text
    except ValueError:
        message = _XML_MESSAGE.search(text)
        found = gateway.unescape_page(_UNSHOWN.sub(" ", message[1] if message else text))
    line = next((line.strip() for line in found.splitlines() if line.strip()), "")
    return _EXCEPTION_NAMES.sub("", line[:4096])[:500]


def _find_message(document: Any) -> str:
    """Return the message in an error of JSON; empty if it has none."""
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        return ""
    inner = (document.get(key) for key in ("RemoteException", *_MESSAGE_KEYS))
    return next(filter(None, map(_find_message, inner)), "")


def check_response(response: "httpx.Response", what: str, service: Service = RESOURCEMANAGER) -> None:
    """Raise an error unless the response of a ResourceManager or KMS is a success.

    Parameters
    ----------
    response : httpx.Response
    what : str
        The request in words, such as ``reading the queues``; the message begins with it.
    service : Service, optional
        What was asked. Default: the ResourceManager.

    Raises
    ------
    ApplicationNotFound
        404.
    KerberosDemanded, CredentialsRefused, LoginRefused
        401, see `refused_login`.
    KerberosRefused
        The cluster has no user for the principal.
    RestUnavailable
        403 where submission over HTTP is switched off.
    SubmissionRejected
        Any other 4xx.
    ClusterUnreachable
        5xx, and answers that are not Hadoop's.
    """
    status = response.status_code
    if status < 300 and (is_json(response) or not response.content):
        return
    why = explain_response(response)
    if status == 401:
        raise refused_login(response, what, service)
    check_mapped(why, response, what, service)
    if is_redirect(response):
        target = urlsplit(response.headers["location"])
        raise ClusterUnreachable(
            f"{what}: {response.url.host} leads to {target.netloc}{target.path}, perhaps a login; "
            f"set {credentials.PASSWORD_FILE} or {credentials.TOKEN_FILE} in site.yaml"
        )
    if status == 403 and "via REST" in why:
        raise RestUnavailable(f"{what}: {why}")
    if status == 404:
        raise ApplicationNotFound(f"{what}: {why}")
    if 400 <= status < 500:
        raise SubmissionRejected(f"{what}: YARN answers {status}: {why}")
    answers = "answers, but is no YARN ResourceManager" if status < 300 else f"answers {status}"
    raise ClusterUnreachable(f"{what}: {address_of(response.url)} {answers}: {why}")


def check_mapped(why: str, response: "httpx.Response", what: str, service: Service) -> None:
    """Raise KerberosRefused if a service has no user for the principal of a ticket; ``why`` is the cause it answers."""
    if response.status_code >= 400 and _NO_RULE in why:
        raise KerberosRefused(
            f"{what}: {address_of(response.url)} has no user for the principal ({why}). Use a principal of the "
            f"cluster's realm, or ask the administrator of Hadoop for a rule in {service.rules}"
        )


def refused_login(response: "httpx.Response", what: str, service: Service) -> SubmissionRejected:
    """Return the error for a 401.

    It is KerberosDemanded if the address asks for a ticket, and none was sent; CredentialsRefused if the login of a
    gateway was sent; else LoginRefused.
    """
    demanded = wants_negotiation(response.headers.get("www-authenticate", "")) and not _ticket_sent(response)
    kind = CredentialsRefused if credentials.sent(response.request) else KerberosDemanded if demanded else LoginRefused
    return kind(f"{what}: {explain_401(response, service)}")


def explain_401(response: "httpx.Response", service: Service) -> str:
    """Return why an address answered 401, from the login that it offers and whether a ticket was sent."""
    offered, who = response.headers.get("www-authenticate", ""), response.url.netloc.decode("ascii")
    why = explain_response(response)
    if credentials.sent(response.request):
        return f"{who}: {credentials.explain_refusal(response.request)} ({why})"
    if _ticket_sent(response):
        return (
            f"{who} does not accept the Kerberos ticket ({why}): its clock or the KDC's differs from the others by "
            "more than 5 minutes, or its keytab is older than its key"
        )
    if wants_negotiation(offered):
        return (
            f"{who} wants a Kerberos ticket. Only an address that is configured as {service.option} is shown one; "
            f"name {who} there if it is yours ({why})"
        )
    login = f"for a gateway such as Knox set {credentials.PASSWORD_FILE} or {credentials.TOKEN_FILE} in site.yaml"
    wanted = f"a login that is not Kerberos: {offered}" if offered else "Kerberos or another login"
    return f"{who} wants {wanted}; {login} ({why})"


def _ticket_sent(response: "httpx.Response") -> bool:
    return "authorization" in response.request.headers


def explain_failure(error: Exception) -> str:
    """Return why a request got no response; for a fault of TLS with what to do.

    It may connect to the address again, to read its certificate: call it for a final failure only.
    """
    httpx = import_httpx()
    request, why = getattr(error, "_request", None), ""
    if request is not None:
        url, encrypted = request.url, request.url.scheme == "https"
        # A server that speaks TLS ends a plain request without an answer.
        if isinstance(error, httpx.ConnectError if encrypted else (httpx.RemoteProtocolError, httpx.ReadError)):
            why = tls.explain_tls_failure(error, url.host, url.port or DEFAULT_PORTS[url.scheme], encrypted)
    return why or str(error) or type(error).__name__


def read_json(response: "httpx.Response", what: str, *keys: str, service: Service = RESOURCEMANAGER) -> Any:
    """Return the JSON object of a successful response, or the value under keys within keys.

    Raises
    ------
    UnexpectedAnswer
        The answer is not JSON, or lacks a key: a proxy has answered, or cut YARN's answer.
    TfYarnError
        As `check_response`.
    """
    check_response(response, what, service)
    try:
        document = parse_json(response.content, repeated=True)
        if not isinstance(document, dict):
            raise TypeError(f"a {type(document).__name__} is no object")
        for key in keys:
            document = document[key]
    except (ValueError, KeyError, TypeError) as error:
        raise UnexpectedAnswer(
            f"{what}: {address_of(response.url)} does not answer as YARN does ({type(error).__name__}: {error})"
        ) from error
    return document


def read_items(document: Mapping[str, Any], outer: str, inner: str) -> list[dict[str, Any]]:
    """Return the items of a list of YARN, which writes no items as null and, in some versions, one item without a list.

    Raises
    ------
    UnexpectedAnswer
        The document has no such list.
    """
    found = document.get(outer) or {}
    items = (found.get(inner) or []) if isinstance(found, dict) else found
    items = [items] if isinstance(items, dict) else items
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UnexpectedAnswer(f"the answer does not list {outer} as YARN does; it has a {type(items).__name__}")
    return items


class _MachinesCertificates(ssl.SSLContext):
    """A client's TLS context that reads the machine's certificates at the first handshake.

    Reading them takes 20 ms, and most clusters have no https.
    """

    _read = False

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        if not self._read:
            self.load_default_certs()
            self._read = True
        return super().wrap_socket(*arguments, **options)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Hide tokens and cookies in a log line of httpx or httpcore."""
    text = record.getMessage()
    hidden = _SECRETS.sub(lambda found: f"{found[1] or found[2]}(hidden)", text)
    if hidden != text:
        record.msg, record.args = hidden, ()
    return True


def _note_start(request: "httpx.Request") -> None:
    request.extensions["tf_yarn_ops.started"] = time.monotonic()


def _log_answer(response: "httpx.Response") -> None:
    """Log method, URL without its query, which may hold a token, status and milliseconds until the answer began."""
    response.encoding = "utf-8"  # the charset is anything of Python's codecs, which fail or take long
    request = response.request
    took = time.monotonic() - request.extensions.get("tf_yarn_ops.started", time.monotonic())
    operation = request.url.params.get("op", "")
    logger.debug(
        "%s %s%s %s %.0f ms",
        request.method,
        address_of(request.url),
        operation and f"?op={operation}",
        response.status_code,
        took * 1000,
    )


def _check_hop(request: "httpx.Request") -> None:
    """Raise RedirectRefused if the request's extension ``allowed``, which its redirects keep, denies its URL."""
    if not request.extensions["allowed"](request.url):
        raise RedirectRefused(f"{address_of(request.url)} is not read: it is not the place of what was requested")


def open_client(
    authentication: Authentication,
    urls: Iterable[str],
    timeout: float,
    ca_file: str | None,
    limits: AnswerLimits | None = DOCUMENT_LIMITS,
    hops: int = 0,
) -> Any:
    """Return a ``httpx.Client`` with deadlines, limits, TLS and authentication, which uses no proxies.

    Parameters
    ----------
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    urls : iterable of str
        The addresses that may see a ticket, or the login of a gateway.
    timeout : float
        Seconds that the server may be silent.
    ca_file : str or None
        Certificates (PEM) for https. None: the machine's.
    limits : AnswerLimits or None, optional
        Of each answer. None: no limits, for a log that the caller takes piece by piece. Default: `DOCUMENT_LIMITS`.
    hops : int, optional
        How many redirects an answer may lead through. Then each request needs an extension ``allowed``, a function that
        returns whether a URL may be read; it raises `RedirectRefused` for any other. Default 0.

    Raises
    ------
    SpecInvalid
        The file can't be read, or holds no certificates.
    """
    httpx = import_httpx()
    from .limited_answers import DeadlineTransport, limit_bytes

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_hide_secrets)
    try:
        verify = (
            ssl.create_default_context(cafile=ca_file) if ca_file else _MachinesCertificates(ssl.PROTOCOL_TLS_CLIENT)
        )
    except OSError as error:  # ssl.SSLError is one
        raise tls.not_certificates(str(ca_file), error) from error
    options = {
        "trust_env": False,
        "verify": verify,
        "headers": HEADERS,
        "follow_redirects": hops > 0,
        "max_redirects": hops or MAX_HOPS,  # an answer that demands a ticket counts too
        "timeout": httpx.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout)),
        "event_hooks": {"request": [_note_start, *([_check_hop] if hops else [])], "response": [_log_answer]},
        **authentication.http_options(urls),
    }
    if limits is not None:
        options["headers"] = HEADERS | _UNCOMPRESSED
        options["event_hooks"]["response"].append(partial(limit_bytes, size=limits.size))
        options["transport"] = DeadlineTransport(verify, limits.timeouts * timeout)
    return httpx.Client(**options)


def send_request(
    client: Any, failover: Failover, method: str, path: str, sleep: Callable[[float], None] = time.sleep, **options: Any
) -> "httpx.Response":
    """Send a request until an address answers it or the fail-over gives up.

    Parameters
    ----------
    client : httpx.Client
    failover : Failover
    method, path : str
    sleep : callable, optional
        For tests.
    **options
        Options of ``httpx.Client.request``.

    Returns
    -------
    httpx.Response
        The answer of the active daemon, of any status.

    Raises
    ------
    ClusterUnreachable
        Every address was tried, and the patience of the fail-over is over.
    """
    errors = import_httpx()
    kept = method == "GET"
    limit = errors.Timeout(options.get("timeout", client.timeout)).read
    while True:
        try:
            if probe := failover.probe(limit):
                try:
                    client.get(probe[0], auth=None, timeout=probe[1])
                except errors.TimeoutException as error:
                    logger.debug("%s does not answer at once: %r", probe[0], error)
                    failover.skip(error)
                    continue
            response: httpx.Response = client.request(method, failover.place(path), **options)
        except (errors.TransportError, errors.InvalidURL, UnicodeError) as error:  # UnicodeError: no name of a host
            logger.debug("%s %s%s gets no answer: %r", method, failover.address, path, error)
            # Daemon and pool close connections that are kept, also as the next request begins on one.
            if kept and isinstance(error, errors.NetworkError) and not isinstance(error, errors.ConnectError):
                kept = False
                continue
            delay = failover.failed(error)
            if delay is None:
                raise failover.unreachable() from error
        else:
            delay = failover.answered(response)
            if delay is None:
                return response
        if delay:
            sleep(delay)

"""Requests of the minicluster itself to the pages of its daemons."""

import base64
import hashlib
import hmac
import ssl
import time
import urllib.request
from http.client import HTTPResponse
from typing import cast

from .configuration import Settings
from .kerberos import HDFS, YARN

#: Seconds for which a cookie is valid; each request has its own.
_COOKIE_SECONDS = 60


def open_page(
    settings: Settings, url: str, seconds: float, method: str = "GET", body: bytes | None = None
) -> HTTPResponse:
    """Send a request to a daemon as the superuser, and return the open answer.

    Parameters
    ----------
    settings : Settings
        The cluster.
    url : str
        URL of one of its daemons.
    seconds : float
        Limit for each step on the network.
    method : str, optional
        Method of HTTP. Default: GET.
    body : bytes, optional
        JSON to send.

    Raises
    ------
    urllib.error.HTTPError
        The daemon answered with an error.
    OSError, http.client.HTTPException
        It did not answer.
    """
    headers = {"Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    if settings.kerberos:
        headers["Cookie"] = _sign_cookie(settings, url)
    request = urllib.request.Request(url, body, headers, method=method)
    return cast(HTTPResponse, _build_opener(settings).open(request, timeout=seconds))


def _build_opener(settings: Settings) -> urllib.request.OpenerDirector:
    # No proxy of the environment, because the daemons run on this machine.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if settings.https:
        trusting = ssl.create_default_context(cafile=settings.stores.ca_file)
        handlers.append(urllib.request.HTTPSHandler(context=trusting))
    return urllib.request.build_opener(*handlers)


def _sign_cookie(settings: Settings, url: str) -> str:
    """Return the cookie that a daemon's page would give after SPNEGO.

    The daemons share one secret for it, which is the minicluster's own, so that no ticket is needed here.

    References
    ----------
    hadoop-auth: ``AuthToken``, ``Signer``; the type is that of the page's ``AuthenticationHandler``.
    """
    of_yarn = any(url.startswith(settings.web_address(name) + "/ws/") for name in settings.resourcemanagers)
    user, kind = (YARN, "kerberos-dt") if of_yarn else (HDFS, "kerberos")
    expires = int((time.time() + _COOKIE_SECONDS) * 1000)
    token = f"u={user}&p={settings.realm.principal(user)}&t={kind}&e={expires}"
    signature = hmac.digest(settings.realm.web_secret.read_bytes(), token.encode(), hashlib.sha256)
    return f'hadoop.auth="{token}&s={base64.b64encode(signature).decode()}"'

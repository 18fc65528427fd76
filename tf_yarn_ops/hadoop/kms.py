"""`KeyServer`: the KMS of encryption zones, which gives delegation tokens.

Input: the URI of a key provider, as NameNodes name it. NodeManagers decrypt a job's files with the token of its user.

References
----------
Hadoop, "Hadoop Key Management Server (KMS)", Delegation Token Operations; ``KMSClientProvider``.
"""

from typing import Any
from urllib.parse import urlsplit

from ..errors import ClusterUnreachable, KmsUnreachable, TicketMissing
from .security.authentication import Authentication
from .transport import Addresses, Failover, Service, check_response, open_client, read_json, send_request

_SERVICE = Service(
    "KMS",
    "hadoop.security.key.provider.path",
    "The KMS keeps the keys of the encryption zones: check that it runs",
    False,
    "hadoop.kms.authentication.kerberos.name.rules",
)


class KeyServer:
    """A KMS, or several with the same keys.

    Parameters
    ----------
    uri : str
        ``kms://http@host;other:9600/kms``: all have one port, without it that of the scheme.
    authentication : SimpleAuthentication, KerberosAuthentication or TokenAuthentication
    timeout : float
        Seconds for each request.
    ca_file : str, optional
        Certificates (PEM) for https.

    Raises
    ------
    ValueError
        The URI is not that of a KMS.
    """

    def __init__(self, uri: str, authentication: Authentication, timeout: float, ca_file: str | None = None):
        split = urlsplit(uri)
        scheme, _, authority = split.netloc.rpartition("@")
        hosts, colon, port = authority.partition(":")
        if split.scheme != "kms" or scheme not in ("http", "https") or (colon and not port.isdecimal()):
            raise ValueError(f"{uri} is no address of a KMS")
        urls = [f"{scheme}://{host}{colon}{port}" for host in hosts.split(";")]
        self._path = split.path.rstrip("/") + "/v1/"
        self._addresses = Addresses(urls, _SERVICE)
        self._parameters = authentication.parameters()
        self._client = open_client(authentication, urls, timeout, ca_file)

    def delegation_token(self, renewer: str) -> str:
        """Return the text of a new token for the user of our requests, which ``renewer`` may renew."""
        response = self._request("GET", op="GETDELEGATIONTOKEN", renewer=renewer)
        return str(read_json(response, "asking the KMS for a token", "Token", "urlString", service=_SERVICE))

    def cancel_token(self, token: str) -> None:
        """Cancel a token, given as its text."""
        check_response(
            self._request("PUT", op="CANCELDELEGATIONTOKEN", token=token), "cancelling a token of the KMS", _SERVICE
        )

    def _request(self, method: str, **parameters: str) -> Any:
        failover = Failover(self._addresses, patience=0.0)
        try:
            return send_request(self._client, failover, method, self._path, params=self._parameters | parameters)
        except TicketMissing:
            raise
        except ClusterUnreachable as error:
            raise KmsUnreachable(str(error)) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

"""The user of a request to YARN and HDFS, and the proof of the user's identity.

`SimpleAuthentication` names a user, and Hadoop believes it; `KerberosAuthentication` sends a ticket when a service
asks for one; `GatewayAuthentication` logs in at a gateway; `TokenAuthentication` shows a token of the container in
which the program runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .container_tokens import TokenAuthentication
from .credentials import HttpCredentials
from .origin import closed_jar
from .tickets import PROCESS_TICKETS, Tickets

#: Environment variables by which a Hadoop program would act as another user than the configuration says.
OTHER_USERS = ("HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION", "KRB5PRINCIPAL", "KRB5KEYTAB")


@dataclass(frozen=True)
class _Login:
    """Who sends a request, and for whom; services know the login by a proof, so the query does not name it."""

    login: str
    user: str

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of a request: the user that the login impersonates, if there is one."""
        return {"doAs": self.user} if self.user not in ("", self.login) else {}


@dataclass(frozen=True)
class SimpleAuthentication(_Login):
    """Hadoop's ``simple`` authentication.

    Parameters
    ----------
    login : str
        The user that sends the requests.
    user : str, optional
        The user that the login impersonates; Hadoop's ``proxyuser`` settings have to allow it. Default: ``login``.
    """

    user: str = ""

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of a request, which name the login."""
        return {"user.name": self.login, **super().parameters()}

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client: none."""
        return {}


@dataclass(frozen=True)
class KerberosAuthentication(_Login):
    """Kerberos by SPNEGO: a ticket when a service asks for it, then the cookie that the service sets.

    The first request for a ticket opens MIT Kerberos's library.

    Parameters
    ----------
    login : str
        The user of the ticket's principal. It is not sent: the ticket names it.
    user : str, optional
        The user that the login impersonates; Hadoop's ``proxyuser`` settings have to allow it. Default: ``login``.
    tickets : Tickets, optional
        Where the tickets come from. Default: the process's ticket cache.
    """

    user: str = ""
    tickets: Tickets = PROCESS_TICKETS

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client that sends tickets to these addresses and to no other."""
        from .spnego import Negotiation

        return {"auth": Negotiation(urls, self.tickets), "cookies": closed_jar()}


@dataclass(frozen=True)
class GatewayAuthentication(_Login):
    """A password or a token for a gateway such as Apache Knox, which names us to the cluster.

    Parameters
    ----------
    login : str
        The user of the password or token. It is not sent: the gateway names it.
    user : str, optional
        The user that the login impersonates, if the gateway allows that; ``login`` or empty if it acts for itself.
    credentials : HttpCredentials
        The file with the password or token.
    """

    credentials: HttpCredentials

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client that logs in at these addresses and at no other."""
        return self.credentials.http_options(urls)


Authentication = SimpleAuthentication | KerberosAuthentication | GatewayAuthentication | TokenAuthentication

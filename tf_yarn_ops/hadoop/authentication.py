"""The user of a request to YARN and HDFS, and the proof of the user's identity.

`SimpleAuthentication` names a user, and Hadoop believes it; `KerberosAuthentication` sends a ticket when a service
asks for one. No other module distinguishes the two.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .tickets import PROCESS_TICKETS, Tickets

#: Environment variables by which a Hadoop program would act as another user than the configuration says.
OTHER_USERS = ("HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION")


@dataclass(frozen=True)
class SimpleAuthentication:
    """Hadoop's ``simple`` authentication.

    Parameters
    ----------
    login : str
        The user that sends the requests.
    user : str, optional
        The user for whom the login acts; Hadoop's ``proxyuser`` settings have to allow it. Default: ``login``.
    """

    login: str
    user: str = ""

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of a request."""
        return {"user.name": self.login, **_on_behalf(self.login, self.user)}

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client: none."""
        return {}


@dataclass(frozen=True)
class KerberosAuthentication:
    """Kerberos by SPNEGO: a ticket when a service asks for it, then the cookie that the service sets.

    The first request for a ticket opens MIT Kerberos's library.

    Parameters
    ----------
    login : str
        The user of the ticket's principal. It is not sent: the ticket names it.
    user : str, optional
        The user for whom the login acts; Hadoop's ``proxyuser`` settings have to allow it. Default: ``login``.
    tickets : Tickets, optional
        Where the tickets come from. Default: the process's ticket cache.
    """

    login: str
    user: str = ""
    tickets: Tickets = PROCESS_TICKETS

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of a request. They do not name the login: the ticket proves it."""
        return _on_behalf(self.login, self.user)

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client that sends tickets to these addresses and to no other."""
        from .spnego import negotiation_options

        return negotiation_options(urls, self.tickets)


Authentication = SimpleAuthentication | KerberosAuthentication


def _on_behalf(login: str, user: str) -> dict[str, str]:
    return {"doAs": user} if user not in ("", login) else {}

"""Who asks: what every request to YARN and HDFS carries so that they know.

`SimpleAuthentication` names a user and is believed; `KerberosAuthentication` shows a
ticket when it is asked for one. Nothing else knows which of them is at work.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SimpleAuthentication:
    """Hadoop's ``simple`` authentication.

    Parameters
    ----------
    login : str
        Who sends the requests.
    user : str, optional
        On whose behalf, where Hadoop's ``proxyuser`` settings allow it. Default: ``login``.
    """

    login: str
    user: str = ""

    def parameters(self) -> dict[str, str]:
        """Give the query parameters for the ResourceManager."""
        return {"user.name": self.login, **_on_behalf(self.login, self.user)}

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Give the options of an httpx client of these addresses: none."""
        return {}

    def webhdfs_client(self, urls: tuple[str, ...], timeout: tuple[float, float], ca_file: str | None) -> Any:
        """Make a client of WebHDFS or HttpFS (``hdfs.Client``) that takes no proxy from the environment."""
        import hdfs

        return hdfs.InsecureClient(";".join(urls), user=self.login, timeout=timeout, session=_session(timeout, ca_file),
                                   proxy=_on_behalf(self.login, self.user).get("doAs"))


@dataclass(frozen=True)
class KerberosAuthentication:
    """Kerberos by SPNEGO: a ticket when a service asks for it, its cookie from then on.

    What it needs beyond httpx, the extra ``kerberos``, is imported when the first ticket is asked for.

    Parameters
    ----------
    login : str
        The user of the ticket's principal. It is not sent: the ticket says it.
    user : str, optional
        On whose behalf, where Hadoop's ``proxyuser`` settings allow it. Default: ``login``.
    """

    login: str
    user: str = ""

    def parameters(self) -> dict[str, str]:
        """Give the query parameters for the ResourceManager; a name would be a claim beside the proof."""
        return _on_behalf(self.login, self.user)

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Give the options of an httpx client, which shows tickets to these addresses and to no other."""
        from .spnego import httpx_options

        return httpx_options(urls)

    def webhdfs_client(self, urls: tuple[str, ...], timeout: tuple[float, float], ca_file: str | None) -> Any:
        """Make a client of WebHDFS or HttpFS (``hdfs.Client``) that shows tickets to these addresses."""
        import hdfs

        from .spnego import requests_session

        session = _session(timeout, ca_file)
        requests_session(session, urls)
        return hdfs.Client(";".join(urls), timeout=timeout, session=session,
                           proxy=_on_behalf(self.login, self.user).get("doAs"))


Authentication = SimpleAuthentication | KerberosAuthentication


def _on_behalf(login: str, user: str) -> dict[str, str]:
    return {"doAs": user} if user not in ("", login) else {}


def _session(timeout: tuple[float, float], ca_file: str | None) -> Any:
    import requests

    from .uploading import PatientAdapter

    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, PatientAdapter(timeout[1]))
    session.trust_env = False
    session.headers["X-XSRF-HEADER"] = "tf_yarn_ops"
    if ca_file:
        session.verify = ca_file
    return session

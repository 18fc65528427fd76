"""Who asks: what every request to YARN and HDFS carries so that they know.

Simple authentication names a user and is believed; Kerberos takes this part's
place without a change elsewhere.
"""

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
        on_behalf = {"doAs": self.user} if self.user not in ("", self.login) else {}
        return {"user.name": self.login, **on_behalf}

    def webhdfs_client(self, urls: tuple[str, ...], timeout: tuple[float, float], ca_file: str | None) -> Any:
        """Make a client of WebHDFS or HttpFS (``hdfs.Client``) that takes no proxy from the environment."""
        import hdfs
        import requests

        session = requests.Session()
        session.trust_env = False
        session.headers["X-XSRF-HEADER"] = "tf_yarn_ops"
        if ca_file:
            session.verify = ca_file
        proxy = self.user if self.user not in ("", self.login) else None
        return hdfs.InsecureClient(";".join(urls), user=self.login, proxy=proxy, timeout=timeout, session=session)

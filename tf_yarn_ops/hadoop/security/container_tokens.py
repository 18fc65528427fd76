"""`ContainerTokens`: the delegation tokens with which a program inside a container acts for its user.

A container of a secured cluster has no ticket. Its NodeManager writes the tokens of the application into the file that
``HADOOP_TOKEN_FILE_LOCATION`` names. No new token can be had for a token, so an application that the program submits
gets the same ones; YARN must not cancel them when that application ends.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import SpecInvalid
from ...runtime.common.tokens import (
    HDFS_KIND,
    KMS_KIND,
    RESOURCEMANAGER_KIND,
    TOKEN_HEADER,
    Token,
    read_credentials,
)
from .origin import header_options

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"


@dataclass(frozen=True)
class ContainerTokens:
    """The tokens of a container.

    Parameters
    ----------
    resourcemanager : Token
    filesystems : tuple of Token
        Of NameNodes, and of the key servers of their encryption zones.
    """

    resourcemanager: Token = field(repr=False)
    filesystems: tuple[Token, ...] = field(repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "ContainerTokens | None":
        """Return the tokens of this container; None if it has none for the ResourceManager.

        Raises
        ------
        SpecInvalid
            The file can't be read.
        """
        path = environ.get(VARIABLE)
        if not path:
            return None
        try:
            found = read_credentials(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise SpecInvalid(f"the file of {VARIABLE} can't be read: {error}") from error
        one = next((token for token in found if token.kind == RESOURCEMANAGER_KIND), None)
        if one is None:
            return None
        return cls(one, tuple(token for token in found if token.kind in (HDFS_KIND, KMS_KIND)))

    def of_filesystem(self, filesystem: str) -> Token | None:
        """Return the token of a file system, ``hdfs://host:port`` or the name of a pair; None if there is none."""
        authority = urlsplit(filesystem).netloc
        port = authority.rpartition(":")[2]
        wanted = [token for token in self.filesystems if token.service in (authority, f"ha-hdfs:{authority}")]
        # The service may name the address where the URL has the name.
        wanted += [token for token in self.filesystems if ":" in authority and token.service.rpartition(":")[2] == port]
        return next(iter(wanted), None)


@dataclass(frozen=True)
class TokenAuthentication:
    """Shows a delegation token.

    Parameters
    ----------
    login : str
        The owner of the token. It is not sent: the token names it.
    token : str
        The text of the token.
    of_namenode : bool
        NameNodes take it in the query, ResourceManagers in a header.
    """

    login: str
    token: str = field(repr=False)
    of_namenode: bool = False

    @property
    def user(self) -> str:
        """The user that the owner impersonates: a token is of use for its owner only."""
        return self.login

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of a request."""
        return {"delegation": self.token} if self.of_namenode else {}

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client that sends the token to these addresses and to no other."""
        return {} if self.of_namenode else header_options(urls, TOKEN_HEADER, lambda: self.token)

"""`HttpCredentials`: the password or the token that a gateway asks for, read from a file when a request needs it.

The file's name is a setting of the site; its content goes into the header of requests to the configured addresses, over
https only, and nowhere else. A file that has changed is read again, so that a new token counts at once. A password that
was refused is not repeated with every request: many directories lock an account after a few of them.
"""

import base64
import binascii
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...errors import CredentialsRefused, Fault, FaultCode, SpecInvalid
from ...runtime.common.clock import local_time
from .origin import header_options

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

PASSWORD_FILE, TOKEN_FILE = "gateway_password_file", "gateway_token_file"
_BASIC, _BEARER = "Basic ", "Bearer "
#: Others may do nothing with the file, and the group may read it, as it is usual for secrets of a service.
_FORBIDDEN = stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP
#: Seconds until a refused password is sent again; a gateway refuses a good one while its directory is away.
REFUSED_SECONDS = 300.0
#: By the file of a password that was refused: the file's stamp, and the monotonic time.
_refusals: dict[str, tuple[tuple[int, ...], float]] = {}


class CredentialFault(FaultCode):
    """Fault codes for a file of credentials."""

    UNREADABLE = "{file} can't be read: {error}"
    OPEN = "{file} has mode {mode}, so that other users can use it; chmod 600 it"
    NOT_A_PASSWORD = "{file} does not hold one line USER:PASSWORD"
    NOT_A_TOKEN = "{file} does not hold one line with a token"
    NOT_ENCRYPTED = "{url} is not https, and passwords and tokens go over https only"


@dataclass(frozen=True)
class HttpCredentials:
    """Where the password or the token for a gateway comes from.

    Parameters
    ----------
    setting : {"gateway_password_file", "gateway_token_file"}
        The setting that names the file: a line ``USER:PASSWORD`` for basic authentication, or a line with a token.
    file : str
    """

    setting: str
    file: str

    def header(self) -> str:
        """Return the value of the ``Authorization`` header.

        Raises
        ------
        SpecInvalid
            The file can't be read, other users can use it, or its content is something else.
        """
        line = self._read()
        is_token = self.setting == TOKEN_FILE
        return _BEARER + line if is_token else _BASIC + base64.b64encode(line.encode()).decode()

    def login(self) -> str:
        """Return the user in the file; empty if its token names none. The cluster may know another name."""
        line = self._read()
        return str(_claims(line).get("sub") or "") if self.setting == TOKEN_FILE else line.partition(":")[0]

    def _read(self) -> str:
        try:
            with open(self.file, encoding="utf-8") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                lines = file.read().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            # The text of a decoding error shows a byte of the file.
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise self._invalid(CredentialFault.UNREADABLE, error=why) from None
        if mode & _FORBIDDEN:
            raise self._invalid(CredentialFault.OPEN, mode=f"{mode:o}")
        line, rest = lines[0].strip(), "".join(lines[1:]).strip()
        if self.setting == TOKEN_FILE and (rest or not line.isascii() or len(line.split()) != 1):
            raise self._invalid(CredentialFault.NOT_A_TOKEN)
        if self.setting == PASSWORD_FILE and (rest or not line.partition(":")[0] or not line.partition(":")[2]):
            raise self._invalid(CredentialFault.NOT_A_PASSWORD)
        return line

    def _invalid(self, code: FaultCode, **values: object) -> SpecInvalid:
        return SpecInvalid(Fault(self.setting, code, {"file": self.file, **values}))

    def http_options(self, urls: Iterable[str]) -> dict[str, Any]:
        """Return the options of an httpx client that sends the credentials to these addresses and to no other.

        Raises
        ------
        SpecInvalid
            The file is unfit, or no address is https.
        """
        addresses = tuple(urls)
        encrypted = [url for url in addresses if urlsplit(url).scheme == "https"]
        if not encrypted:
            raise self._invalid(CredentialFault.NOT_ENCRYPTED, url=next(iter(addresses), "no address"))
        header = _Header(self)
        return header_options(encrypted, "Authorization", header.current, header.refused)


class _Header:
    """The header of a client, which follows the file; a file that becomes unfit leaves the last header in force."""

    def __init__(self, credentials: HttpCredentials):
        self._credentials = credentials
        self._lock = threading.Lock()
        self._seen = self._stamp()
        self._value = credentials.header()

    def current(self) -> str:
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                try:
                    self._value = self._credentials.header()
                except SpecInvalid as error:
                    logger.warning("the old credentials stay in use: %s", error)
            refused, since = _refusals.get(self._credentials.file, ((), 0.0))
            if refused and refused == self._seen and time.monotonic() < since + REFUSED_SECONDS:
                raise CredentialsRefused(
                    f"the gateway has refused the password in {self._credentials.file}, which {PASSWORD_FILE} names; "
                    f"it is sent again when the file has changed, or after {REFUSED_SECONDS:g} s"
                )
            return self._value

    def refused(self) -> None:
        if self._credentials.setting == PASSWORD_FILE:
            _refusals[self._credentials.file] = self._seen, time.monotonic()

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._credentials.file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode


def sent(request: "httpx.Request") -> bool:
    """Return whether a request carries the credentials of a gateway."""
    return str(request.headers.get("authorization", "")).startswith((_BASIC, _BEARER))


def explain_refusal(request: "httpx.Request") -> str:
    """Return which credentials a gateway has refused, and what to do; none of them are shown."""
    value = str(request.headers.get("authorization", ""))
    if value.startswith(_BASIC):
        return f"it does not accept the user and password; correct the file that {PASSWORD_FILE} names"
    ends = _claims(value.removeprefix(_BEARER)).get("exp")
    over = isinstance(ends, (int, float)) and 0 < ends < time.time()
    when = f", which ended at {local_time(ends)}" if over else ""
    return f"it does not accept the token{when}; write a new one into the file that {TOKEN_FILE} names"


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a JSON Web Token, which nobody has verified; empty for another kind of token."""
    parts = token.split(".")
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return found if isinstance(found, dict) else {}

"""`Tickets`: the Kerberos tickets of this process, from a keytab or from a ticket cache.

In come a keytab and a principal from the site's settings, or nothing: then the process's own ticket cache counts, of
any type that MIT Kerberos knows. Out go the principal, the beginning of a handshake with a service, and a copy of the
tickets for a program that reads other caches. Each failure is one sentence with the next step.
"""

import hashlib
import logging
import os
import re
import shlex
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import KerberosRefused, TfYarnError, TicketMissing
from ..configuration import system_user

if TYPE_CHECKING:
    from . import gssapi

logger = logging.getLogger(__name__)

_CONFIGURATION = "/etc/krb5.conf (or $KRB5_CONFIG)"
_SOURCES = "name a keytab (keytab in site.yaml, or $KRB5_CLIENT_KTNAME)"
#: The first error code of libkrb5, as GSSAPI shows it: without a sign.
_FIRST = 2**32 - 1765328384
#: GSS_S_CREDENTIALS_EXPIRED, a status of GSSAPI.
_EXPIRED = 11 << 16
#: The principal that libkrb5's text names where a ticket has to lead from one realm to another.
_CROSSING = re.compile(r"krbtgt/(?P<realm>[^@\s]+)@(?P<theirs>[^@\s]+)")
#: What a service answers that offers SPNEGO, with its own token.
NEGOTIATE = re.compile(r"Negotiate\b[ \t]*([A-Za-z0-9+/=]*)", re.IGNORECASE)
#: A keytab of this version begins with these bytes.
_KEYTAB = b"\x05\x02"


@dataclass(frozen=True)
class _Cause:
    """What an error of libkrb5 means, and what helps.

    Attributes
    ----------
    meaning : str
        A template; ``{who}`` is the principal or "this user", ``{host}`` the host of the service.
    advice : str
        A sentence without a full stop.
    lasting : bool
        Whether the same call fails until a person has changed something.
    command : str
        A template for the command that helps: ``{kinit}`` gets the ticket again, ``{klist}`` shows ticket or keytab.
    """

    meaning: str
    advice: str
    lasting: bool = False
    command: str = "ytf doctor"


_OLD_KEY = _Cause(
    "the KDC refuses the key of {who}",
    "The keytab is older than the key in the KDC: ask the administrator of Kerberos for a new one",
    True,
    "{kinit}",
)
_NO_KDC = _Cause("no KDC answers", f"Check the network, and the kdc lines of the realm in {_CONFIGURATION}")
_NO_REALM = _Cause("Kerberos does not know where the KDC is", f"Check the realm in {_CONFIGURATION}")
_CLOCK = _Cause(
    "the clocks of this machine and of Kerberos differ by too much",
    "Set this machine's clock, for example with chronyd",
)
_NO_TICKET = _Cause("there is no valid Kerberos ticket", f"Run kinit, or {_SOURCES}", True, "{kinit}")
#: Something, such as a timer, has filled the cache, and may do so again.
_EXPIRED_TICKET = replace(_NO_TICKET, lasting=False)
_NO_SERVICE = _Cause(
    "Kerberos gives no ticket for HTTP/{host}",
    "The address must have the host name that the service's principal has, and the ticket be of the "
    f"cluster's realm; check the name in the address and {_CONFIGURATION}",
    command="{klist}",
)
_OTHER_REALM = _Cause(
    "your ticket is of realm {theirs}, the cluster's is {realm}",
    "Get a ticket of {realm}, or ask the administrators of Kerberos to let it trust {theirs}",
    True,
    "kinit {name}@{realm}",
)
#: The number of an error within libkrb5's table. RFC 4120, section 7.5.9, has those below 128; krb5.h has the others.
_CAUSES = {
    6: _Cause(
        "the KDC does not know {who}", "Correct the principal, or ask the administrator of Kerberos", True, "{klist}"
    ),
    7: _NO_SERVICE,
    14: _Cause(
        "the KDC and this machine have no encryption type in common",
        f"Check permitted_enctypes in {_CONFIGURATION}, and the types of the keys: klist -ket FILE",
        True,
    ),
    18: _Cause("the KDC has locked {who}", "Ask the administrator of Kerberos", True, "{kinit}"),
    23: _Cause(
        "the password of {who} has expired", "Run kpasswd, or ask the administrator of Kerberos", True, "kpasswd"
    ),
    24: _OLD_KEY,
    31: _OLD_KEY,
    32: _EXPIRED_TICKET,
    33: _CLOCK,
    37: _CLOCK,
    135: _NO_REALM,
    136: _NO_REALM,
    148: _CLOCK,
    154: _NO_REALM,
    156: _NO_KDC,
    220: _NO_KDC,
    224: _NO_REALM,
}

#: For each cache of this process, by its name; empty for that of the environment.
_locks: dict[str, threading.Lock] = {}


@dataclass(frozen=True)
class Tickets:
    """Where the tickets of this process come from.

    Parameters
    ----------
    keytab : str, optional
        A file with the principal's keys. Its tickets stay in this process's memory and are renewed from it.
        Default: the ticket cache of the environment ($KRB5CCNAME), which $KRB5_CLIENT_KTNAME may fill.
    principal : str, optional
        Default: the first one in the keytab, or that of the ticket cache.
    """

    keytab: str | None = None
    principal: str | None = None

    def inquire(self) -> tuple[str, int]:
        """Return the principal, ``ann@EXAMPLE.COM``, and the seconds for which its ticket is still valid.

        Get a ticket from the keytab if there is none.

        Raises
        ------
        TicketMissing
            There is no valid ticket; the same call succeeds with a new one.
        KerberosRefused
            The machine lacks the library, or the keytab is of no use.
        """
        return self._credentials()[1:]

    def begin(self, host: str) -> "tuple[gssapi.Context, bytes]":
        """Return a SPNEGO context with the web service of a host, and the first token for it.

        Raises
        ------
        TicketMissing
            There is no valid ticket, or the KDC gives none for this service.
        KerberosRefused
            As `inquire`.
        """
        from . import gssapi

        credentials, name, _ = self._credentials()
        try:
            return self._begin(f"HTTP@{host}", credentials)
        except gssapi.GssError as error:
            # libkrb5 takes the name of a reverse lookup, which no service may have; Hadoop's own clients do without.
            with suppress(gssapi.GssError, OSError):
                if socket.gethostbyaddr(host)[0] != host:
                    return self._begin(f"HTTP/{host}@", credentials)
            raise self._explain(error, host, name) from error

    def _begin(self, service: str, credentials: "gssapi.GssCredentials") -> "tuple[gssapi.Context, bytes]":
        from . import gssapi

        # SPNEGO hides Kerberos's error codes; its own step finds this ticket in the cache.
        gssapi.Context(service, credentials, gssapi.KERBEROS).step()
        with self._alone():
            for_spnego = gssapi.GssCredentials(self.principal, self._store(), gssapi.SPNEGO)
        context = gssapi.Context(service, for_spnego)
        token = context.step()
        logger.debug("got a ticket for %s", service)
        return context, token

    def copy_to(self, path: Path) -> None:
        """Write the tickets to a file that only this user can read, a cache of the type FILE.

        Raises
        ------
        TicketMissing, KerberosRefused
            As `inquire`.
        """
        from . import gssapi

        credentials, *_ = self._credentials()
        try:
            credentials.copy_to(f"FILE:{path}")
        except gssapi.GssError as error:
            raise self._explain(error) from error

    def _credentials(self) -> "tuple[gssapi.GssCredentials, str, int]":
        from . import gssapi

        try:
            with self._alone():
                credentials = gssapi.GssCredentials(self.principal, self._store())
                name, left = credentials.inquire()
        except gssapi.GssError as error:
            raise self._explain(error) from error
        logger.debug("the Kerberos ticket of %s is valid for %s s", name, left)
        return credentials, name, left

    def _alone(self) -> threading.Lock:
        """Return the lock of the store: the library empties a cache in memory before it puts new tickets in."""
        return _locks.setdefault(self._store().get("ccache", ""), threading.Lock())

    def _store(self) -> Mapping[str, str]:
        """Return MIT's credential store: one cache in memory for each keytab and principal."""
        if not self.keytab:
            return {}
        name = hashlib.sha256(f"{self.keytab}\0{self.principal or ''}".encode()).hexdigest()[:16]
        return {"client_keytab": self.keytab, "ccache": f"MEMORY:tf_yarn_ops-{name}"}

    def _explain(self, error: "gssapi.GssError", host: str = "", principal: str = "") -> TfYarnError:
        """Return our error for one of the library; `principal` is that of the ticket, if there is one."""
        expired = error.major & 0xFFFF0000 == _EXPIRED
        default = _EXPIRED_TICKET if expired else _NO_SERVICE if host else _NO_TICKET
        cause = default if expired else _CAUSES.get(error.minor - _FIRST, default)
        keytab = self.keytab or os.environ.get("KRB5_CLIENT_KTNAME", "")
        wanted = self.principal or principal
        at, whose = f" -kt {shlex.quote(keytab)}" if keytab else "", f" {shlex.quote(wanted)}" if wanted else ""
        values = {
            "who": wanted or "this user",
            "host": host,
            "name": wanted.partition("@")[0],
            "kinit": f"kinit{at}{whose}",
            "klist": f"klist{at}",
        }
        if keytab and cause in (_NO_TICKET, _EXPIRED_TICKET) and (useless := keytab_fault(keytab, self.principal)):
            return KerberosRefused(useless).with_command(values["klist"])
        crossing = _CROSSING.search(str(error))
        if crossing and cause is _NO_SERVICE and crossing["realm"] != crossing["theirs"]:
            cause, values = _OTHER_REALM, values | crossing.groupdict()
        message = f"{cause.meaning} ({{text}}). {cause.advice}".format(
            text="it has expired" if expired else error, **values
        )
        found = KerberosRefused(message) if cause.lasting else TicketMissing(message)
        return found.with_command(cause.command.format(**values))


#: The tickets of the process's own cache.
PROCESS_TICKETS = Tickets()


def short_name(name: str) -> str:
    """Return the first part of a principal: ``ann`` of ``ann/host@EXAMPLE.COM``."""
    return re.split("[/@]", name, maxsplit=1)[0]


def wants_negotiation(header: str) -> bool:
    """Return whether a ``WWW-Authenticate`` header offers SPNEGO."""
    return bool(NEGOTIATE.search(header))


def keytab_fault(keytab: str, principal: str | None) -> str | None:
    """Return what is wrong with a keytab, as a sentence; None if it has a key of the principal."""
    kind, colon, rest = keytab.partition(":")
    if colon and kind.isupper() and kind not in ("FILE", "WRFILE"):
        return None
    path = Path(rest if colon and kind.isupper() else keytab)
    try:
        content = path.read_bytes()
    except OSError as error:
        return (
            f"the keytab {path} can't be read ({error.strerror}). Correct the path, or let the user "
            f"{system_user()} read the file"
        )
    try:
        found = set(_principals(content))
    except (struct.error, UnicodeDecodeError):
        return f"the file {path} is not a keytab. Ask the administrator of Kerberos for a new one"
    known = {name.rpartition("@")[0] for name in found} if principal and "@" not in principal else found
    if not found or (principal and principal not in known):
        return (
            f"the keytab {path} has no key of {principal or 'any principal'}. "
            f"'klist -k {path}' lists its principals; correct keytab or principal"
        )
    return None


def _principals(content: bytes) -> Iterator[str]:
    """Yield the principals in a keytab.

    References
    ----------
    MIT Kerberos, "Keytab file format".
    """
    if content[:2] != _KEYTAB:
        raise struct.error("another version of the format")
    at = 2
    while at < len(content):
        (size,) = struct.unpack_from(">i", content, at)
        at += 4
        if at + abs(size) > len(content):
            raise struct.error("a record without an end")
        if size > 0:
            (parts,) = struct.unpack_from(">H", content, at)
            texts, place = [], at + 2
            for _ in range(parts + 1):  # the realm stands first
                (length,) = struct.unpack_from(">H", content, place)
                texts.append(content[place + 2 : place + 2 + length].decode())
                place += 2 + length
            yield f"{'/'.join(texts[1:])}@{texts[0]}"
        at += abs(size) or len(content)

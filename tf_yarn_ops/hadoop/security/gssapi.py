"""MIT Kerberos's library ``libgssapi_krb5`` by ctypes: credentials and security contexts, without a compiled package.

Input: principals, credential stores and host names. Output: tokens, or a `GssError` with the code of Kerberos. The
library is opened at the first use. Every object releases what the library has allocated for it.

References
----------
RFC 2743 and 2744 (GSS-API), RFC 4178 (SPNEGO), and MIT's "Developing with GSSAPI" for credential stores.
"""

import ctypes
import functools
import weakref
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any

from ...errors import KerberosRefused

LIBRARY = "libgssapi_krb5.so.2"
INSTALL = "libgssapi-krb5-2 (apt-get) or krb5-libs (dnf)"

#: Objects and object identifiers of the library, as it declares them.
KERBEROS = bytes.fromhex("2a864886f712010202")  # 1.2.840.113554.1.2.2
SPNEGO = bytes.fromhex("2b0601050502")  # 1.3.6.1.5.5.2
_PRINCIPAL = bytes.fromhex("2a864886f71201020201")  # GSS_KRB5_NT_PRINCIPAL_NAME
_HOST_BASED_SERVICE = bytes.fromhex("2a864886f71201020104")  # GSS_C_NT_HOSTBASED_SERVICE

_INITIATE = 1
_MUTUAL, _SEQUENCE = 2, 8
_CONTINUE_NEEDED = 1
#: The upper half of a status is an error of the call or of the routine; the lower half is information.
_ERRORS = 0xFFFF0000
_FOREVER = 0xFFFFFFFF
_MAJOR_CODE, _MINOR_CODE = 1, 2


class GssError(Exception):
    """An error of the library.

    Parameters
    ----------
    major : int
        GSSAPI's status.
    minor : int
        The status of the mechanism: for Kerberos the error code of libkrb5.
    text : str
        The text of the library, on one line.
    """

    def __init__(self, major: int, minor: int, text: str):
        super().__init__(text)
        self.major = major
        self.minor = minor


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _KeyValue(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _KeyValues(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_KeyValue)))


_STATUS, _HANDLE = POINTER(c_uint32), POINTER(c_void_p)
#: The types of the parameters of each function, the status of the mechanism left out: it always comes first.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "gss_import_name": (POINTER(_Buffer), POINTER(_Oid), _HANDLE),
    "gss_display_name": (c_void_p, POINTER(_Buffer), c_void_p),
    "gss_release_name": (_HANDLE,),
    "gss_release_buffer": (POINTER(_Buffer),),
    "gss_display_status": (c_uint32, c_int, POINTER(_Oid), _STATUS, POINTER(_Buffer)),
    "gss_acquire_cred_from": (
        c_void_p,
        c_uint32,
        POINTER(_OidSet),
        c_int,
        POINTER(_KeyValues),
        _HANDLE,
        c_void_p,
        c_void_p,
    ),
    "gss_inquire_cred": (c_void_p, _HANDLE, _STATUS, c_void_p, c_void_p),
    "gss_store_cred_into": (
        c_void_p,
        c_int,
        POINTER(_Oid),
        c_uint32,
        c_uint32,
        POINTER(_KeyValues),
        c_void_p,
        c_void_p,
    ),
    "gss_release_cred": (_HANDLE,),
    "gss_init_sec_context": (
        c_void_p,
        _HANDLE,
        c_void_p,
        POINTER(_Oid),
        c_uint32,
        c_uint32,
        c_void_p,
        POINTER(_Buffer),
        c_void_p,
        POINTER(_Buffer),
        c_void_p,
        c_void_p,
    ),
    "gss_delete_sec_context": (_HANDLE, c_void_p),
}


@functools.cache  # without a lock, which a finalizer in the thread that holds it would wait for
def library() -> ctypes.CDLL:
    """Return the opened library.

    Raises
    ------
    KerberosRefused
        The machine lacks it.
    """
    try:
        found = ctypes.CDLL(LIBRARY)
        for name, types in _FUNCTIONS.items():
            function = getattr(found, name)
            function.argtypes, function.restype = (_STATUS, *types), c_uint32
    except (OSError, AttributeError) as error:
        raise KerberosRefused(
            f"the cluster wants Kerberos, and this machine lacks MIT Kerberos's library {LIBRARY}: "
            f"install {INSTALL} ({error})"
        ) from error
    return found


class GssCredentials:
    """The credentials of a user for its own requests: a ticket, or a keytab that gets tickets.

    Parameters
    ----------
    principal : str, optional
        Default: the principal of the store.
    store : mapping of str to str, optional
        MIT's credential store: ``ccache``, ``client_keytab``. Default: those of the process's environment.
    mechanism : bytes, optional
        Object identifier. Default: Kerberos.

    Raises
    ------
    GssError
        There are no credentials.
    """

    def __init__(
        self, principal: str | None = None, store: Mapping[str, str] | None = None, mechanism: bytes = KERBEROS
    ):
        self.handle = c_void_p()
        name = _import_name(principal, _PRINCIPAL) if principal else None
        oids = _OidSet(1, ctypes.pointer(_oid(mechanism)))
        call(
            "gss_acquire_cred_from",
            name and name.handle,
            _FOREVER,
            oids,
            _INITIATE,
            _store(store or {}),
            byref(self.handle),
            None,
            None,
        )
        _release_later(self, "gss_release_cred", self.handle)

    def inquire(self) -> tuple[str, int]:
        """Return the principal, and the seconds for which its ticket is valid; gets a ticket from a keytab."""
        name, left = _Name(), c_uint32()
        call("gss_inquire_cred", self.handle, byref(name.handle), byref(left), None, None)
        return str(name), left.value

    def copy_to(self, ccache: str) -> None:
        """Write the tickets to another cache, such as ``FILE:/tmp/x``; replace what it holds."""
        call(
            "gss_store_cred_into", self.handle, _INITIATE, _oid(KERBEROS), 1, 1, _store({"ccache": ccache}), None, None
        )


class Context:
    """The security context with a service, of the side that begins.

    Parameters
    ----------
    service : str
        ``HTTP@host``, whose host the library may look up, or a principal: ``HTTP/host@`` in a realm that the KDC finds.
    credentials : GssCredentials
    mechanism : bytes, optional
        Object identifier. Default: SPNEGO.
    """

    def __init__(self, service: str, credentials: GssCredentials, mechanism: bytes = SPNEGO):
        self._name = _import_name(service, _PRINCIPAL if "/" in service else _HOST_BASED_SERVICE)
        self._credentials = credentials
        self._mechanism = mechanism
        self._handle = c_void_p()
        _release_later(self, "gss_delete_sec_context", self._handle, None)
        #: Whether both sides have proven their identity.
        self.complete = False

    def step(self, token: bytes = b"") -> bytes:
        """Take the token of the service (none in the first step); return the next token for it.

        Raises
        ------
        GssError
            There is no ticket for this service, or its token proves nothing.
        """
        answer = _Answer()
        status = call(
            "gss_init_sec_context",
            self._credentials.handle,
            byref(self._handle),
            self._name.handle,
            _oid(self._mechanism),
            _MUTUAL | _SEQUENCE,
            0,
            None,
            _buffer(token),
            None,
            byref(answer.buffer),
            None,
            None,
            mechanism=self._mechanism,
        )
        self.complete = not status & _CONTINUE_NEEDED
        return answer.take()


class _Name:
    def __init__(self) -> None:
        self.handle = c_void_p()
        _release_later(self, "gss_release_name", self.handle)

    def __str__(self) -> str:
        answer = _Answer()
        call("gss_display_name", self.handle, byref(answer.buffer), None)
        return answer.take().decode("utf-8", "replace")


class _Answer:
    """A buffer that the library fills."""

    def __init__(self) -> None:
        self.buffer = _Buffer()

    def take(self) -> bytes:
        """Return the content, and release the buffer."""
        content = ctypes.string_at(self.buffer.value, self.buffer.length) if self.buffer.value else b""
        library().gss_release_buffer(byref(c_uint32()), byref(self.buffer))
        return content


def call(function: str, *arguments: Any, mechanism: bytes = KERBEROS) -> int:
    """Call a function of the library; return its status.

    Raises
    ------
    GssError
        The status is an error.
    """
    minor = c_uint32()
    status = int(getattr(library(), function)(byref(minor), *arguments))
    if status & _ERRORS:
        raise GssError(status, minor.value, _text(status, minor.value, mechanism))
    return status


def _text(major: int, minor: int, mechanism: bytes) -> str:
    """Return the mechanism's own text of a status, or the general one if it has none."""
    texts = [_status_text(minor, _MINOR_CODE, mechanism)] if minor else []
    text = next((text for text in texts if text and not text.startswith("Unknown error")), "")
    return " ".join((text or _status_text(major, _MAJOR_CODE, mechanism)).split())[:300]


def _status_text(status: int, kind: int, mechanism: bytes) -> str:
    """Return the first line of gss_display_status."""
    answer, more, minor = _Answer(), c_uint32(), c_uint32()
    failed = library().gss_display_status(
        byref(minor), status, kind, _oid(mechanism), byref(more), byref(answer.buffer)
    )
    return "" if failed & _ERRORS else answer.take().decode("utf-8", "replace")


def _import_name(text: str, kind: bytes) -> _Name:
    name = _Name()
    call("gss_import_name", _buffer(text.encode()), _oid(kind), byref(name.handle))
    return name


def _oid(value: bytes) -> _Oid:
    return _Oid(len(value), value)


def _buffer(content: bytes) -> _Buffer:
    # The structure keeps a reference to the bytes only through this attribute.
    buffer = _Buffer(len(content), ctypes.cast(c_char_p(content), c_void_p))
    buffer.content = content
    return buffer


def _store(entries: Mapping[str, str]) -> _KeyValues:
    elements = (_KeyValue * len(entries))(*(_KeyValue(key.encode(), value.encode()) for key, value in entries.items()))
    return _KeyValues(len(entries), elements)


def _release_later(owner: object, function: str, *arguments: Any) -> None:
    """Release an object of the library with the last reference to its owner."""
    finalizer = weakref.finalize(owner, getattr(library(), function), byref(c_uint32()), *arguments)
    finalizer.atexit = False  # the end of the process releases everything

"""The service's side of GSSAPI: who has sent a token, and the answer to it."""

import ctypes
from ctypes import byref, c_uint32, c_void_p

from tf_yarn_ops.hadoop.security import gssapi

_ACCEPT, _CONTINUE_NEEDED = 2, 1


def accept(token, keytab):
    """Return the principal that sent a first token (None while the handshake goes on), and the token of the answer."""
    library = gssapi.library()
    library.gss_accept_sec_context.argtypes = (
        ctypes.POINTER(c_uint32),
        ctypes.POINTER(c_void_p),
        c_void_p,
        ctypes.POINTER(gssapi._Buffer),
        c_void_p,
        ctypes.POINTER(c_void_p),
        c_void_p,
        ctypes.POINTER(gssapi._Buffer),
        c_void_p,
        c_void_p,
        c_void_p,
    )
    library.gss_accept_sec_context.restype = c_uint32
    credentials, context, sender, answer = c_void_p(), c_void_p(), gssapi._Name(), gssapi._Answer()
    try:
        gssapi.call(
            "gss_acquire_cred_from",
            None,
            gssapi._FOREVER,
            None,
            _ACCEPT,
            gssapi._store({"keytab": keytab}),
            byref(credentials),
            None,
            None,
        )
        status = gssapi.call(
            "gss_accept_sec_context",
            byref(context),
            credentials,
            gssapi._buffer(token),
            None,
            byref(sender.handle),
            None,
            byref(answer.buffer),
            None,
            None,
            None,
        )
        return (None if status & _CONTINUE_NEEDED else str(sender)), answer.take()
    finally:
        library.gss_release_cred(byref(c_uint32()), byref(credentials))
        library.gss_delete_sec_context(byref(c_uint32()), byref(context), None)

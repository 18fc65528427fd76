"""`explain_tls_failure`: why a TLS connection failed, with the facts of the server's certificate and what to do.

OpenSSL reports that a certificate is refused, but neither its names nor its dates. A second connection, which verifies
nothing and sends nothing, reads them.
"""

import contextlib
import re
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Fault, SpecInvalid, why_unreadable
from ..runtime.common.clock import utc_time
from .site import SiteFault

if TYPE_CHECKING:
    from cryptography import x509

_PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
#: Seconds for the connection that reads a certificate.
_SECONDS = 3.0
#: What a refused certificate means and what helps, by OpenSSL's code: its dates, another host name or IP address.
_REFUSALS = {
    9: "its certificate is not valid before {begins}; check this machine's clock",
    10: (
        "its certificate, or one of its CA's, has expired ({ends}); the administrator has to renew it, if this "
        "machine's clock is right"
    ),
    **dict.fromkeys(
        (62, 64),
        "its certificate is for {names}, and not for {host}; write a name of the certificate in the address, or let "
        "the administrator add this name to the certificate",
    ),
}
_UNTRUSTED = (
    "its certificate is not trusted ({problem}); set ca_file in site.yaml to a PEM file with the certificate of the CA "
    "that signed it, {issuer}"
)
#: What another failure of a handshake means, by OpenSSL's reason.
_FAILURES = {
    **dict.fromkeys(
        ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"),
        "it does not speak https; if it serves plain HTTP, write http://{host}:{port}",
    ),
    **dict.fromkeys(
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"),
        "it ends the TLS handshake ({reason}); if it wants certificates of its clients, use another port",
    ),
}


def not_certificates(file: str, error: Exception) -> SpecInvalid:
    """Return the fault of a ``ca_file``."""
    return SpecInvalid(Fault("ca_file", SiteFault.NOT_CERTIFICATES, {"file": file, "error": why_unreadable(error)}))


def read_authorities(file: str) -> str:
    """Return the certificates of a ``ca_file``, and nothing else: the file may hold a key too.

    Raises
    ------
    SpecInvalid
        The file can't be read.
    """
    try:
        found = _PEM.findall(Path(file).read_text(encoding="latin-1"))
    except OSError as error:
        raise not_certificates(file, error) from error
    return "".join(f"{certificate}\n" for certificate in found)


def explain_tls_failure(error: BaseException, host: str, port: int, encrypted: bool) -> str:
    """Return why a connection failed, if TLS is the cause.

    Parameters
    ----------
    error : Exception
        The error, with the cause below it.
    host, port : str, int
        The address of the connection.
    encrypted : bool
        Whether the connection was made for https.

    Returns
    -------
    str
        A part of a sentence; empty if TLS is not the cause.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        facts = read_certificate(host, port)
        if facts is None:
            return f"its certificate is not accepted ({cause.verify_message})"
        template = _REFUSALS.get(cause.verify_code, _UNTRUSTED)
        return template.format(host=host, problem=cause.verify_message, **facts)
    if isinstance(cause, ssl.SSLError):
        return _FAILURES.get(cause.reason, "").format(host=host, port=port, reason=cause.reason)
    if not encrypted and read_certificate(host, port) is not None:
        return f"it speaks https, not plain HTTP; write https://{host}:{port}"
    return ""


def read_certificate(host: str, port: int) -> dict[str, str] | None:
    """Return the facts of the certificate that a server shows, for `_REFUSALS`; None if there is no answer in TLS."""
    from cryptography import x509

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        contextlib.suppress(OSError, ValueError),
        socket.create_connection((host, port), _SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        found = x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
        return {
            "names": ", ".join(_names(found)) or "no name at all",
            "issuer": found.issuer.rfc4514_string(),
            "begins": utc_time(found.not_valid_before_utc.timestamp()),
            "ends": utc_time(found.not_valid_after_utc.timestamp()),
        }
    return None


def _names(certificate: "x509.Certificate") -> tuple[str, ...]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()  # a name in the subject alone does not count any longer
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))

"""The certificate and key of one job; Skein's application master, the coordinator and the agents trust no other.

They are made for each job. The key exists only in the application's directory (700, files 600) and in the containers.
"""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

#: A node whose clock is late by less than a day still accepts the certificate.
BACKDATED = timedelta(hours=24)
#: Longer than any job; HDFS delegation tokens end after seven days.
VALID = timedelta(days=365)
COMMON_NAME = "skein-internal"


class TlsPair(NamedTuple):
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "TlsPair(...)"


def mint() -> TlsPair:
    """Make a self-signed ECDSA P-256 certificate and its key.

    Returns
    -------
    TlsPair
        The key is in PKCS#8, as Netty in Skein's application master demands.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.now(timezone.utc)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(COMMON_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return TlsPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )

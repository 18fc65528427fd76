"""The private certificate authority of a cluster with HTTPS, and the key stores of its daemons.

The authority's key is used once and never written.
"""

import hashlib
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

#: A cluster's folder may be used for a long time; the clock of a machine may be set back.
_VALID, _BACKDATED = timedelta(days=3650), timedelta(days=1)
_ADDRESS = "127.0.0.1"
#: Hadoop demands passwords. They stand in its configuration beside the stores, whose modes protect them.
_PASSWORD = "minicluster"


@dataclass(frozen=True)
class Stores:
    """Files of the authority and the daemons in one folder."""

    folder: Path

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority (PEM), which clients trust."""
        return self.folder / "ca.pem"

    @property
    def key_store(self) -> Path:
        """The daemons' key and certificate (PKCS 12)."""
        return self.folder / "daemons.p12"

    @property
    def trust_store(self) -> Path:
        """The certificate of the authority for Java (JKS)."""
        return self.folder / "trust.jks"


def make_stores(stores: Stores, hosts: Sequence[str]) -> None:
    """Make the authority and one certificate for all daemons, on these hosts and 127.0.0.1, unless they exist."""
    if stores.trust_store.exists():  # the last file that is written
        return
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.now(timezone.utc)

    def build(title: str, key: ec.EllipticCurvePrivateKey, issuer: x509.Name | None) -> x509.CertificateBuilder:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
        return (
            x509.CertificateBuilder()
            .subject_name(name).issuer_name(issuer or name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED).not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )  # fmt: skip

    def usage(signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=not signs_certificates, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
            content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip

    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = (
        build("minicluster CA", authority_key, None)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    names = [*map(x509.DNSName, hosts), x509.IPAddress(ip_address(_ADDRESS))]
    certificate = (
        build("minicluster", key, authority.subject)
        .add_extension(identifier, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    stores.folder.mkdir(mode=0o700, exist_ok=True)
    _write(
        stores.key_store,
        pkcs12.serialize_key_and_certificates(
            b"daemons", key, certificate, [authority], serialization.BestAvailableEncryption(_PASSWORD.encode())
        ),
    )
    stores.ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    _write(stores.trust_store, _build_java_store(authority.public_bytes(serialization.Encoding.DER)))


def build_https_properties(stores: Stores) -> dict[str, dict[str, str]]:
    """Return the properties of HTTPS by file name."""
    trust = {"location": str(stores.trust_store), "password": _PASSWORD, "type": "jks"}
    key = {"location": str(stores.key_store), "password": _PASSWORD, "keypassword": _PASSWORD, "type": "pkcs12"}
    return {
        "core-site.xml": {"hadoop.ssl.require.client.cert": "false"},
        "hdfs-site.xml": {"dfs.http.policy": "HTTPS_ONLY"},
        "yarn-site.xml": {"yarn.http.policy": "HTTPS_ONLY"},
        "ssl-server.xml": {f"ssl.server.keystore.{name}": value for name, value in key.items()}
        | {f"ssl.server.truststore.{name}": value for name, value in trust.items()},
        "ssl-client.xml": {f"ssl.client.truststore.{name}": value for name, value in trust.items()},
    }


def _build_java_store(certificate: bytes) -> bytes:
    """Return a Java key store (JKS) that trusts a certificate in DER.

    Java believes certificates of a PKCS 12 store only with an attribute of its own, which ``cryptography`` cannot write
    before its release 45.

    References
    ----------
    JDK: ``sun.security.provider.JavaKeyStore.engineStore``.
    """

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    entry = struct.pack(">I", 2) + text("ca") + struct.pack(">Q", int(time.time() * 1000))
    entry += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    content = struct.pack(">III", 0xFEEDFEED, 2, 1) + entry
    return content + hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    with open(fresh, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
    os.replace(fresh, path)

"""The certificate of one job: what it is, and that TLS trusts it and nothing else."""

import socket
import ssl
import threading
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tf_yarn_ops.submit.certificate import mint


def context(credentials, folder, purpose):
    certificate, key = folder / "c.crt", folder / "c.pem"
    certificate.write_bytes(credentials.certificate)
    key.write_bytes(credentials.key)
    made = ssl.SSLContext(purpose)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(certificate, key)
    made.load_verify_locations(certificate)
    return made


def talk(server_credentials, client_credentials, tmp_path):
    """Return what the server read from the client, or raise what TLS said."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)
    (tmp_path / "s").mkdir()
    (tmp_path / "c").mkdir()
    accepting = context(server_credentials, tmp_path / "s", ssl.PROTOCOL_TLS_SERVER)
    failures = []

    def serve():
        try:
            with accepting.wrap_socket(listener.accept()[0], server_side=True) as stream:
                stream.sendall(stream.recv(10))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        calling = context(client_credentials, tmp_path / "c", ssl.PROTOCOL_TLS_CLIENT)
        with socket.create_connection(listener.getsockname(), timeout=60) as raw, calling.wrap_socket(raw) as stream:
            stream.sendall(b"hello")
            return stream.recv(10)
    finally:
        thread.join(60)
        listener.close()


def test_both_sides_trust_the_jobs_certificate(tmp_path):
    credentials = mint()
    assert talk(credentials, credentials, tmp_path) == b"hello"


def test_another_jobs_certificate_is_not_trusted(tmp_path):
    with pytest.raises(ssl.SSLError):
        talk(mint(), mint(), tmp_path)


def test_it_is_ecdsa_valid_since_yesterday_and_for_skein():
    now = datetime.now(timezone.utc)
    credentials = mint()
    certificate = x509.load_pem_x509_certificate(credentials.certificate)
    assert isinstance(certificate.public_key().curve, ec.SECP256R1)
    assert timedelta(hours=23, minutes=50) < now - certificate.not_valid_before_utc <= timedelta(hours=24, seconds=1)
    assert certificate.not_valid_after_utc > now + timedelta(days=30)
    assert certificate.subject.rfc4514_string() == "CN=skein-internal"
    assert credentials.key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert load_pem_private_key(credentials.key, None).public_key() == certificate.public_key()


def test_every_job_has_its_own_and_the_key_is_not_printed():
    first, second = mint(), mint()
    assert first.key != second.key
    assert "PRIVATE" not in repr(first) and "PRIVATE" not in f"{first}"

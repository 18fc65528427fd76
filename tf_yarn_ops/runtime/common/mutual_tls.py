"""The contexts in which two programs of a job prove to each other that they hold the job's key."""

import os
import ssl

from .contract import CERTIFICATE_FILE, KEY_FILE


def server_context() -> ssl.SSLContext:
    """Return the context that accepts only the job's own certificate."""
    return _with_the_jobs_key(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def client_context(folder: str = "") -> ssl.SSLContext:
    """Return the context of a client that shows, and expects, the job's own certificate; its files are in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _with_the_jobs_key(context, folder)


def _with_the_jobs_key(context: ssl.SSLContext, folder: str = "") -> ssl.SSLContext:
    certificate, key = (os.path.join(folder, name) for name in (CERTIFICATE_FILE, KEY_FILE))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate)
    context.load_cert_chain(certificate, key)
    return context

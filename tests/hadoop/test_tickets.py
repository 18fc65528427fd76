"""Keytabs and error codes, without a KDC."""

import contextlib
import struct
import threading

import pytest

from tf_yarn_ops.errors import KerberosRefused, SpecInvalid, TicketMissing
from tf_yarn_ops.hadoop.security import gssapi
from tf_yarn_ops.hadoop.security.gssapi import GssError
from tf_yarn_ops.hadoop.security.tickets import Tickets, keytab_fault
from tf_yarn_ops.hadoop.site import Site

FIRST = 2**32 - 1765328384


def entry(*texts):
    """Return one record of a keytab: the realm, then the parts of the name."""
    body = struct.pack(">H", len(texts) - 1)
    body += b"".join(struct.pack(">H", len(text)) + text.encode() for text in texts)
    body += struct.pack(">IIBHH", 1, 0, 2, 18, 4) + b"key!"
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def keytab(tmp_path):
    path = tmp_path / "ann.keytab"
    hole = struct.pack(">i", -6) + b"erased"
    path.write_bytes(b"\5\2" + hole + entry("EXAMPLE.COM", "ann") + entry("EXAMPLE.COM", "HTTP", "host"))
    return path


@pytest.mark.parametrize("principal", [None, "ann", "ann@EXAMPLE.COM", "HTTP/host@EXAMPLE.COM", "HTTP/host"])
@pytest.mark.parametrize("kind", ["", "FILE:"])
def test_a_keytab_with_the_principal(keytab, principal, kind):
    assert keytab_fault(f"{kind}{keytab}", principal) is None


@pytest.mark.parametrize("principal", ["bob@EXAMPLE.COM", "ann@OTHER.COM", "host", "an"])
def test_a_keytab_without_the_principal(keytab, principal):
    said = keytab_fault(str(keytab), principal)
    assert said.startswith(f"the keytab {keytab} has no key of {principal}. 'klist -k {keytab}' lists")
    assert "key!" not in said and "HTTP/host" not in said


@pytest.mark.parametrize(
    "content, said",
    [
        (b"\5\2", "has no key of any principal"),
        (b"", "is not a keytab"),
        (b"root:x:0", "is not a keytab"),
        (b"\5\2" + entry("EXAMPLE.COM", "ann")[:-12], "is not a keytab"),
        (b"\5\2" + struct.pack(">i", 3) + b"\0\1\xff", "is not a keytab"),
        (b"\5\2\0\0", "is not a keytab"),
    ],
)
def test_file_without_keys_is_refused(tmp_path, content, said):
    path = tmp_path / "odd"
    path.write_bytes(content)
    assert said in (keytab_fault(str(path), None) or "")


def test_a_missing_keytab(tmp_path):
    said = keytab_fault(f"{tmp_path}/none", None)
    assert said.startswith(
        f"the keytab {tmp_path}/none can't be read (No such file or directory). Correct the path, or"
    )


def test_store_that_is_not_a_file_is_left_to_the_library():
    assert keytab_fault("MEMORY:x", "ann") is None


@pytest.mark.parametrize(
    "number, kind, said",
    [
        (6, KerberosRefused, "the KDC does not know ann@EXAMPLE.COM (text). Correct the principal"),
        (7, TicketMissing, "Kerberos gives no ticket for HTTP/rm (text). The address must have the host name"),
        (14, KerberosRefused, "no encryption type in common (text). Check permitted_enctypes"),
        (18, KerberosRefused, "the KDC has locked ann@EXAMPLE.COM (text). Ask the administrator"),
        (23, KerberosRefused, "the password of ann@EXAMPLE.COM has expired (text). Run kpasswd"),
        (24, KerberosRefused, "the KDC refuses the key of ann@EXAMPLE.COM (text). The keytab is older"),
        (31, KerberosRefused, "the KDC refuses the key of ann@EXAMPLE.COM (text). The keytab is older"),
        (32, TicketMissing, "there is no valid Kerberos ticket (text). Run kinit"),
        (
            37,
            TicketMissing,
            "the clocks of this machine and of Kerberos differ by too much (text). Set this machine's clock",
        ),
        (148, TicketMissing, "the clocks of this machine and of Kerberos differ by too much (text)"),
        (154, TicketMissing, "Kerberos does not know where the KDC is (text). Check the realm in /etc/krb5.conf"),
        (156, TicketMissing, "no KDC answers (text). Check the network"),
        (77, TicketMissing, "Kerberos gives no ticket for HTTP/rm (text)"),
    ],
)
def test_each_error_has_a_sentence_with_the_next_step(number, kind, said):
    error = Tickets(principal="ann@EXAMPLE.COM")._explain(GssError(13 << 16, FIRST + number, "text"), "rm")
    assert type(error) is kind
    assert said in str(error)
    assert "addresses of the ResourceManager" not in error.hint


def test_a_credential_that_has_expired():
    error = Tickets()._explain(GssError(11 << 16, 100002, "Success"))
    assert str(error).startswith("there is no valid Kerberos ticket (it has expired). Run kinit")


class Library:
    """The library of Kerberos on a machine without one; each of its functions succeeds and gives nothing."""

    def __init__(self, **functions):
        self.calls = []
        self.functions = functions

    def __getattr__(self, name):
        return lambda *words: self.calls.append(name) or self.functions.get(name, lambda: 0)()


def test_an_object_is_released_while_another_thread_opens_the_library(monkeypatch):
    """The collector of garbage runs finalizers in any thread, within the opening too: a lock would wait for itself."""
    library = Library()
    monkeypatch.setattr(gssapi, "_opened", [library])
    credentials = gssapi.GssCredentials()
    with gssapi._lock:
        thread = threading.Thread(target=lambda: gssapi.library() and credentials.release(), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert library.calls[-1] == "gss_release_cred"


@pytest.mark.parametrize("other, at_once", [("/etc/ann.keytab", False), ("/etc/bob.keytab", True)])
def test_threads_with_one_keytab_get_its_credentials_one_after_the_other(monkeypatch, other, at_once):
    """They share a cache in memory, which the library empties before it puts new tickets in."""
    meeting, met = threading.Barrier(2), []

    def acquire():
        with contextlib.suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(10 if at_once else 0.3))
        return 0

    monkeypatch.setattr(gssapi, "_opened", [Library(gss_acquire_cred_from=acquire)])
    threads = [threading.Thread(target=Tickets(keytab).who) for keytab in ("/etc/ann.keytab", other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert bool(met) == at_once


def test_the_site_names_keytab_and_principal():
    site = Site(keytab="/etc/ann.keytab", principal="ann@EXAMPLE.COM")
    assert site.tickets == Tickets("/etc/ann.keytab", "ann@EXAMPLE.COM")
    assert Site().tickets == Tickets()
    with pytest.raises(SpecInvalid, match=r"^keytab: 'ann.keytab' is not an absolute path$"):
        Site(keytab="ann.keytab")

"""Keytabs and error codes, without a KDC."""

import struct

import pytest

from tf_yarn_ops.errors import KerberosRefused, SpecInvalid, TicketMissing
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


def test_the_site_names_keytab_and_principal():
    site = Site(keytab="/etc/ann.keytab", principal="ann@EXAMPLE.COM")
    assert site.tickets == Tickets("/etc/ann.keytab", "ann@EXAMPLE.COM")
    assert Site().tickets == Tickets()
    with pytest.raises(SpecInvalid, match=r"^keytab: 'ann.keytab' is not an absolute path$"):
        Site(keytab="ann.keytab")

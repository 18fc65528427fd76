"""Find the secrets of a job in what others can read: tokens, keys, cookies."""

import base64
import re

#: A token's text has its kind in base64, at one of three alignments.
TOKEN_TEXT = re.compile(
    "|".join(
        base64.b64encode(b"x" * shift + kind)[4 if shift else 0 : -4].decode()
        for kind in (b"HDFS_DELEGATION_TOKEN", b"RM_DELEGATION_TOKEN", b"WEBHDFS delegation")
        for shift in range(3)
    )
)
SECRETS = re.compile(rf"{TOKEN_TEXT.pattern}|PRIVATE KEY-----|hadoop\.auth=[^;(]", re.MULTILINE)


def read_vint(data, at):
    """Return an integer in Hadoop's variable form, and the place after it."""
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1
    return int.from_bytes(data[at + 1 : at + 1 - first - 112], "big"), at + 1 - first - 112


def read_passwords(tokens):
    """Return the passwords of the tokens in a file that a NodeManager has written for a container, by kind."""
    assert tokens[:5] == b"HDTS\0"
    count, at = read_vint(tokens, 5)
    found = {}
    for _ in range(count):
        parts = []
        for _ in ("alias", "identifier", "password", "kind", "service"):
            length, at = read_vint(tokens, at)
            parts.append(tokens[at : at + length])
            at += length
        found[parts[3].decode()] = parts[2]
    return found


def spell(secret):
    """Return the ways in which a secret may stand in a text: as it is, in hexadecimal, and in base64 at any offset."""
    ways = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + secret)
        # The characters at the ends hold bits of the neighbours too.
        inner = encoded[4 if offset else 0 : len(encoded) - 4]
        ways |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return ways


def read_key(keytab):
    """Return the last key of a keytab, which ends with 32 bytes of AES and the number of its version in four bytes."""
    return keytab.read_bytes()[-36:-4]


def assert_no_secret(texts, secrets):
    """Fail if one of the texts, bytes by their places, has one of the secrets, bytes by their names."""
    for where, text in texts.items():
        for name, secret in secrets.items():
            assert not any(way in text for way in spell(secret)), f"{name} stands in {where}"
        assert b"PRIVATE KEY-----" not in text, where
        assert not re.search(rb"hadoop\.auth=[^;\s]*&s=[A-Za-z0-9+/]{20}", text), where

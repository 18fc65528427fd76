"""Hadoop's tokens and a container's credentials file, made by tests."""

from tf_yarn_ops.runtime.common.tokens import Token, encode_token, write_length


def token(kind, service, number=1, renewer="yarn"):
    """Return a token with made-up bytes; the number makes it another one."""
    identifier = b"\x00\x05alice" + bytes([len(renewer)]) + renewer.encode() + b"\x00" + number.to_bytes(4, "big")
    return Token(identifier, number.to_bytes(20, "big"), kind, service)


def token_text(*words):
    return encode_token(token(*words))


def credentials_file(tokens):
    """Return the bytes of a credentials file, as NodeManagers write it, with a secret key behind the tokens."""
    written = b"HDTS\x00" + write_length(len(tokens))
    for number, one in enumerate(tokens):
        alias = f"alias {number}".encode()
        written += write_length(len(alias)) + alias
        for part in (one.identifier, one.password, one.kind.encode(), one.service.encode()):
            written += write_length(len(part)) + part
    return written + write_length(1) + b"\x01k\x02xy"

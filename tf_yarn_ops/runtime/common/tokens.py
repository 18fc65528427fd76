"""Hadoop's delegation tokens: their text, and the credentials file of a container; pure.

The submission reads and writes the text of tokens; the coordinator reads the file that the NodeManager gives to each
container of a secured cluster.

References
----------
Hadoop: ``Token.encodeToUrlString``, ``WritableUtils.readVLong``, ``Credentials.readTokenStorageStream``.
"""

import base64
from dataclasses import dataclass, field
from typing import List, Tuple

#: The kinds of tokens that Hadoop's programs look for.
HDFS_KIND, RESOURCEMANAGER_KIND, KMS_KIND = "HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN", "kms-dt"
#: The header in which a ResourceManager takes a token; in the query its log of requests would have the token.
TOKEN_HEADER = "Hadoop-YARN-Auth-Delegation-Token"
#: The start of a credentials file, with the number of its format that NodeManagers write.
_MAGIC = b"HDTS\0"
#: Lengths up to this one are one byte; a larger one is a byte that counts the bytes after it.
_ONE_BYTE = 127
_COUNT_BASE = 0x90


@dataclass(frozen=True)
class Token:
    """A delegation token.

    Attributes
    ----------
    identifier : bytes
        Owner, renewer, dates and number, as the daemon that gave the token writes them.
    password : bytes
        The secret; never shown.
    kind : str
    service : str
        The addresses for which programs use the token, as they write them.
    """

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str
    service: str


def decode_token(text: str) -> Token:
    """Read a token's text, which is base64 for URLs without padding; raise ValueError for any other text."""
    try:
        content = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    except ValueError:
        raise ValueError("not the text of a token") from None  # the text may be a secret
    token, end = _read_token(content, 0)
    if end != len(content):
        raise ValueError("bytes after the end of a token")
    return token


def encode_token(token: Token) -> str:
    """Return the text of a token."""
    parts = (token.identifier, token.password, token.kind.encode(), token.service.encode())
    content = b"".join(write_length(len(part)) + part for part in parts)
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def read_credentials(content: bytes) -> List[Token]:
    """Return the tokens of a credentials file; raise ValueError for a file of another format."""
    if not content.startswith(_MAGIC):
        raise ValueError("not a credentials file of a format that NodeManagers write")
    number, at = read_length(content, 5)
    tokens = []
    for _ in range(number):
        _, at = _read_bytes(content, at)  # the name under which the file keeps the token
        token, at = _read_token(content, at)
        tokens.append(token)
    return tokens


def write_length(length: int) -> bytes:
    """Return a length as Hadoop writes it."""
    if length <= _ONE_BYTE:
        return bytes([length])
    value = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([_COUNT_BASE - len(value)]) + value


def read_length(content: bytes, at: int) -> Tuple[int, int]:
    """Return the length that begins at a position, and the position after it; raise ValueError if there is none."""
    first = content[at] if at < len(content) else -1
    if 0 <= first <= _ONE_BYTE:
        return first, at + 1
    count = _COUNT_BASE - first
    if not (1 <= count <= 8 and at + 1 + count <= len(content)):
        raise ValueError("not a length")
    return int.from_bytes(content[at + 1 : at + 1 + count], "big"), at + 1 + count


def _read_bytes(content: bytes, at: int) -> Tuple[bytes, int]:
    length, at = read_length(content, at)
    if at + length > len(content):
        raise ValueError("the content ends within a token")
    return content[at : at + length], at + length


def _read_token(content: bytes, at: int) -> Tuple[Token, int]:
    parts = []
    for _ in range(4):
        part, at = _read_bytes(content, at)
        parts.append(part)
    try:
        return Token(parts[0], parts[1], parts[2].decode(), parts[3].decode()), at
    except UnicodeDecodeError:
        raise ValueError("the kind or the service of a token is not text") from None

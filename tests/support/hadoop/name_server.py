"""Answer DNS queries on port 53, by UDP: addresses of names, and no name of any address."""

import socket
import struct
import sys
from pathlib import Path

_A, _NO_SUCH_NAME, _HEADER = 1, 3, 12


def build_answer(query: bytes, addresses: dict[str, str]) -> bytes:
    """Return the answer to a query for one name; other records than addresses are empty.

    References
    ----------
    RFC 1035, section 4.
    """
    labels, at = [], _HEADER
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode("ascii", "replace").lower())
        at += 1 + size
    question = query[_HEADER : at + 5]
    address = addresses.get(".".join(labels))
    found = address is not None and question[-4:-2] == struct.pack("!H", _A)
    # A pointer to the question's name, an address of the class Internet that nobody keeps, and its four bytes.
    record = struct.pack("!HHHIH", 0xC00C, _A, 1, 0, 4) + socket.inet_aton(address) if address and found else b""
    flags = 0x8180 | (0 if address else _NO_SUCH_NAME)
    return query[:2] + struct.pack("!HHHHH", flags, 1, int(found), 0, 0) + question + record


def main(ready: str, *names: str) -> None:
    """Serve the names, each as ``name=address``; a file says that the port is open."""
    addresses = dict(name.partition("=")[::2] for name in names)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", 53))
        Path(ready).touch()
        while True:
            query, client = server.recvfrom(4096)
            try:
                server.sendto(build_answer(query, addresses), client)
            except IndexError:
                continue  # no query


if __name__ == "__main__":
    main(*sys.argv[1:])

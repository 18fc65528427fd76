"""Calls of Skein's application master: gRPC's unary calls over HTTP/2, by the standard library.

A node's Python needs no package for them, and nothing large is imported. The only server is the one in Skein's jar, so
the parts of HTTP/2 that it never uses are absent: no padding, no pushes, no dynamic table of headers (we offer none).

References
----------
RFC 9113 (HTTP/2); RFC 7541 (HPACK), section 5 and appendix B; "gRPC over HTTP2" (grpc/doc/PROTOCOL-HTTP2.md);
"Encoding" of protobuf.dev; Skein 0.8.2, skein.proto.
"""

import asyncio
import io
import ssl
import struct
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union
from urllib.parse import unquote

#: Types of frames, their flags, and our settings: HEADER_TABLE_SIZE 0, ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 2^31 - 1.
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM = _ACK = 1
_END_HEADERS, _PRIORITY = 4, 32
_OUR_SETTINGS = struct.pack(">HIHIHI", 1, 0, 2, 0, 4, 2**31 - 1)
#: Bytes of a number of protobuf by its wire type; the other types begin with a length.
_WIDTHS = {1: 8, 5: 4}
_INITIAL_WINDOW_SIZE, _WINDOW, _MAX_FRAME = 4, 65535, 16384
#: Bits in the Huffman code of each byte and of the end, to the base 36; the code is canonical.
_HUFFMAN_BITS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad677777777777777777777"
    "77878djde6f56565666577666567655677777fbedskmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmo"
    "lmnnllmlnmnnkmmmnmmnqqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrqu"
)

FieldValue = Union[int, float, str, bytes]


class SkeinFailed(OSError):
    """Skein's application master did not answer, or answered with an error."""


def encode_message(fields: Iterable[Tuple[int, FieldValue]]) -> bytes:
    """Return a protobuf message.

    Parameters
    ----------
    fields : iterable of (int, value)
        Number and value of each field: int for integers, enumerations and booleans, float for ``float``, str for
        ``string``, bytes for ``bytes`` and for a message.
    """
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        elif isinstance(value, float):
            parts += [_varint(number << 3 | 5), struct.pack("<f", value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(content)), content]
    return b"".join(parts)


def decode_message(message: bytes) -> Dict[int, List[Any]]:
    """Return the values of a protobuf message by field, int or bytes; a number of a fixed width comes as its bytes."""
    fields: Dict[int, List[Any]] = {}
    stream = io.BytesIO(message)
    while stream.tell() < len(message):
        number, kind = divmod(_read_varint(stream), 8)
        value = _read_varint(stream) if kind == 0 else stream.read(_WIDTHS.get(kind) or _read_varint(stream))
        fields.setdefault(number, []).append(value)
    return fields


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(stream: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def encode_headers(headers: Dict[str, str]) -> bytes:
    """Return a block of headers as literals without index; names and values have up to 126 bytes."""
    return b"".join(b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in pair) for pair in headers.items())


def decode_headers(block: bytes) -> Dict[str, str]:
    """Return the headers that a block names by literals; gRPC's own are among them, as no table holds their names."""
    found: Dict[str, str] = {}
    stream = io.BytesIO(block)
    while stream.tell() < len(block):
        first = stream.read(1)[0]
        if first & 0x80 or first & 0xE0 == 0x20:  # a header of the static table, or the size of the dynamic one
            _read_integer(stream, first, 7 if first & 0x80 else 5)
        else:
            index = _read_integer(stream, first, 6 if first & 0x40 else 4)
            name = "" if index else _read_string(stream)
            value = _read_string(stream)
            if name:
                found[name] = value
    return found


def _read_integer(stream: io.BytesIO, first: int, bits: int) -> int:
    """Return the integer that begins with these bits of its first byte, which has been read."""
    most = (1 << bits) - 1
    value = first & most
    return value if value < most else value + _read_varint(stream)


def _read_string(stream: io.BytesIO) -> str:
    first = stream.read(1)[0]
    content = stream.read(_read_integer(stream, first, 7))
    return (_unpack(content) if first & 0x80 else content).decode("utf-8", "replace")


def _unpack(content: bytes) -> bytes:
    """Return what a Huffman code stands for."""
    if not _symbols:
        bits = [int(digit, 36) for digit in _HUFFMAN_BITS]
        code = length = 0
        for symbol in sorted(range(len(bits)), key=lambda symbol: (bits[symbol], symbol)):
            code <<= bits[symbol] - length
            length = bits[symbol]
            _symbols[length, code] = symbol
            code += 1
    out = bytearray()
    code = length = 0
    for byte in content:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            if (length, code) in _symbols:
                out.append(_symbols[length, code])
                code = length = 0
    return bytes(out)


_symbols: Dict[Tuple[int, int], int] = {}


class Channel:
    """Calls the methods of ``skein.AppMaster``, one after the other on one connection.

    Parameters
    ----------
    address : str
        ``host:port``.
    context : ssl.SSLContext
    seconds : float
        The deadline of each call, connecting included.
    """

    def __init__(self, address: str, context: ssl.SSLContext, seconds: float):
        self._address, self._context, self._seconds = address, context, seconds
        self._context.set_alpn_protocols(["h2"])
        self._turn = asyncio.Lock()
        self._connection: Optional[_Connection] = None

    async def call(self, method: str, *fields: Tuple[int, FieldValue]) -> Dict[int, List[Any]]:
        """Call a method with the fields of its request; return those of the answer.

        Raises
        ------
        SkeinFailed
            The answer is an error, there was none in time, or the connection failed. The next call makes another
            connection unless this one answered.
        """
        async with self._turn:
            try:
                headers, answer = await asyncio.wait_for(self._exchange(method, encode_message(fields)), self._seconds)
            except (asyncio.TimeoutError, OSError, EOFError) as error:
                self.close()
                late = isinstance(error, asyncio.TimeoutError)
                cause = f"no answer within {self._seconds:g} s" if late else str(error)
                raise SkeinFailed(f"{method}: {cause}") from error
        status = headers.get("grpc-status", "missing")
        if status != "0":
            raise SkeinFailed(f"{method}: {unquote(headers.get('grpc-message', ''))} (gRPC status {status})")
        return decode_message(answer)

    def close(self) -> None:
        """End the connection."""
        if self._connection:
            self._connection.close()
        self._connection = None

    async def _exchange(self, method: str, request: bytes) -> Tuple[Dict[str, str], bytes]:
        if self._connection is None:
            host, _, port = self._address.rpartition(":")
            self._connection = _Connection(*await asyncio.open_connection(host, int(port), ssl=self._context))
        return await self._connection.exchange(
            encode_headers(
                {
                    ":method": "POST",
                    ":scheme": "https",
                    ":path": f"/skein.AppMaster/{method}",
                    ":authority": "skein-internal",
                    "te": "trailers",
                    "content-type": "application/grpc",
                }
            ),
            request,
        )


class _Connection:
    """An HTTP/2 connection with one stream at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer
        self._stream = -1
        self._headers: Dict[str, str] = {}
        #: Bytes that may be sent: on the connection, on a new stream, on the present stream.
        self._credit = self._initial_credit = self._stream_credit = _WINDOW
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._send(_SETTINGS, 0, 0, _OUR_SETTINGS)

    def close(self) -> None:
        self._writer.close()

    async def exchange(self, headers: bytes, message: bytes) -> Tuple[Dict[str, str], bytes]:
        """Send a request; return the headers of the answer with its trailers, and its message."""
        self._stream += 2
        self._stream_credit = self._initial_credit
        self._block, self._headers, self._body, self._over = b"", {}, bytearray(), False
        self._send(_HEADERS, _END_HEADERS, self._stream, headers)
        left = b"\0" + struct.pack(">I", len(message)) + message
        while left and not self._over:
            size = min(len(left), self._credit, self._stream_credit, _MAX_FRAME)
            if size > 0:
                self._send(_DATA, _END_STREAM if size == len(left) else 0, self._stream, left[:size])
                self._credit, self._stream_credit, left = self._credit - size, self._stream_credit - size, left[size:]
            else:
                await self._receive()
        while not self._over:
            await self._receive()
        return self._headers, bytes(self._body[5:])

    def _send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._writer.write(len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload)

    async def _receive(self) -> None:
        """Read one frame and act on it."""
        head = await self._reader.readexactly(9)
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
        ours = stream == self._stream
        if kind == _DATA:
            if payload:
                self._send(_WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
            if ours:
                self._body += payload
        elif kind in (_HEADERS, _CONTINUATION) and ours:
            # Netty begins with a priority, of 5 bytes.
            self._block += payload[5:] if kind == _HEADERS and flags & _PRIORITY else payload
            if flags & _END_HEADERS:
                self._headers.update(decode_headers(self._block))
                self._block = b""
        elif kind == _RST_STREAM and ours:
            raise ConnectionError(f"HTTP/2 error {int.from_bytes(payload, 'big')}")
        elif kind == _GOAWAY:
            raise ConnectionError("Skein ends the connection: " + payload[8:].decode("ascii", "replace"))
        elif kind == _SETTINGS and not flags & _ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == _INITIAL_WINDOW_SIZE:
                    self._stream_credit += value - self._initial_credit
                    self._initial_credit = value
            self._send(_SETTINGS, _ACK, 0, b"")
        elif kind == _PING and not flags & _ACK:
            self._send(_PING, _ACK, 0, payload)
        elif kind == _WINDOW_UPDATE and stream == 0:
            self._credit += int.from_bytes(payload, "big")
        elif kind == _WINDOW_UPDATE and ours:
            self._stream_credit += int.from_bytes(payload, "big")
        self._over = self._over or (kind in (_DATA, _HEADERS) and ours and bool(flags & _END_STREAM))

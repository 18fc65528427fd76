"""Read the log of a container from the file into which its NodeManager has aggregated it. Pure, by ranges of bytes.

Input: the size of a file of log aggregation and a function that reads a range of it. Output: chunks of one log. The
format is Hadoop's TFile: blocks of records, then an index of the blocks. A record is a container with all of its logs.

References
----------
Hadoop, ``org.apache.hadoop.io.file.tfile`` (BCFile, TFile, Chunk, Utils) and ``AggregatedLogFormat``.
"""

import posixpath
import struct
import zlib
from collections.abc import Callable, Iterator

#: The first and the last bytes of a file.
_MAGIC = bytes((0xD1, 0x11, 0xD3, 0x68, 0x91, 0xB5, 0xD7, 0xB6, 0x39, 0xDF, 0x41, 0x40, 0x92, 0xBA, 0xE1, 0x50))
#: Behind the index: its offset, the version (two shorts) and the magic bytes.
_TRAILER = struct.Struct(">q2h16s")
_BLOCKS = "data:BCFile.index"
#: Bytes that are read from the file at once.
_RANGE = 4 * 1024 * 1024
#: Applications of one directory; the number of its group has as many digits.
_GROUP = 10_000
#: Bytes of a name or a key, and blocks of a file, at most: its user may have written it.
_MOST_TAKEN, _MOST_BLOCKS = 128 * 1024, 100_000


class NotALog(Exception):
    """The file is not one of log aggregation, or is compressed in a way that is not supported."""


def directories_of(root: str, suffix: str, user: str, application_id: str) -> tuple[str, ...]:
    """Return the directories in which Hadoop keeps the logs of an application, those of the newest versions first.

    Parameters
    ----------
    root, suffix : str
        ``yarn.nodemanager.remote-app-log-dir`` and ``yarn.nodemanager.remote-app-log-dir-suffix``.
    user, application_id : str
    """
    group = f"{int(application_id.rpartition('_')[2]) % _GROUP:04d}"
    return tuple(
        posixpath.join(root, user, *parts, application_id)
        for parts in ((f"bucket-{suffix}-tfile", group), (f"{suffix}-tfile",), (f"bucket-{suffix}", group), (suffix,))
    )


def read_aggregated_log(size: int, read: Callable[[int, int], bytes], container_id: str, name: str) -> Iterator[bytes]:
    """Yield the content of a container's log in chunks; yield nothing if the file does not have it.

    Parameters
    ----------
    size : int
        Bytes of the file.
    read : callable
        Returns the bytes from an offset; takes the offset and the number of bytes.
    container_id, name : str
        Of the log: ``worker.log``.

    Raises
    ------
    NotALog
        The file has another format, or is damaged.
    """
    try:
        for compression, offset, length in _blocks(size, read):
            records = _Bytes(_unpacked(_ranges(read, offset, length), compression))
            while not records.at_end():
                key = _Bytes(iter([records.take(records.number())]))
                if key.take(key.short()).decode("utf-8", "replace") != container_id:
                    for _ in _value(records):
                        pass
                    continue
                yield from _log(_Bytes(_value(records)), name)
                return
    except (EOFError, struct.error, zlib.error, ValueError) as error:  # a text that is not UTF-8, or not a number
        raise NotALog(f"not a complete file of log aggregation: {error}") from error


def _blocks(size: int, read: Callable[[int, int], bytes]) -> Iterator[tuple[str, int, int]]:
    """Yield the compression, the offset and the length of each block of records."""
    if size < len(_MAGIC) + _TRAILER.size:
        raise NotALog(f"{size} bytes are too few")
    index, _, _, magic = _TRAILER.unpack(read(size - _TRAILER.size, _TRAILER.size))
    if magic != _MAGIC or not 0 < index < size:
        raise NotALog("the end is not that of a TFile")
    meta = _Bytes(_ranges(read, index, size - _TRAILER.size - index))
    for _ in range(meta.number()):
        name, compression, offset, length, _ = (meta.text(), meta.text(), meta.number(), meta.number(), meta.number())
        if name == _BLOCKS:
            blocks = _Bytes(_unpacked(_ranges(read, offset, length), compression))
            default = blocks.text()
            end = 0
            for _ in range(min(blocks.number(), _MOST_BLOCKS)):
                begin, stored, _ = blocks.number(), blocks.number(), blocks.number()
                if not end <= begin <= begin + stored <= index:
                    raise NotALog("its blocks do not follow one another")
                end = begin + stored
                yield default, begin, stored
            return


def _log(logs: "_Bytes", name: str) -> Iterator[bytes]:
    """Yield the content of one log of a container; each has its name and its length, as texts, in front."""
    while not logs.at_end():
        found, length = logs.take(logs.short()).decode("utf-8", "replace"), int(logs.take(logs.short()))
        if found == name:
            yield b""  # there is a log; it may be empty
            yield from logs.parts(length)
            return
        for _ in logs.parts(length):
            pass


def _value(records: "_Bytes") -> Iterator[bytes]:
    """Yield the value of a record: chunks, of which all but the last have a negative length."""
    while True:
        length = records.number()
        yield from records.parts(abs(length))
        if length >= 0:
            return


def _ranges(read: Callable[[int, int], bytes], offset: int, length: int) -> Iterator[bytes]:
    end = offset + length
    while offset < end:
        part = read(offset, min(_RANGE, end - offset))
        if not part:
            raise EOFError(f"nothing at byte {offset}")
        yield part
        offset += len(part)


def _unpacked(parts: Iterator[bytes], compression: str) -> Iterator[bytes]:
    if compression == "none":
        yield from parts
    elif compression == "gz":
        inflate = zlib.decompressobj()
        for part in parts:
            while part:
                yield inflate.decompress(part, _RANGE)
                part = inflate.unconsumed_tail
        yield inflate.flush()
    else:
        raise NotALog(f"the compression {compression!r} is not supported, only none and gz")


class _Bytes:
    """Reads numbers and texts from chunks of bytes.

    Parameters
    ----------
    chunks : iterator of bytes
    """

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks
        self._buffer = memoryview(b"")

    def at_end(self) -> bool:
        """Return whether there are no more bytes."""
        while not self._buffer:
            if (chunk := next(self._chunks, None)) is None:
                return True
            self._buffer = memoryview(chunk)
        return False

    def parts(self, length: int) -> Iterator[bytes]:
        """Yield the next bytes, as many as ``length``; raise EOFError if there are fewer."""
        while length > 0:
            if self.at_end():
                raise EOFError(f"{length} bytes are missing")
            part, self._buffer = self._buffer[:length], self._buffer[length:]
            length -= len(part)
            yield bytes(part)

    def take(self, length: int) -> bytes:
        """Return the next bytes."""
        if length > _MOST_TAKEN:
            raise NotALog(f"a name has {length} bytes")
        return b"".join(self.parts(length))

    def short(self) -> int:
        """Return the next two bytes as a number, the length of a text of Java's ``writeUTF``."""
        return int.from_bytes(self.take(2), "big")

    def text(self) -> str:
        """Return the next text, which has its length in front."""
        return self.take(self.number()).decode()

    def number(self) -> int:
        """Return the next number of variable length; TFile has its own form, other than Hadoop's Writables."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -32:
            return first
        for least, shift, more in ((-72, 52, 1), (-104, 88, 2), (-120, 112, 3)):
            if first >= least:
                return (first + shift) << 8 * more | int.from_bytes(self.take(more), "big")
        return int.from_bytes(self.take(first + 129), "big", signed=True)

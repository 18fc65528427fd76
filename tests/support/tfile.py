"""Write files of log aggregation as a NodeManager does."""

import struct
import zlib

from tf_yarn_ops.hadoop.aggregated_log import _MAGIC


def number(value):
    """Return a number as Hadoop's ``tfile.Utils.writeVLong`` writes it."""
    if -32 <= value < 128:
        return struct.pack(">b", value)
    length = (value if value >= 0 else ~value).bit_length() // 8 + 1
    for size, limit, shift in ((2, 20, 52), (3, 16, 88), (4, 8, 112)):
        first = value >> (size - 1) * 8
        if length <= size and -limit <= first < limit:
            return struct.pack(">b", first - shift) + (value & (1 << (size - 1) * 8) - 1).to_bytes(size - 1, "big")
    size = max(length, 4)
    return struct.pack(">b", size - 129) + value.to_bytes(size, "big", signed=True)


def text(value):
    return number(len(value.encode())) + value.encode()


def utf(value):
    return struct.pack(">H", len(value)) + value


def record(container, logs, chunk=10):
    """Return a record of a container: its id, then its logs in chunks of some bytes."""
    value = b"".join(utf(name.encode()) + utf(str(len(content)).encode()) + content for name, content in logs.items())
    parts = [value[start : start + chunk] for start in range(0, len(value), chunk)] or [b""]
    chunks = b"".join(number(-len(part)) + part for part in parts[:-1]) + number(len(parts[-1])) + parts[-1]
    key = utf(container.encode())
    return number(len(key)) + key + chunks


def file_of(*blocks, compression="none", chunk=10):
    """Return the file of blocks, each a mapping of containers to their logs."""
    pack = {"none": bytes, "gz": zlib.compress, "lzo": bytes}[compression]
    content, regions = bytes(_MAGIC), []
    for block in blocks:
        raw = b"".join(record(container, logs, chunk) for container, logs in block.items())
        regions.append((len(content), len(pack(raw)), len(raw)))  # type: ignore[operator]
        content += pack(raw)  # type: ignore[operator]
    index = text(compression) + number(len(regions)) + b"".join(number(part) for region in regions for part in region)
    entries = [("data:BCFile.index", index), ("data:TFile.meta", b"\1")]
    meta = number(len(entries))
    for name, raw in entries:
        packed = pack(raw)  # type: ignore[operator]
        meta += text(name) + text(compression) + number(len(content)) + number(len(packed)) + number(len(raw))
        content += packed
    return content + meta + struct.pack(">q2h", len(content), 1, 0) + _MAGIC

"""Logs in the files of log aggregation, byte for byte."""

import struct
import zlib
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tfile import file_of, number, record, text
from tf_yarn_ops.hadoop.aggregated_log import _MAGIC, NotALog, _Bytes, directories_of, read_aggregated_log

A, B = "container_1_0001_01_000001", "container_1_0001_01_000002"
LOGS = {"master.log": b"starting\n" * 40, "empty.log": b"", "worker.log": b"line 1\nl\xc3\xa9\n"}


def read(content, container, name):
    """Return a log; None if the file does not have it."""
    found = list(
        read_aggregated_log(len(content), lambda offset, length: content[offset : offset + length], container, name)
    )
    return b"".join(found) if found else None


@given(st.integers(-(2**62), 2**62))
def test_every_number_is_read_as_it_is_written(value):
    assert _Bytes(iter([number(value)])).number() == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-32, b"\xe0"),
        (127, b"\x7f"),
        (128, b"\xcc\x80"),
        (-33, b"\xcb\xdf"),
        (5119, b"\xdf\xff"),
        (5120, b"\xa8\x14\x00"),
        (2**31, b"\x84\x00\x80\x00\x00\x00"),
    ],
)
def test_numbers_that_were_worked_out_by_hadoops_rules(value, written):
    assert number(value) == written and _Bytes(iter([written])).number() == value


@pytest.mark.parametrize("compression", ["none", "gz"])
@pytest.mark.parametrize("chunk", [1, 10, 10_000])
def test_a_log_is_found_among_containers_and_blocks(compression, chunk):
    content = file_of({"VERSION": {}, A: LOGS}, {B: {"worker.log": b"of b"}}, compression=compression, chunk=chunk)
    assert [read(content, A, name) for name in LOGS] == list(LOGS.values())
    assert read(content, B, "worker.log") == b"of b"
    assert read(content, B, "master.log") is None and read(content, A + "0", "worker.log") is None


def test_a_large_log_is_read_in_parts():
    large = bytes(range(256)) * 40_000
    content, asked = file_of({A: {"worker.log": large}}, chunk=1 << 20), []

    def part(offset, length):
        asked.append(length)
        return content[offset : offset + length]

    assert b"".join(read_aggregated_log(len(content), part, A, "worker.log")) == large
    assert max(asked) <= 4 << 20 < len(large)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "too few"),
        (b"x" * 100, "not that of a TFile"),
        (file_of({A: LOGS})[:-1], "not that of a TFile"),
        (file_of({A: LOGS}, compression="lzo"), "'lzo' is not supported"),
    ],
)
def test_other_files_are_refused(content, why):
    with pytest.raises(NotALog, match=why):
        read(content, A, "worker.log")


def test_truncated_file_is_refused():
    content = file_of({A: LOGS})
    with pytest.raises(NotALog, match="not a complete file"):
        list(
            read_aggregated_log(
                len(content), lambda offset, length: content[offset : offset + length] if offset > 100 else b"", A, "x"
            )
        )


def test_log_without_a_numeric_length_is_refused():
    content = file_of({A: {"worker.log": b"12345678901"}}, chunk=10_000)
    damaged = content.replace(b"\0\x0211", b"\0\x02?1")
    assert damaged != content
    with pytest.raises(NotALog, match=r"not a complete file of log aggregation: invalid literal"):
        read(damaged, A, "worker.log")


def hostile_file(regions, content=b"", blocks=None):
    """Return a file whose index names any regions of the content as blocks."""
    index = text("gz") + number(len(regions) if blocks is None else blocks)
    index = zlib.compress(index + b"".join(map(number, chain.from_iterable(regions))))
    meta = number(1) + text("data:BCFile.index") + text("gz") + number(len(content)) + number(len(index)) + number(1)
    return content + index + meta + struct.pack(">q2h", len(content) + len(index), 1, 0) + _MAGIC


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_index_of_endless_empty_blocks_ends():
    assert read(hostile_file([(0, 0, 0)] * 1_000_000, b"x", blocks=2**62), A, "worker.log") is None


@pytest.mark.timeout(30)
def test_block_that_is_named_again_and_again_is_refused():
    packed = zlib.compress(record(B, {}) * 10_000)
    with pytest.raises(NotALog, match="do not follow one another"):
        read(hostile_file([(0, len(packed), 1)] * 10_000, packed), A, "worker.log")


def test_key_that_would_fill_the_memory_is_refused():
    packed = zlib.compress(number(2**40) + b"\0" * (1 << 20))
    with pytest.raises(NotALog, match=f"a name has {2**40} bytes"):
        read(hostile_file([(0, len(packed), 1)], packed), A, "worker.log")


def test_where_hadoop_keeps_the_logs_of_an_application():
    assert directories_of("/tmp/logs", "logs", "ann", "application_17_120007") == (
        "/tmp/logs/ann/bucket-logs-tfile/0007/application_17_120007",
        "/tmp/logs/ann/logs-tfile/application_17_120007",
        "/tmp/logs/ann/bucket-logs/0007/application_17_120007",
        "/tmp/logs/ann/logs/application_17_120007",
    )

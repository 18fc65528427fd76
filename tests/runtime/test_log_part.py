"""A part of a log as a line of text."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tf_yarn_ops.runtime.common.log_part import LOG_PART, parse_log_part, read_log_part
from tf_yarn_ops.runtime.common.protocol import MAX_PROTOCOL_LINE, encode


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=2000), st.integers(-3000, 3000))
def test_part_is_what_the_log_has_from_its_offset_on(tmp_path, content, offset):
    log = tmp_path / "worker.log"
    log.write_bytes(content)
    begin, length, part = parse_log_part(read_log_part(str(log), offset))
    assert (begin, length) == (
        max(0, min(len(content), offset if offset >= 0 else len(content) + offset)),
        len(content),
    )
    assert part == content[begin:]


def test_part_of_a_large_log_fits_into_a_message(tmp_path):
    (tmp_path / "log").write_bytes(b"\xff" * 200_000)
    text = read_log_part(str(tmp_path / "log"), 10)
    assert len(encode("log", id=2**62, text=text)) < MAX_PROTOCOL_LINE
    assert parse_log_part(text) == (10, 200_000, b"\xff" * LOG_PART)


def test_missing_log_is_no_part(tmp_path):
    assert read_log_part(str(tmp_path / "none"), 0) == ""
    with pytest.raises(ValueError):
        parse_log_part("")

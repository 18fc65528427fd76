"""What every reader can hold: the table of hostile values, and the laws of all readers with few examples."""

import itertools
import json
import logging
import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.hostile_values import LAWS
from tf_yarn_ops.runtime.common import values
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.runtime.common.values import MAX_DEPTH, MAX_TEXT, check_values, parse_json, plain_values

APP = "application_1700000000000_0001"


def nested(number):
    return [nested(number - 1)] if number else 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (10**400, "inf"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("a\0b", "a\\u0000b"),
        ("caf\udce9.csv", "caf\\udce9.csv"),
        ("\N{GRINNING FACE}", "\N{GRINNING FACE}"),
        ({"a\0": 1, "\udcff": 2, 3: 4}, {"a\\u0000": 1, "\\udcff": 2, "3": 4}),
        ({"__classname__": 1, "__id__": 2, "__type": 3}, {"_classname__": 1, "_id__": 2, "_type": 3}),
        ({"_a": 1, "__a": 2}, {"_a": 1, "_a-1": 2}),
        ((1, [True, None]), [1, [True, None]]),
        (b"x", "b'x'"),
    ],
)  # fmt: skip
def test_a_hostile_value_becomes_one_that_all_readers_hold(value, plain):
    assert plain_values(value) == plain == plain_values(plain)


@pytest.mark.parametrize(
    "content",
    [
        *(b"9223372036854775808", b"[-9223372036854775809]", b'{"a":\n99999999999999999999}', b'{"a":99999999999999999999}'),
        *(b"[99999999999999999999]", b"[1, 99999999999999999999]", b'{"a": 18446744073709551616.0}'),
        *(b"[1,9999999999999999999]", b"[\t99999999999999999999]", b"[\r99999999999999999999]", b"1" + b"0" * 400),
        *(b"[NaN]", b"[-Infinity]", b"[1e400]", b"[1E+400]", b"[1e0400]", b"1" * 18 + b"e300"),
        *(b'"\\u0000"', b'"\\ud83d"', b'"\xed\xa0\xbd"', b'{"__id__":1}', b'{"\\u005f_id__":1}', '{"__id":1}'.encode("utf-16-le")),
        *(b"[" * 41 + b"]" * 41, b'{"a":' * 41 + b"1" + b"}" * 41, b'"%s"' % (b"x" * (MAX_TEXT + 1))),
        *(b'{"loss":[[1.0,0.0012345678901234567]],"gpus":null}', b"[" * 40 + b"]" * 40, b"[0.1e-5, -7, true]"),
    ],
    ids=lambda content: ascii(content)[:30],
)  # fmt: skip
def test_json_text_becomes_what_its_values_become(content):
    assert repr(values.parse_plain(content)) == repr(plain_values(parse_json(content)))


_NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.text("0123456789eE+-.", max_size=24))
_DOCUMENTS = st.recursive(
    st.one_of(_NUMBERS, st.none(), st.booleans(), st.text('\0a_N\\"\ud800é', max_size=4)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("_aé\0", max_size=4), inner, max_size=3),
)


@given(_DOCUMENTS, st.booleans(), st.sampled_from([None, 1]))
def test_any_json_text_becomes_what_its_values_become(value, escaped, indent):
    content = json.dumps(value, ensure_ascii=escaped, indent=indent).encode("utf-8", "surrogatepass")
    assert repr(values.parse_plain(content)) == repr(plain_values(parse_json(content)))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("end", ["", "x" * MAX_TEXT], ids=["short", "of the greatest length"])
def test_names_that_collide_stay_apart_and_stay_short(end):
    number = 12 if not end else 3
    names = ["".join(parts) + end for parts in itertools.product(("\0", "\\u0000"), repeat=number)]
    plain = plain_values({name: index for index, name in enumerate(names)})
    assert list(plain.values()) == list(range(len(names))) and plain_values(plain) == plain
    assert sum(map(len, plain)) <= len(names) * min(MAX_TEXT, len(names[-1]) + 20)


@given(st.dictionaries(st.text("\0a_-1\\u0", max_size=4), st.none()))
def test_plain_names_are_as_many_and_stay_as_they_are(value):
    plain = plain_values(value)
    assert len(plain) == len(value) and plain_values(plain) == plain


@pytest.mark.parametrize("content", ["", b"\xff", "[" * 100_000, b'{"a":' * 100_000])
def test_text_that_is_not_json_is_a_value_error(content):
    with pytest.raises(ValueError):
        parse_json(content)


def test_values_that_are_nested_too_deep_are_cut_or_refused():
    assert check_values(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(ValueError, match=f"nested more than {MAX_DEPTH} deep"):
        check_values(nested(MAX_DEPTH + 1))
    assert plain_values(nested(3), 2) == [["..."]]


def test_a_report_keeps_what_fits_and_logs_the_rest_once(caplog):
    document = {"schema": 1, "application_id": APP, "name": "digits", "finished_at": "soon", "queue_seconds": -1,
                "reason": ["x"], "tasks": [{"task": 7}, {"task": "worker:1", "log_url": "http://[", "starts": 2}, 3],
                "metrics": {"loss": 0.5}, "tracking_url": "javascript:alert(1)"}  # fmt: skip
    values._logged.cache_clear()
    for _ in range(2):
        report = JobReport.from_dict(document)
    assert (report.name, report.metrics) == ("digits", {"loss": 0.5})
    assert (report.finished_at, report.queue_seconds, report.reason, report.tracking_url) == (None,) * 4
    assert [(task.task, task.log_url, task.starts) for task in report.tasks] == [("worker:1", None, 2)]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        line.startswith(f"the report of {APP} has values that do not fit; left out: ")
        and "JobReport.finished_at" in line
    )


def test_pipe_is_read_to_its_end_and_a_silent_one_is_a_fault(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=("x\r\né".encode(),))
    writer.start()
    assert values.read_text_file(pipe) == "x\né"
    writer.join()
    monkeypatch.setattr(values, "PIPE_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match="nobody writes into this pipe: 'pipe'"):
        values.read_file(pipe)


def test_terminal_is_read_until_the_person_ends_it():
    keyboard, terminal = os.openpty()
    with open(keyboard, "wb", 0) as typed, open(terminal):
        threading.Timer(0.1, typed.write, [b"x: 1\n\x04"]).start()
        assert values.read_text_file(os.ttyname(terminal)) == "x: 1\n"


def test_device_without_an_end_is_a_fault():
    with pytest.raises(OSError, match="longer than 16777216 bytes"):
        values.read_file("/dev/zero")


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_reader_holds_its_law(name):
    law = LAWS[name]

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        law.check(data.draw(law.strategy))

    check()

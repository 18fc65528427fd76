"""The comparison of machines that submit jobs of one team."""

import json
import os

import pytest

from tf_yarn_ops.doctor.machine import differing_facts, read_machine
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common import values

FACTS = {"user": "ann", "resourcemanagers": ["http://rm1:8088", "http://rm2:8088"], "seen": 1_795_946_400}


def document(**facts):
    return {"checks": [{"check": "machine", "facts": {"host": "wk1", "machine": {**FACTS, **facts}}}]}


def test_facts_that_differ_name_their_machines():
    machines = {"wk1": FACTS, "wk2": {**FACTS, "user": "bob", "seen": 1_795_946_460}, "wk3": {**FACTS, "site.pool": 3}}
    assert differing_facts(machines) == {
        "site.pool": "'not set' on wk1 (2026-11-29 10:00Z), wk2 (2026-11-29 10:01Z); '3' on wk3 (2026-11-29 10:00Z)",
        "user": "'ann' on wk1 (2026-11-29 10:00Z), wk3 (2026-11-29 10:00Z); 'bob' on wk2 (2026-11-29 10:01Z)",
    }
    assert differing_facts({"wk1": FACTS, "wk2": {**FACTS, "seen": 1}}) == {}


def test_diagnosis_of_another_machine_is_read(tmp_path):
    path = tmp_path / "wk1.json"
    path.write_text(json.dumps(document(note="a\0b")))
    assert read_machine(str(path)) == ("wk1", {**FACTS, "note": "a\\u0000b"})


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"{}", b'{"checks": 1}', b'{"checks": [1]}', b'{"checks": []}', b"[" * 10**5,
        b'{"checks": [{"check": "machine", "facts": {}}]}', json.dumps(document(seen="now")).encode(),
        json.dumps(document(seen=10**30)).encode(), json.dumps(document(seen=1e300)).encode(), b" " * 2**20 + b"{}",
    ],
    ids=range(14),
)  # fmt: skip
def test_file_that_is_no_diagnosis_is_a_fault(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SpecInvalid, match="is not what ytf doctor --json prints, or its check 'machine' was skipped"):
        read_machine(str(path))


def test_file_that_cannot_be_read_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(values, "PIPE_SECONDS", 0.01)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing", "a\0b"):
        with pytest.raises(SpecInvalid, match=r"can't be read|is not what"):
            read_machine(str(path))

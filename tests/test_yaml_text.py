"""The reader of YAML, at each door that reads a file of YAML."""

import time
from datetime import datetime, timezone

import pytest

from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.limits import read_limits
from tf_yarn_ops.cli.submit import submit
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.site import read_site
from tf_yarn_ops.job.document import read_document
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.oozie.request import read_oozie_request
from tf_yarn_ops.yaml_text import load_yaml

DOORS = {
    "job": lambda path: read_document(str(path)),
    "text of a job": lambda path: JobSpec.from_yaml(path.read_text()),
    "site": read_site,
    "limits": lambda path: read_limits(str(path)),
}
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
HOSTILE = {
    "aliases": (BOMB, "more than 100000 values, line 5, column "),
    "deep lists": ("name: " + "[" * 100_000, "collections are nested too deeply, line 1, column 56"),
    "deep maps": ("{a: " * 100_000, "collections are nested too deeply, line 1, column "),
    "deep blocks": ("- " * 100_000, "collections are nested too deeply, line 1, column "),
    "circle": ("a: &a [*a]", "an alias contains itself, line 1, column 8"),
    "base 60": ("a: 1" + ":1" * 100_000, "a number has more than 400 characters, line 1, column 4"),
    "digits": ("a: " + "9" * 100_000, "a number has more than 400 characters, line 1, column 4"),
    "size": ("a: '" + "x" * (1 << 20) + "'", "longer than 1048576 characters"),
    "key twice": ("name: a\nqueue: b\nname: c\n", "is given a second time, line 3, column 1; merge both into one"),
    "key twice inside": ("env:\n  A: b\n  A: c\n", "is given a second time, line 3, column 3; merge both into one"),
    "key twice by an alias": ("&a name: a\n*a : b\n", "is given a second time, line 1, column 1; merge both into one"),
    "key twice in JSON": ('{"name": 1, "name": 2}', "is given a second time, line 1, column 13"),
    "text as integer": ('a: !!int ""', "not YAML"),
    "sign as integer": ('a: !!int "-"', "not YAML"),
    "text as number": ('a: !!float ""', "not YAML"),
    "text as flag": ("a: !!bool x", "not YAML"),
    "text as time": ("a: !!timestamp x", "not YAML"),
    "character": ('a: "\\UFFFFFFFF"', "not YAML: "),
    "tag": ("!!python/object/apply:os.system ['id']", "not YAML, line 1, column 1: "),
}


# One reader serves all doors: three texts show that a door uses it.
@pytest.mark.parametrize(
    "door, kind",
    [(door, kind) for kind in HOSTILE for door in DOORS if door == "job" or kind in ("aliases", "key twice", "tag")],
)
def test_hostile_yaml_is_a_fault_within_a_second(door, kind, tmp_path):
    text, message = HOSTILE[kind]
    path = tmp_path / "hostile.yaml"
    path.write_text(text)
    path.chmod(0o644)
    began = time.process_time()
    with pytest.raises(SpecInvalid) as raised:
        DOORS[door](path)
    assert time.process_time() - began < 1
    assert message in str(raised.value)


#: The doors that report what is wrong with the values too.
WHOLE_DOORS = {
    "command line": lambda path: submit.main(["--dry_run", "--spec", str(path)], standalone_mode=False, obj=None),
    "azkaban": lambda path: read_azkaban_job({"tf.spec": str(path), "tf.worker.instances": "1", "tf.command": "true"}, path.parent),
    "oozie": lambda path: read_oozie_request(str(path), {}, datetime(2026, 11, 21, tzinfo=timezone.utc)),
    "site": read_site,
    "limits": lambda path: read_limits(str(path)),
}  # fmt: skip


@pytest.mark.parametrize("door", WHOLE_DOORS)
def test_key_twice_hides_no_other_fault(door, tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("unknown: 1\nother: 1\nunknown: 2\nother: 2\n")
    path.chmod(0o644)
    with pytest.raises(SpecInvalid) as raised:
        WHOLE_DOORS[door](path)
    text = str(raised.value)
    for part in ("is given a second time, line 3, column 1", "is given a second time, line 4, column 1"):
        assert part in text, text
    assert text.count(": unknown key") == 2, text


def test_key_given_many_times_is_one_fault():
    with pytest.raises(SpecInvalid) as raised:
        load_yaml("a: 1\n" * 1000)
    assert len(raised.value.faults) == 1


def test_values_of_env_are_texts_as_they_are_written():
    text = """
common: &common {B: 010, C: yes}
env: {<<: *common, A: 1.50, D: 2026-01-01, E: 12:30:45, F: 1_000, G: 0x10, H: "a", I: 1e3, J: no}
deadlines: {total: 010, queue: 1.50}
tasks: {worker: {env: {K: 1.0, L: True}}}
"""
    value = load_yaml(text).value
    assert value["env"] == {
        "A": "1.50", "B": "010", "C": "yes", "D": "2026-01-01", "E": "12:30:45", "F": "1_000", "G": "0x10", "H": "a",
        "I": "1e3", "J": "no",
    }  # fmt: skip
    assert value["tasks"]["worker"]["env"] == {"K": "1.0", "L": "True"}
    assert value["deadlines"] == {"total": 8, "queue": 1.5} and value["common"] == {"B": 8, "C": True}


@pytest.mark.parametrize("text", ["env: {A: }", "env: {A: ~}", "env: {A: null}"])
def test_variable_without_a_value_stays_a_fault(text):
    assert load_yaml(text).value == {"env": {"A": None}}


def test_aliases_and_merged_keys_are_read():
    read = load_yaml("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\n")
    assert read.value == {"base": {"x": 1, "y": 2}, "other": {"x": 1, "y": 3}}
    assert read.lines == {"base": 1, "other": 2}


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_empty_text_has_no_value(text):
    assert load_yaml(text).value is None


@pytest.mark.parametrize(
    "value",
    [
        '!!int ""',
        "!!int x",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "2026-13-45",
        "0000-01-01",
        "!!binary é",
        "!!int :",
    ],
)
@pytest.mark.parametrize("place", ["a: 1\nb: {v}\n", "a: 1\nb: {{c: {v}}}\n", "a: 1\nb: [1, {v}]\n"])
def test_value_that_does_not_fit_its_tag_is_named_by_its_line(value, place):
    with pytest.raises(SpecInvalid, match=r"not YAML, line 2, column \d+"):
        load_yaml(place.format(v=value))

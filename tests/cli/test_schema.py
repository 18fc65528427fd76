"""`ytf schema`: an editor's rules refuse no value that a reader takes, and name common mistakes."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.spec import JobSpec

ROOT = Path(__file__).parents[2]
JOB = {"tasks": {"worker": 1}, "command": "true"}


def validator(name):
    """Return a validator of what the command prints."""
    done = CliRunner().invoke(ytf, ["schema", name])
    assert done.exit_code == 0
    return Draft202012Validator(json.loads(done.output))


VALIDATORS = {"job": validator("job"), "site": validator("site")}

WORDS = st.sampled_from((
    "", " ", "4 GiB", "512", " 3 ", "1_000", "0x10", "1e3", "-1", "2g", "10.5", "inf", "true", "yes", "chief", "all_workers",
    "worker", "off", "new", "rest", "1-2", "20000-29999", "worker:2", "hdfs:///data", "/abs", "a/b", "a: b", "venv:///x",
    "docker://image", "env.tar.gz", "${dataIn}", "{{ ds }}", "1,2", "{user}", "http://h:1", "pytorch", "\u0662", "1\n",
))  # fmt: skip
PLAIN = st.none() | st.booleans() | st.integers(-3, 10**6) | st.floats() | WORDS | st.text(max_size=5)
KEYS = WORDS | st.sampled_from(
    ("worker", "ps", "memory", "gpus", "vcores", "environment", "after", "instances", "total", "0")
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


def check_all(name, part, base, value):
    """Assert that the schema takes the value of each field whose part takes it."""
    for field in fields(part):
        document = {**base, field.name: value}
        try:
            part.from_dict(document) if part is JobSpec else part(**document)
        except SpecInvalid:
            continue
        errors = [error.message for error in VALIDATORS[name].iter_errors(document)]
        assert not errors, (field.name, value, errors)


@given(VALUES)
def test_schema_takes_each_value_that_a_job_takes(value):
    check_all("job", JobSpec, JOB, value)


@given(VALUES)
def test_schema_takes_each_value_that_a_site_takes(value):
    check_all("site", Site, {}, value)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("job.yaml")), ids=lambda path: path.parent.name)
def test_schema_takes_the_examples(path):
    VALIDATORS["job"].validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        {"tsks": {"worker": 1}},
        {"tasks": {"worker": {"memmory": 1}}},
        {"tasks": {"worker": {"memory": "lots"}}},
        {"tasks": {"worker": 0}},
        {"tasks": {"my worker": 1}},
        {"tasks": ["worker"]},
        {"success": "sometimes"},
        {"tags": list("1234567")},
        {"env": {"A-B": "1"}},
        {"env": {"A": None}},
        {"files": {"a/b": "c"}},
        {"priority": "high"},
        {"priority": -1},
        {"deadlines": {"total": "soon"}},
        {"deadlines": {"totl": 3}},
        {"restart": {"max_restarts": -1}},
        {"restart": {"retry_exit_codes": [0]}},
        {"report_log_tail": 9000},
        {"tensorboard": "maybe"},
        {"docker": {"runtme": "nvidia"}},
        {"command": ["python"]},
    ],
    ids=str,
)
def test_schema_names_common_mistakes(change):
    document = {**JOB, **change}
    with pytest.raises(SpecInvalid):
        JobSpec.from_dict(document)
    assert list(VALIDATORS["job"].iter_errors(document))


def test_schema_is_valid_and_describes_each_setting():
    for one in VALIDATORS.values():
        Draft202012Validator.check_schema(one.schema)
        assert all(row["description"] for row in one.schema["properties"].values())

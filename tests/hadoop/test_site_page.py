"""docs/reference/site.md and the site file's keys hold each other."""

import re
from dataclasses import fields
from pathlib import Path

import yaml

from tf_yarn_ops.hadoop.site import Site

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "site.md").read_text(encoding="utf-8")


def test_every_key_is_documented_and_every_documented_key_is_one():
    documented = re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.M)
    assert documented == [field.name for field in fields(Site)]


def test_the_defaults_are_those_of_the_code():
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`]+)` \|", PAGE, re.M))
    for name in ("staging", "coordinator_ports", "submit_with"):
        assert rows[name] == getattr(Site(), name)
    for name in ("request_timeout", "unreachable_timeout"):
        assert float(rows[name]) == getattr(Site(), name)


def test_the_example_is_a_site_file():
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.S).group(1)
    assert Site(**yaml.safe_load(example)).base_port(0) == 20000

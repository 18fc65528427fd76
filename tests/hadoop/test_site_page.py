"""The example of docs/reference/site.md; tests/documents/test_tables.py holds its table."""

import re
from pathlib import Path

import yaml

from tf_yarn_ops.hadoop.site import Site

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "site.md").read_text(encoding="utf-8")


def test_the_example_is_a_site_file():
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.S).group(1)
    assert Site(**yaml.safe_load(example)).base_port(0) == 20000

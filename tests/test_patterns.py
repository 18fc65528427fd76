"""Patterns that search the text of others need time in proportion to it."""

import re

import pytest

from tf_yarn_ops.follow import log_reader
from tf_yarn_ops.follow.yarn_report import _TEXTS
from tf_yarn_ops.hadoop import gateway, transport, webhdfs
from tf_yarn_ops.hadoop.transport import explain_body
from tf_yarn_ops.runtime.common import datanodes
from tf_yarn_ops.runtime.master import containers

PLACES = {module.__name__: vars(module).values() for module in (
    containers, datanodes, gateway, log_reader, transport, webhdfs
)} | {"yarn_report": _TEXTS}  # fmt: skip
SIZE = 2**18
#: A pattern that needs the square of the time would take minutes for each of these.
PIECES = (
    "a", "1", " ", "\n", "<", "<!--", "<style ", "<message>", "{", "key={", "\\", '\\"', "'", "a.", "&#", "&#1",
    "Caused by: ", "node ", "image ", "does not exist ", "invalid resource request, ", "LogLength: ", "<pre>",
)  # fmt: skip


def patterns_of(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from patterns_of(item)


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("place", PLACES)
def test_patterns_search_foreign_text_in_linear_time(place):
    for pattern in patterns_of(tuple(PLACES[place])):
        for piece in PIECES:
            text = piece * (SIZE // len(piece))
            assert sum(1 for _ in pattern.finditer(text.encode() if isinstance(pattern.pattern, bytes) else text)) >= 0


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("&#" + "9" * 5000 + ";<p>No queue &#97;", "No queue a"),
        ("<style>" + "a { b: c } " * 800 + "</style><h1>Not &lt;found&gt;</h1>", "Not <found>"),
        ("<exception><message>not found", "not found"),
        ("see: a.b.CException: no space", "see: no space"),
    ],
    ids=range(4),
)
def test_cause_of_a_hostile_page_is_its_first_line(body, cause):
    assert explain_body(body) == cause

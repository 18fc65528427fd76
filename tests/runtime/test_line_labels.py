"""The labels on the lines of several processes."""

import pytest

from tf_yarn_ops.runtime.agent.line_labels import label_lines


@pytest.mark.parametrize(
    "text, labelled, rest",
    [
        (b"", b"", b""),
        (b"a\nb", b"[0] a\n", b"b"),
        (b"a\n\nb\n", b"[0] a\n[0] \n[0] b\n", b""),
        (b"a\r\n", b"[0] a\r\n", b""),
        (b"a\r", b"", b"a\r"),  # the first half of an end of line, or a progress bar
        (b"\r 1%\r 2%", b"[0] \r[0]  1%\r", b" 2%"),
        (b"x" * 65536, b"[0] " + b"x" * 65536, b""),
        ("\u2028\x0b\n".encode(), "[0] \u2028\x0b\n".encode(), b""),
    ],
)
def test_each_complete_line_has_its_label(text, labelled, rest):
    assert label_lines(b"[0] ", text) == (labelled, rest)

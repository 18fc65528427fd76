"""Control characters and bidirectional controls are shown escaped, all other text as it is."""

import pytest

from support.attacks import ATTACKS
from tf_yarn_ops.runtime.common.escaping import escape_controls


@pytest.mark.parametrize("raw, escaped", ATTACKS.values(), ids=ATTACKS)
def test_attack_is_escaped(raw, escaped):
    assert escape_controls(f"a{raw}\tb\n") == f"a{escaped}\tb\n" == escape_controls(f"a{escaped}\tb\n")


@pytest.mark.parametrize("text", ["loss 0.5\n\tat line 3\n", "über 模型 مرحبا 👩‍💻", "C:\\u001b", ""])
def test_text_without_controls_is_unchanged(text):
    assert escape_controls(text) == text

"""The value that a function leaves as the result of its task; tests/launch/test_function.py runs whole jobs."""

import json
from types import SimpleNamespace

import pytest

from tf_yarn_ops.runtime.agent.function_task import dump_value


def test_value_becomes_what_json_can_hold():
    import numpy  # here: each worker collects this file

    value = {"scalar": numpy.float32(0.5), "array": numpy.arange(3), "pair": (1, "x")}
    assert json.loads(dump_value(value)) == {"returned": {"scalar": 0.5, "array": [0, 1, 2], "pair": [1, "x"]}}
    with pytest.raises(TypeError, match="returned a SimpleNamespace, which JSON can't hold; write it to a file"):
        dump_value(SimpleNamespace())
    deep = []
    for _ in range(299):
        deep = [deep]
    with pytest.raises(ValueError, match="the value of the function: it is nested more than 32 deep; write it to a"):
        dump_value(deep)
    with pytest.raises(ValueError, match="has 9016 bytes of JSON, at most 8192 are allowed"):
        dump_value("x" * 9000)

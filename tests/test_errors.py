"""One tree of errors; each is a builtin too where that helps, and carries its reason."""

import inspect

import pytest

from tf_yarn_ops import errors
from tf_yarn_ops.errors import SpecInvalid, TfYarnError
from tf_yarn_ops.runtime.common.reasons import Reason

CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, TfYarnError)]


@pytest.mark.parametrize("error", CLASSES)
def test_each_error_has_a_reason_that_fails(error):
    assert isinstance(error.reason, Reason) and error.reason.exit_code > 0


@pytest.mark.parametrize(
    ("name", "builtin", "exit_code"),
    [
        ("SpecInvalid", ValueError, 2), ("SubmissionRejected", RuntimeError, 3),
        ("ResourcesImpossible", RuntimeError, 3), ("ClusterUnreachable", ConnectionError, 4),
        ("ApplicationNotFound", LookupError, 9),
        ("Superseded", RuntimeError, 8), ("Cancelled", RuntimeError, 8), ("WaitTimeout", TimeoutError, 7),
    ],
)  # fmt: skip
def test_errors_are_builtins_too(name, builtin, exit_code):
    error = getattr(errors, name)
    assert issubclass(error, builtin)
    assert error.reason.exit_code == exit_code


def test_one_fault_stands_alone_and_several_are_listed():
    assert str(SpecInvalid("no")) == "no"
    assert str(SpecInvalid(["a", "b"])) == "2 faults in the request:\n  - a\n  - b"
    assert SpecInvalid(iter(["a", "b"])).faults == ("a", "b")

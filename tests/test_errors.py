"""One tree of errors; each is a builtin too where that helps, and carries its reason."""

import importlib
import inspect
import pickle
import re

import pytest

from support.source import MODULES, PACKAGE
from tf_yarn_ops import errors
from tf_yarn_ops.errors import Fault, FaultCode, GeneralFault, SpecInvalid, TfYarnError
from tf_yarn_ops.runtime.common.reasons import Reason


def codes_of_the_package():
    """Return the enumerations of codes that the modules declare."""
    for path in MODULES:
        if re.search(r"\(Code\):", path.read_text(encoding="utf-8")):
            importlib.import_module(f"tf_yarn_ops.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}")
    return [kind for kind in FaultCode.__subclasses__() if kind.__module__.startswith("tf_yarn_ops")]


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
    assert list(map(str, SpecInvalid(iter(["a", "b"])).faults)) == ["a", "b"]


class SampleFault(FaultCode):
    SMALL = "{given} is less than {other}"
    STRANGE = "{given!r} is not one of {allowed}{hint}"
    EXPECTED = "expected a number"


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("", SampleFault.EXPECTED), "expected a number"),
        (Fault("a.b", SampleFault.EXPECTED), "a.b: expected a number"),
        (Fault("a", SampleFault.EXPECTED, {"item": "x"}), "a 'x': expected a number"),
        (Fault("a", SampleFault.EXPECTED, {"item": "x", "position": 2}), "a, item 2 'x': expected a number"),
        (
            Fault("a", SampleFault.STRANGE, {"given": "ondo", "allowed": ("one", "two")}),
            "a: 'ondo' is not one of one, two (did you mean 'one'?)",
        ),
        (Fault("a", SampleFault.STRANGE, {"given": "{x}", "allowed": ()}), "a: '{x}' is not one of none"),
        (
            Fault("min", SampleFault.SMALL, {"given": 1, "other": "max"}).below("part"),
            "part.min: 1 is less than part.max",
        ),
        (Fault("", SampleFault.EXPECTED).below("part"), "part: expected a number"),
        (
            Fault("min", SampleFault.SMALL, {"given": 1, "other": "max"}).in_file("x.yaml"),
            "x.yaml: min: 1 is less than max",
        ),
        (Fault("min", SampleFault.SMALL, {"given": 1, "other": "max"}).renamed(str.upper), "MIN: 1 is less than MAX"),
    ],
)
def test_a_fault_is_data_until_its_text_is_asked_for(fault, text):
    assert str(fault) == text


def test_faults_are_values():
    fault = Fault("a", SampleFault.SMALL, {"given": [1], "other": "b"})
    assert {fault, Fault("a", SampleFault.SMALL, {"given": [1], "other": "b"})} == {fault}
    assert fault != Fault("a", SampleFault.SMALL, {"given": [2], "other": "b"})
    again = pickle.loads(
        pickle.dumps(SpecInvalid(Fault("queue", GeneralFault.UNKNOWN_KEY, {"given": "q", "allowed": ("queue",)})))
    )
    assert str(again) == "queue: unknown key; known: queue" and again.faults[0].code is GeneralFault.UNKNOWN_KEY


CODES = [code for kind in codes_of_the_package() for code in kind]


def test_every_code_is_used_and_its_text_stands_alone():
    used = {name for path in MODULES for name in re.findall(r"\b\w+\.([A-Z0-9_]+)\b", path.read_text(encoding="utf-8"))}
    assert not [code for code in CODES if code.name not in used], "declared and never used"
    assert not [code for code in CODES if code.value.endswith(".") or "  " in code.value]

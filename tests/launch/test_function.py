"""A Python function in the tasks of a job: it travels, its value and its errors come back."""

import logging
import re
import subprocess
import sys
import threading

import pytest

import tf_yarn_ops
from tf_yarn_ops.errors import FunctionFailed, SpecInvalid
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.function import pack_function
from tf_yarn_ops.runtime.common.reasons import Reason

FACTOR = 10


def scale(number):
    return FACTOR * number


def train(number, context, plus=0):
    context.log.info("trains as %s", context.type)
    context.metrics(1, loss=0.5)
    if plus == "broken":
        raise KeyError("no such feature")
    return {
        "task": (context.type, context.index),
        "scaled": scale(number),
        "hosts": {name: len(hosts) for name, hosts in context.cluster.items()},
    }


@pytest.fixture
def here(tmp_path):
    """The address of this machine in place of a cluster."""
    return f"local://{tmp_path}/jobs"


@pytest.fixture
def logged(caplog):
    """Return a function that returns the lines that `run` has logged."""
    caplog.set_level(logging.INFO, "tf_yarn_ops.launch.function")
    return lambda: "\n".join(
        record.getMessage() for record in caplog.records if record.name == "tf_yarn_ops.launch.function"
    )


@pytest.mark.slow
def test_value_and_report_come_back_and_each_change_is_logged(here, logged, capsys):
    value, report = tf_yarn_ops.run(train, {"worker": 1, "chief": 1}, args=(2,), cluster=here)
    assert value == {"task": ["chief", 0], "scaled": 20, "hosts": {"worker": 1, "chief": 1}}
    assert (report.reason, report.name, report.metrics["loss"]) == (Reason.SUCCEEDED, "train", 0.5)
    assert f"{report.application_id} FINISHED" in logged() and re.search("succeeded: .*worker:0", logged()), logged()
    assert report.application_id not in capsys.readouterr().err


@pytest.mark.slow
def test_each_change_is_shown_on_a_terminal_and_not_logged(here, logged, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, report = tf_yarn_ops.run(scale, {"worker": 1}, args=(1,), cluster=here)
    shown = capsys.readouterr().err
    assert f"{report.application_id} FINISHED" in shown and "succeeded: worker:0" in shown
    assert report.application_id not in logged()


@pytest.mark.slow
def test_exception_comes_back_with_its_traceback(here):
    with pytest.raises(FunctionFailed, match=r"(?s)Traceback .*in train\n.*KeyError: 'no such feature'") as caught:
        tf_yarn_ops.run(train, {"worker": 1}, args={"number": 2, "plus": "broken"}, cluster=here)
    assert caught.value.reason is caught.value.report.reason is Reason.TASK_FAILED


@pytest.mark.slow
def test_function_runs_where_the_environment_lacks_cloudpickle(here, tmp_path):
    """A bare environment: neither cloudpickle nor this package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=100)

    def look():
        import importlib.util
        import sys

        return {"prefix": sys.prefix, "cloudpickle": importlib.util.find_spec("cloudpickle").origin}

    value, _ = tf_yarn_ops.run(look, {"worker": 1}, environment=f"venv://{tmp_path}/bare", cluster=here)
    assert value["prefix"] == f"{tmp_path}/bare"
    assert value["cloudpickle"].startswith(f"{tmp_path}/jobs") and "ytf_function" in value["cloudpickle"]


@pytest.mark.slow
def test_function_of_another_release_of_python_is_refused_in_the_task(here, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.function.FUNCTION_COMMAND", 'exec "$YTF_PYTHON" .ytf.zip function 3.99')
    with pytest.raises(
        FunctionFailed, match=r"pickled by Python 3\.99, and this is Python 3\.\d+: choose an environment"
    ):
        tf_yarn_ops.run(scale, {"worker": 1}, args=(1,), cluster=here)


@pytest.mark.parametrize(
    "function, args, fault",
    [
        (scale, (), "scale can't be sent to the tasks: missing a required argument: 'number'"),
        (scale, {"nmber": 1}, "scale can't be sent to the tasks: got an unexpected keyword argument 'nmber'"),
        (scale, (threading.Lock(),), "scale can't be sent to the tasks: cannot pickle '_thread.lock' object"),
    ],
)
def test_function_that_cannot_travel_is_refused_before_the_submission(function, args, fault, tmp_path):
    positional, named = ((), args) if isinstance(args, dict) else (args, {})
    with pytest.raises(SpecInvalid) as caught:
        pack_function(function, positional, named, str(tmp_path))
    assert str(caught.value).startswith(fault)


def test_same_function_makes_the_same_archive(tmp_path):
    """So that the second submission uploads nothing."""
    contents = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        with open(pack_function(scale, (1,), {}, str(tmp_path / name)), "rb") as file:
            contents.append(file.read())
    assert contents[0] == contents[1]


def test_unknown_option_of_run_is_refused(here):
    with pytest.raises(SpecInvalid, match=r"queu: unknown key \(did you mean 'queue'\?\)"):
        tf_yarn_ops.run(scale, {"worker": 1}, args=(1,), cluster=here, queu="ml")


@pytest.mark.cluster
def test_function_trains_on_the_cluster(minicluster):
    value, report = tf_yarn_ops.run(
        train,
        {"chief": TaskSpec(memory=256), "worker": TaskSpec(2, memory=256)},
        args={"number": 3},
        framework="none",
        environment=f"venv://{sys.prefix}",
        cluster=discover(minicluster.resourcemanager_url, environ={}),
    )
    assert value == {"task": ["chief", 0], "scaled": 30, "hosts": {"chief": 1, "worker": 2}}
    assert report.reason is Reason.SUCCEEDED

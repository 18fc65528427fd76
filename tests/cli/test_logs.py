"""ytf logs: its arguments, and which tasks it reads."""

import json
from types import SimpleNamespace

import pytest

from support.programs import SUBMIT, YTF, run, run_here
from tf_yarn_ops.cli import logs
from tf_yarn_ops.cli.submit import read_log_tasks, submit
from tf_yarn_ops.errors import ClusterUnreachable, LogMissing, SpecInvalid, TfYarnError
from tf_yarn_ops.job.request import build_job


@pytest.mark.parametrize(
    "words, tasks",
    [
        (("-r", "worker:1"), ("worker:0",)),
        (("-r", "ps:1,worker:2"), ()),
        (("-r", "worker:1", "--no-logs"), ()),
        (("-r", "worker:2,chief:1", "--logs", "chief"), ("chief:0",)),
        (("-r", "worker:2", "--logs", "all"), ("*:*",)),
        (("-r", "ps:1,worker:2", "--logs", "ps:0, worker:*"), ("ps:0", "worker:*")),
        (("-r", "worker:1", "--logs", "none"), ()),
    ],
)
def test_logs_names_tasks(words, tasks):
    with submit.make_context("ytf-submit", [*words, "true"]) as ctx:
        settings = {name: ctx.params[name] for name in ("logs", "no_logs")}
        job = build_job({"cluster_requirement": ctx.params["cluster_requirement"], "task_command": "true"})
    assert read_log_tasks(settings, job) == tasks


def test_logs_of_an_unknown_task_are_rejected():
    done = run_here(SUBMIT, "--wait", "--logs", "wroker:0", "-r", "worker:1", "true")
    assert done.returncode == 2 and "logs: 'wroker:0' is not one of" in done.stderr
    assert "(did you mean 'worker:0'?)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, code, message",
    [
        (("-f", "--tail", "3"), 2, "--tail and -f exclude each other"),
    ],
)
def test_faulty_arguments_of_logs_are_reported_without_a_cluster(words, code, message):
    done = run(YTF, "logs", "application_1_0001", "--resourcemanager", "http://127.0.0.1:1", *words)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr


@pytest.mark.parametrize("tasks", [("a", "b", "c"), ("a", "c"), ("b", "a"), ("b", "m"), ("c",), ("a", "m", "c")])
def test_each_line_of_json_is_whole_whatever_ends_the_logs(tasks, capsys):

    def log(application_id, name):
        if name == "b":
            raise SpecInvalid("b has no log: nothing has run in a container of it")
        if name == "m":
            raise LogMissing("nowhere")
        yield f"{name}: one\n"
        if name == "c":
            raise ClusterUnreachable("away in the middle")

    failed = {"b", "m", "c"} & set(tasks)
    try:
        logs._print(SimpleNamespace(log=log), "application_1_0001", tasks, None, True)
        assert not failed
    except TfYarnError:
        assert failed
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert written == [{"task": name, "line": f"{name}: one"} for name in tasks if name in "ac"]

"""The table of the protocol is what its docstring says and what a real run sends."""

import json
import re
import signal
import sys
import urllib.request
from dataclasses import replace

import pytest

from support.appmaster import APPLICATION, AppMaster
from support.recorder import Recorder
from support.runtime_jobs import FOREVER, SHORT_HEARTBEAT, job, task
from support.waiting import until
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.contract import RUNTIME_FILE
from tf_yarn_ops.runtime.common.protocol import FROM_AGENT, FROM_COORDINATOR, ProtocolError, check_message
from tf_yarn_ops.runtime.common.reasons import Reason

TABLES = {"agent": FROM_AGENT, "coordinator": FROM_COORDINATOR}


def test_the_docstring_lists_the_messages_of_the_table():
    agent, coordinator = " ".join(protocol.__doc__.split()).split("From the coordinator:")
    for text, table in ((agent, FROM_AGENT), (coordinator, FROM_COORDINATOR)):
        listed = {
            kind: dict(field.split(" ") for field in fields.split(", ")) if fields else {}
            for kind, fields in re.findall(r"- ``(\w+)``(?:: ([^.]+))?\.", text)
        }
        assert listed == {kind: dict(fields) for kind, fields in table.items()}


@pytest.mark.slow
def test_a_real_run_sends_the_messages_of_the_table_and_no_others(tmp_path):
    """A failure in round 1, a lost container in round 2, an unknown container, a success, an evaluator that stays."""
    go, seen = tmp_path / "go", tmp_path / "seen"
    command = f'[ "$YTF_ROUND $TASK_INDEX" != "1 0" ] || exit 7; until [ -e {go} ]; do sleep 0.05; done'
    tasks = {
        "ps": TaskSpec(command=FOREVER),
        "worker": TaskSpec(instances=2),
        "evaluator": TaskSpec(command=f"until [ -e {seen} ]; do sleep 0.05; done"),
    }
    spec = job(
        command,
        tasks=tasks,
        restart=RestartPolicy("cluster", backoff=0),
        deadlines=replace(SHORT_HEARTBEAT, evaluator_grace=600),
    )
    with Recorder() as recorder, AppMaster(tmp_path / "job", spec, agents_see=recorder.port) as am:
        am.log_says("Listening on port")
        port = re.search(r"Listening on port (\d+)", am.coordinator_log.read_text()).group(1)
        recorder.start(tmp_path, am.credentials, int(port))
        am.log_says("Published the cluster spec, round 2")
        am.container("worker_1").kill(signal.SIGTERM)
        stray = am.lay_out(tmp_path / "stray", recorder.port)
        process = am.run(
            [sys.executable, "-I", "-S", RUNTIME_FILE, "agent", "worker", APPLICATION],
            stray,
            {"SKEIN_CONTAINER_ID": "worker_9"},
        )
        assert process.wait(60) == 1
        am.log_says("Published the cluster spec, round 3")
        until(
            lambda: (
                {("agent", "ping"), ("coordinator", "pong"), ("agent", "sample")}
                <= {(sender, message["type"]) for sender, message in recorder.messages}
            ),
            60,
        )
        for page in ("log.txt", "stack.txt"):
            assert urllib.request.urlopen(f"{am.pages['ytf']}/{page}?task=worker:0", timeout=60).status == 200
        page = urllib.request.urlopen(f"{am.pages['ytf']}/log.bin?container=container_worker_0", timeout=60).read()
        assert page.split(b"\n", 1)[1] in (am.container("worker_0").folder / "log").read_bytes() and page.startswith(
            b"0 "
        )
        go.touch()
        am.log_says("evaluator:0 stays for 600 s")
        until(lambda: ("coordinator", {"type": "trained"}) in recorder.messages, 60)
        seen.touch()
        report = am.wait()
    assert (report.reason, len(report.rounds), task(report, "worker:0").starts) == (Reason.SUCCEEDED, 3, 3)
    assert {(sender, message["type"]) for sender, message in recorder.messages} == {
        (sender, kind) for sender, table in TABLES.items() for kind in table
    } - {("coordinator", "exec")}, "sessions are in test_exec_relay.py, because their connections have no lines"
    for sender, message in recorder.messages:
        fields = TABLES[sender][message["type"]]
        assert set(message) == {"type", *fields}, (sender, message)
        check_message(message, fields)


GOOD = {"round": 1, "code": None, "seconds": 1, "stopped": False, "task": "worker:0", "cluster": {}}
KINDS = {"round": "int", "code": "int?", "seconds": "number", "stopped": "flag", "task": "text", "cluster": "object"}


def test_a_message_may_have_more_fields_than_the_table():
    check_message({**GOOD, "later": 1}, KINDS)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"round": None}, "round is not of type int"),
        ({"round": True}, "round is not of type int"),
        ({"round": 1.5}, "round is not of type int"),
        ({"code": "1"}, "code is not of type int"),
        ({"seconds": True}, "seconds is not of type number"),
        ({"stopped": 0}, "stopped is not of type flag"),
        ({"task": 1}, "task is not of type text"),
        ({"cluster": []}, "cluster is not of type object"),
    ],
)
def test_a_field_of_another_type_is_named(change, name):
    with pytest.raises(ProtocolError, match=re.escape(name)):
        check_message({**GOOD, **change}, KINDS)


@pytest.mark.parametrize("name", list(KINDS))
def test_a_field_that_is_missing_is_named(name):
    with pytest.raises(ProtocolError, match=rf"^{name} is not"):
        check_message({key: value for key, value in GOOD.items() if key != name}, KINDS)


def test_the_types_of_the_table_are_those_of_json():
    for table in TABLES.values():
        for fields in table.values():
            assert {kind.rstrip("?") for kind in fields.values()} <= {"int", "number", "text", "flag", "object"}
    assert json.loads(protocol.encode("ping")) == {"type": "ping"}

"""Lines between agents and coordinator: whatever arrives, the coordinator goes on."""

import asyncio
import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.wire import Wire, coordinator_of, exited, job, registration
from tf_yarn_ops.runtime.common.protocol import ProtocolError, decode, encode
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import compose_diagnostics, parse_diagnostics
from tf_yarn_ops.runtime.common.values import plain_values
from tf_yarn_ops.runtime.master.containers import cause_of
from tf_yarn_ops.runtime.master.registry import Refused, Registry

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KINDS = ["register", "running", "exited", "terminated", "ping", "stop", "", "handle"]
KEYS = [
    "version",
    "container",
    "nonce",
    "host",
    "port",
    "round",
    "start",
    "code",
    "signal",
    "seconds",
    "log_tail",
    "result",
    "out_of_memory",
    "port_taken",
    "stopped",
    "started_at",
    "finished_at",
    "cpu_seconds",
    "peak_memory_mib",
    "yarn_container",
    "node_http",
    "unfit",
]
plausible = st.sampled_from([0, 1, 2, 137, "worker_0", "worker_1", "ps_0", "n", "h", True])
changes = st.dictionaries(st.sampled_from(KEYS), values | plausible)
whole = [registration(), {"type": "running", "round": 1, "start": 1}, exited()]
messages = st.builds(
    lambda kind, fields: {**fields, "type": kind}, st.sampled_from(KINDS) | st.text(), changes
) | st.builds(lambda message, fields: {**message, **fields}, st.sampled_from(whole), changes)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_protocol_error(line):
    try:
        assert isinstance(decode(line)["type"], str)
    except ProtocolError:
        pass


@pytest.mark.parametrize("line", [b"", b"[" * 100_000, b'{"type": 1}', b"null", b'"register"', b"\xff\xfe", b"{}"])
def test_invalid_message_is_refused(line):
    with pytest.raises(ProtocolError):
        decode(line)


@pytest.mark.slow
@given(st.sampled_from(KINDS), st.dictionaries(st.text(string.ascii_lowercase, min_size=1), values))
def test_messages_survive_the_journey(kind, fields):
    fields.pop("type", None)
    fields.pop("kind", None)
    line = encode(kind, **fields)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == plain_values({"type": kind, **fields})


@pytest.mark.slow
@given(messages)
def test_any_registration_is_taken_or_refused(message):
    try:
        peer, resumed = Registry(job()).admit(message)
    except Refused as refused:
        assert str(refused)
    else:
        assert not resumed and peer.task in job().tasks()


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(messages, max_size=8))
def test_no_message_of_an_agent_ends_the_coordinator(history):
    async def play():
        coordinator = coordinator_of(job())
        wire = Wire()
        peer = await coordinator.agents.on_connect(wire, registration())
        await coordinator.agents.on_connect(Wire(), registration("worker_1"))
        await coordinator.agents.on_connect(Wire(), registration("ps_0"))
        assert coordinator.state.lifecycle.published
        for message in history:
            coordinator.agents.on_message(peer, wire, message)
        report = coordinator.report()
        assert json.loads(json.dumps(coordinator.status()))["application_id"] == "application_1_1"
        assert parse_diagnostics(compose_diagnostics(report), report.application_id)[0] == report

    asyncio.run(play())


@pytest.mark.parametrize(
    "message, reason",
    [
        ("536.5 MB of 256 MB physical memory used", Reason.OUT_OF_MEMORY),
        ("Container killed by YARN for exceeding memory limits.", Reason.OUT_OF_MEMORY),
        ("Container [pid=1,containerID=c] is running 5B beyond the 'PHYSICAL' memory limit.", Reason.OUT_OF_MEMORY),
        ("Container preempted by scheduler", Reason.PREEMPTED),
        ("Container released on a *lost* node", Reason.NODE_LOST),
        ("Container failed during execution, see logs for more information.", Reason.CONTAINER_LOST),
        ("", Reason.CONTAINER_LOST),
    ],
)
def test_skeins_text_names_the_cause(message, reason):
    assert cause_of(message) is reason

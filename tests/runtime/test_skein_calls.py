"""Skein's calls without packages: the encodings are those of protobuf and HPACK, the server is gRPC's own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skein.proto import skein_pb2, skein_pb2_grpc

from support.waiting import until
from support.wire import job
from tf_yarn_ops.runtime.common.contract import CERTIFICATE_FILE, KEY_FILE
from tf_yarn_ops.runtime.common.mutual_tls import client_context
from tf_yarn_ops.runtime.master.containers import SkeinContainers
from tf_yarn_ops.runtime.master.skein_calls import (
    Channel,
    SkeinFailed,
    decode_headers,
    decode_message,
    encode_message,
)
from tf_yarn_ops.submit.certificate import mint

NUMBERS = st.integers(0, 2**31 - 1)


class Master(skein_pb2_grpc.AppMasterServicer):
    """Answers with many containers, keeps what a shutdown says, and fails or hangs where it is asked to."""

    def __init__(self):
        self.diagnostics = ""

    def getContainers(self, request, context):
        return skein_pb2.ContainersResponse(
            containers=[
                skein_pb2.Container(
                    service_name="worker",
                    instance=number,
                    state=2,
                    yarn_container_id=f"container_{number}",
                    yarn_node_http_address="node7:8042",
                    start_time=1_700_000_000_500,
                )
                for number in range(3000)
            ]
        )

    def SetProgress(self, request, context):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"é {request.progress:.2f}: no % of a job")

    def killContainer(self, request, context):
        until(lambda: not context.is_active(), 60)
        return skein_pb2.Empty()

    def shutdown(self, request, context):
        self.diagnostics = request.diagnostics
        return skein_pb2.Empty()


@pytest.fixture
def master(tmp_path, monkeypatch):
    """Serve a Master as Skein does; the working directory holds the job's key."""
    pair = mint()
    (tmp_path / CERTIFICATE_FILE).write_bytes(pair.certificate)
    (tmp_path / KEY_FILE).write_bytes(pair.key)
    monkeypatch.chdir(tmp_path)
    served, server = Master(), grpc.server(ThreadPoolExecutor(4))
    skein_pb2_grpc.add_AppMasterServicer_to_server(served, server)
    secure = grpc.ssl_server_credentials([(pair.key, pair.certificate)], pair.certificate, require_client_auth=True)
    monkeypatch.setenv("SKEIN_APPMASTER_ADDRESS", f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', secure)}")
    server.start()
    yield served
    server.stop(None)


def play(actions):
    """Run a coroutine function with connected containers."""

    async def all_of_it():
        containers = SkeinContainers(job())
        await containers.connect()
        try:
            return await actions(containers)
        finally:
            containers._master.close()

    return asyncio.run(all_of_it())


@given(st.text(), NUMBERS, st.lists(st.integers(0, 5), max_size=6))
def test_messages_are_those_of_protobuf(text, number, states):
    theirs = skein_pb2.ContainerInstance(service_name=text, instance=number).SerializeToString()
    ours = encode_message([(1, text), (2, number)])
    assert skein_pb2.ContainerInstance.FromString(ours) == skein_pb2.ContainerInstance.FromString(theirs)
    assert decode_message(theirs) == {key: [value] for key, value in ((1, text.encode()), (2, number)) if value}
    asked = skein_pb2.ContainersRequest.FromString(encode_message([(1, state) for state in states]))
    assert list(asked.states) == states


def test_numbers_of_a_fixed_width_are_passed_over():
    """Skein's answers have none; a later release may add some."""
    message = b"\x09" + b"\x07" * 8 + b"\x15" + b"\x07" * 4 + b"\x1a\x02ok\x20\x05"
    assert decode_message(message) == {1: [b"\x07" * 8], 2: [b"\x07" * 4], 3: [b"ok"], 4: [5]}


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", {"custom-key": "custom-header"}),
        ("408825a849e95ba97d7f8925a849e95bb8e8b4bf", {"custom-key": "custom-value"}),
        ("20828684418cf1e3c2e5f23a6ba0ab90f4ff", {}),
        ("000b677270632d73746174757301305f0131", {"grpc-status": "0"}),
    ],
)
def test_headers_of_literals_are_read(block, headers):
    """The examples of RFC 7541, C.2.1, C.4.3, C.4.1 after a change of the table's size; and gRPC's status."""
    assert decode_headers(bytes.fromhex(block)) == headers


def test_long_lists_and_texts_pass_the_flow_control(master):
    text = "é" * 500_000

    async def actions(containers):
        for _ in range(3):
            found = await containers.list()
            await containers.shutdown(False, text)
        return found

    found = play(actions)
    assert len(found) == 3000 and master.diagnostics == text
    assert found[7]._asdict() == {
        "id": "worker_7",
        "service": "worker",
        "state": "RUNNING",
        "message": "",
        "node": "node7:8042",
        "yarn_id": "container_7",
        "started_at": 1_700_000_000.5,
    }


def test_error_of_a_call_has_the_text_and_keeps_the_connection(master):
    async def actions(containers):
        with pytest.raises(SkeinFailed, match=r"SetProgress: é 0.25: no % of a job \(gRPC status 3\)"):
            await containers.progress(0.25)
        return await containers.list()

    assert len(play(actions)) == 3000


def test_call_that_hangs_ends_at_its_deadline_and_the_next_one_connects(master, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.runtime.master.containers.CALL_SECONDS", 1.0)

    async def actions(containers):
        hanging = (await containers.list())[3]
        with pytest.raises(SkeinFailed, match="addContainer"):
            await containers.replace(hanging)
        return await containers.list()

    assert len(play(actions)) == 3000


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:80"])
def test_absent_master_is_a_failure_of_the_call(master, address):
    async def call():
        await Channel(address, client_context(), 20).call("getContainers")

    with pytest.raises(SkeinFailed, match="getContainers: "):
        asyncio.run(call())

"""The agent's relay, asked by a real client of gRPC."""

import contextlib
import http.client
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from support.waiting import until
from tf_yarn_ops.runtime.agent.relay import Relay


@contextlib.contextmanager
def served(name):
    """Serve gRPC that answers with this name; give its address."""
    server = grpc.server(ThreadPoolExecutor(2))
    answer = grpc.unary_unary_rpc_method_handler(lambda request, context: name)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test", {"Where": answer})])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield address
    server.stop(None).wait()


def test_grpc_finds_a_server_where_it_has_moved(monkeypatch):
    relay = Relay()
    monkeypatch.setenv("grpc_proxy", relay.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("no_grpc_proxy", "")
    with served(b"before") as old, served(b"after") as new, grpc.insecure_channel(old) as channel:
        ask = channel.unary_unary("/test/Where")
        assert ask(b"", timeout=10) == b"before" and list(relay.open.values()) == [old]
        relay.move({old: new})  # the old one still answers, as a node does that is cut off
        until(lambda: not relay.open, 10, what="the end of the connection")

        def answer():
            try:
                return ask(b"", timeout=10, wait_for_ready=True)
            except grpc.RpcError as error:  # begun on the old connection, a moment before the channel has seen its end
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                return None

        assert until(answer, 10, what="an answer") == b"after"


@pytest.mark.parametrize("method, address", [("CONNECT", "127.0.0.1:1"), ("CONNECT", "nowhere"), ("GET", "/")])
def test_relay_refuses_what_it_can_not_reach(method, address):
    with contextlib.closing(http.client.HTTPConnection(Relay().url.rpartition("/")[2], timeout=10)) as client:
        client.request(method, address)
        assert client.getresponse().status == 502

"""The connection of an agent to its coordinator."""

import contextlib
import select
import socket
import ssl
import threading

import pytest

from support.tls import Authority
from support.waiting import until
from tf_yarn_ops.runtime.agent import contact as contact_module
from tf_yarn_ops.runtime.agent.contact import Contact
from tf_yarn_ops.runtime.common import link as link_module
from tf_yarn_ops.runtime.common.link import Link, LinkLost, connect
from tf_yarn_ops.runtime.master.listener import listen_on_first_free


def test_the_last_words_before_the_end_of_a_connection_are_heard():
    """A coordinator says bye and is gone; an agent that wakes up after both must not look for it for a minute."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(ours)
        theirs.sendall(b'{"type":"ack"}\n{"type":"bye"}\n{"half')
        theirs.close()
        assert [message["type"] for message in link.receive()] == ["ack", "bye"]
        with pytest.raises(LinkLost, match="closed the connection"):
            link.receive()


def test_repeated_message_is_built_again(monkeypatch):
    """It says how long ago the command ended, which after an outage is longer ago than at the first try."""
    pairs = [socket.socketpair(), socket.socketpair()]
    links = iter([Link(ours) for ours, _ in pairs])
    monkeypatch.setattr(contact_module, "connect", lambda *_: next(links))
    monkeypatch.setattr(contact_module, "client_context", lambda: None)
    contact = Contact("n1", [1], 60.0, lambda: b"register\n", lambda *_: None, lambda: b"ping\n")
    made = iter((b"0 s\n", b"9 s\n"))

    def received(theirs):
        until(lambda: contact.keep() or select.select([theirs], [], [], 0)[0], 10)
        return theirs.recv(100)

    (_, first), (_, second) = pairs
    with first, second:
        assert received(first) == b"register\n"
        contact.deliver(lambda: next(made))
        assert first.recv(100) == b"0 s\n"
        first.close()
        assert contact.receive() == []
        assert received(second) == b"register\n9 s\n"
        contact.acknowledged()


def test_connection_without_lines_is_given_up(monkeypatch):
    """A peer that sends bytes and never ends a line must not fill the memory of the container."""
    monkeypatch.setattr(link_module, "MAX_RECEIVED", 1000)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x" * 1001)
        with pytest.raises(LinkLost, match="more than 1000 bytes at once"):
            Link(ours).receive()


@pytest.fixture
def addresses(monkeypatch):
    """Return the list of addresses that every host name has."""
    known, resolve = [], socket.getaddrinfo

    def getaddrinfo(host, port, *words):
        return [found for address in known for found in resolve(address, port, *words)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture
def coordinator(tmp_path):
    """Serve TLS as the coordinator listens; yields its port."""
    tls = Authority(tmp_path / "ca").server("coordinator")
    listener = listen_on_first_free([0])

    def serve():
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                tls.wrap_socket(plain, server_side=True).close()

    listener.setblocking(True)
    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    serving.join(10)


def trusting_all():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], ["::1"], ["::1", "127.0.0.1"], ["192.0.2.1", "127.0.0.1"], ["2001:db8::1", "127.0.0.1"],
     ["192.0.2.1", "2001:db8::1", "::1"]],
    ids=", ".join,
)  # fmt: skip
def test_agent_finds_the_coordinator_at_any_address(coordinator, addresses, found):
    """Addresses of 192.0.2.0/24 and 2001:db8::/32 lead nowhere."""
    addresses += found
    link = connect("n1.lab.test", [coordinator], trusting_all())
    link.close()


def test_loss_says_why_each_address_failed(addresses):
    """A port that is closed, or rejected, is refused; the host behind a firewall that drops does not answer."""
    addresses += ["127.0.0.1", "::1"]
    with socket.socket() as taken:
        taken.bind(("", 0))  # and does not listen
        port = taken.getsockname()[1]
        with pytest.raises(LinkLost) as lost:
            connect("n1.lab.test", [port], trusting_all())
    assert str(lost.value) == (
        f"no coordinator on n1.lab.test, ports {port} to {port}: 127.0.0.1: Connection refused; ::1: Connection refused"
    )


def test_name_that_no_host_can_have_is_named():
    with pytest.raises(LinkLost, match=r"no address for a{64}: "):
        connect("a" * 64, [1], trusting_all())


def test_unknown_name_is_named():
    with pytest.raises(LinkLost, match=r"no address for nowhere\.invalid: "):
        connect("nowhere.invalid", [1], trusting_all())

"""What an answer may take: a server that drips or floods holds no client. On real connections."""

import gzip
import socket
import threading
import time

import httpx
import pytest

from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.transport import AnswerLimits, open_client

#: Seconds that the server may be silent, and what an answer may take: 1.2 s and 1 MiB.
SILENT, LIMITS = 0.4, AnswerLimits(3, 1 << 20)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def drip(connection, text):
    """Send a byte each 50 ms, for ever."""
    for number in range(10_000):
        connection.sendall(text[number % len(text) :][:1])
        time.sleep(0.05)


def answer(connection, begin, rest):
    connection.recv(65536)
    connection.sendall(begin)
    rest(connection)


ANSWERS = {
    "head": (b"HTTP/1.1 200 OK\r\nX-A: ", lambda connection: drip(connection, b"a")),
    "many headers": (b"HTTP/1.1 200 OK\r\n", lambda connection: drip(connection, b"A: b\r\n")),
    "body": (HEAD + b"\r\n", lambda connection: drip(connection, b" ")),
    "known length": (HEAD + b"Content-Length: 9999\r\n\r\n", lambda connection: drip(connection, b" ")),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", lambda connection: drip(connection, b"1\r\n \r\n")),
    "flood": (HEAD + b"\r\n", lambda connection: [connection.sendall(b"A" * 65536) for _ in range(16_384)]),
    "silence": (b"", lambda connection: time.sleep(60)),
    "compressed": (
        HEAD + b"Content-Encoding: gzip\r\n\r\n",
        lambda connection: connection.sendall(gzip.compress(b"x" * (64 << 20), 1)),
    ),
}


@pytest.fixture
def serve():
    """Return a function that serves one kind of answer, and returns its address."""
    listeners = []

    def start(begin, rest):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection:
                        answer(connection, begin, rest)
                except OSError:
                    if listener.fileno() < 0:
                        return

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    yield start
    for listener in listeners:
        listener.close()


def limited():
    return open_client(SimpleAuthentication("ann"), [], SILENT, None, LIMITS)


@pytest.mark.parametrize("kind", ANSWERS)
def test_answer_that_drips_or_floods_is_given_up(serve, kind):
    began = time.monotonic()
    with limited() as client, pytest.raises(httpx.TransportError):
        client.get(serve(*ANSWERS[kind]))
    assert time.monotonic() - began < 15, "its deadline is 1.2 s"


def test_each_request_of_a_connection_has_the_whole_time(serve):
    def serve_twice(connection):
        for _ in range(3):
            connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n")
            time.sleep(0.3)
            connection.sendall(b"{}")
            connection.recv(65536)

    with limited() as client:
        url, began = serve(b"", serve_twice), time.monotonic()
        for _ in range(3):
            assert client.get(url).json() == {}
            time.sleep(0.4)
    assert time.monotonic() - began > 1.2


@pytest.mark.parametrize("size, fits", [(1 << 20, True), ((1 << 20) + 1, False)])
def test_answer_has_as_many_bytes_as_its_limit(serve, size, fits):
    url = serve(HEAD + b"Content-Length: %d\r\n\r\n" % size, lambda connection: connection.sendall(b" " * size))
    with limited() as client:
        if fits:
            assert len(client.get(url).content) == size
        else:
            with pytest.raises(httpx.RemoteProtocolError, match="longer than 1 MiB"):
                client.get(url)

"""Uploads to a DataNode that stops reading for a while."""

import socket
import threading
import time

from tf_yarn_ops.hadoop.authentication import SimpleAuthentication

#: More than the sockets' buffers of both sides hold.
BODY = b"x" * (32 << 20)
CONNECT, ANSWER = 0.2, 20.0


def serve(server, pause, got):
    """Read a request's head, nothing for a while, then the rest; answer."""
    connection, _ = server.accept()
    with connection:
        content = b""
        while b"\r\n\r\n" not in content:
            content += connection.recv(4096)
        time.sleep(pause)
        size = len(content) - content.index(b"\r\n\r\n") - 4
        while size < len(BODY) and (chunk := connection.recv(1 << 20)):
            size += len(chunk)
        got.append(size)
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")


def test_sending_may_take_longer_than_connecting():
    """`requests` alone sends under the timeout of the connection."""
    got = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server, 4 * CONNECT, got), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        client = SimpleAuthentication("ann").webhdfs_client((url,), (CONNECT, ANSWER), None)
        answer = client._session.put(f"{url}/data", data=BODY, timeout=(CONNECT, ANSWER))
        thread.join(20)
    assert answer.status_code == 201
    assert got == [len(BODY)]

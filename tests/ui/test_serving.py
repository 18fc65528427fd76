"""How ytf ui serves: the file that opens the browser, and connections that say nothing."""

import contextlib
import re
import socket
import stat
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from support.waiting import until
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.ui import serving


def test_browser_is_opened_without_the_key_on_a_command_line(yarn, monkeypatch, tmp_path):
    import uvicorn

    opened = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: until(lambda: opened and not seen.append(page())))

    def page():
        file = Path(opened[0].removeprefix("file://"))
        return stat.S_IMODE(file.stat().st_mode), file.parent, file.read_text()

    seen = []
    done = CliRunner().invoke(ytf, ["ui", "--resourcemanager", yarn.url])
    key = re.search(r"key=(\S+)", done.stderr)[1]
    [(mode, folder, text)] = seen
    assert (mode, folder) == (0o600, tmp_path) and key in text and key not in opened[0]
    assert not list(tmp_path.iterdir()), "the file is gone"


@pytest.mark.slow
def test_idle_connections_hold_up_no_reader(pages, monkeypatch):
    monkeypatch.setattr(serving, "READER_SECONDS", 2.0)
    address = ("127.0.0.1", int(pages.rpartition(":")[2].partition("/")[0]))
    with contextlib.ExitStack() as stack:
        idle = []
        for number in range(1000):
            idle.append(stack.enter_context(socket.create_connection(address, 10)))
            idle[-1].sendall(b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        reader = httpx.Client(trust_env=False, timeout=20)
        assert reader.get(pages).status_code == 303
        for connection in idle:
            connection.settimeout(30)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert reader.get(pages).status_code == 303


@pytest.mark.slow
def test_reader_who_goes_on_keeps_the_connection(pages, monkeypatch):
    monkeypatch.setattr(serving, "READER_SECONDS", 1.0)
    with httpx.Client(trust_env=False, timeout=20) as reader:
        ports = {reader.get(pages).extensions["network_stream"].get_extra_info("client_addr")[1] for _ in range(3)}
        assert len(ports) == 1

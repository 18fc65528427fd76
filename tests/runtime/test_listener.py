"""Connections of agents and of strangers."""

import contextlib
import json
import os
import re
import resource
import socket
import ssl
import struct
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from support.appmaster import AppMaster
from support.runtime_jobs import QUICK, job, processes_of, task
from support.waiting import until
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.submit.certificate import mint


class Network:
    """Stands between agents and coordinator and can reset every connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = 0
        self.pairs = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def reset(self):
        """Let both ends of every connection see a reset."""
        pairs, self.pairs = self.pairs, []
        for end in (end for pair in pairs for end in pair):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        return len(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while the command runs", "while it ends"])
def test_reset_connection_does_not_fail_the_job(tmp_path, when):
    """The agent comes back with its nonce, and tells again what was not acknowledged."""
    network = Network()
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False)
    with AppMaster(tmp_path / "job", spec, agents_see=network.port) as am:
        network.target = port_of(am)
        am.log_says("Published the cluster spec")
        until(lambda: len(processes_of(am)) >= 2)
        if when == "while it ends":
            for name in ("worker_0", "worker_1"):
                (am.container(name).folder / "go").touch()
        assert network.reset() >= 2
        if when == "while the command runs":
            am.log_says("worker_0 is back as worker:0")
            am.log_says("worker_1 is back as worker:1")
            for name in ("worker_0", "worker_1"):
                (am.container(name).folder / "go").touch()
        report = am.wait()
    network.listener.close()
    assert report.reason is Reason.SUCCEEDED
    assert [t.starts for t in report.tasks] == [1, 1] and len(report.rounds) == 1


@pytest.mark.slow
def test_evaluator_whose_connection_is_reset_keeps_its_time(tmp_path):
    network = Network()
    tasks = {"worker": TaskSpec(command="true"), "evaluator": TaskSpec(command="until [ -e go ]; do sleep 0.05; done")}
    spec = job("x", tasks=tasks, deadlines=replace(QUICK, evaluator_grace=600))
    with AppMaster(tmp_path / "job", spec, agents_see=network.port) as am:
        network.target = port_of(am)
        am.log_says("evaluator:0 stays for 600 s")
        assert network.reset() >= 1
        am.log_says("evaluator_0 is back as evaluator:0")
        (am.container("evaluator_0").folder / "go").touch()
        report = am.wait()
    network.listener.close()
    assert (report.reason, task(report, "evaluator:0").state) == (Reason.SUCCEEDED, "succeeded")


class Stranger:
    """A TLS client with whatever certificate it has."""

    def __init__(self, am, credentials, folder):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if credentials:
            (folder / "crt").write_bytes(credentials.certificate)
            (folder / "key").write_bytes(credentials.key)
            context.load_cert_chain(folder / "crt", folder / "key")
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port_of(am)), 5))
        self.socket.settimeout(10)

    def echo(self, line):
        try:
            self.socket.sendall(line)  # a long one meets a connection that is closed already
            return self.socket.recv(65536)
        except (OSError, ssl.SSLError):
            return b""


def port_of(am):
    am.log_says("Listening on port")
    return int(re.search(r"Listening on port (\d+)", am.coordinator_log.read_text()).group(1))


@pytest.mark.slow
def test_strangers_get_nothing_and_the_job_goes_on(tmp_path):
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, workers=1)
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec")
        for number, credentials in enumerate((None, mint())):
            folder = tmp_path / str(number)
            folder.mkdir()
            assert Stranger(am, credentials, folder).echo(b'{"type":"register"}\n') == b""
        plain = socket.create_connection(("127.0.0.1", port_of(am)))
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        for number, line in enumerate((b"\xff\x00 garbage\n", b"[]\n", b"x" * 1_000_000 + b"\n")):
            folder = tmp_path / f"own{number}"
            folder.mkdir()
            assert Stranger(am, am.credentials, folder).echo(line) == b""
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_connections_that_say_nothing_are_few_and_do_not_last(tmp_path):
    """At most 2 N + 64 wait for their handshake, and none of them for longer than 5 s."""
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, workers=1)
    with AppMaster(tmp_path / "job", spec) as am, contextlib.ExitStack() as stack:
        am.log_says("Published the cluster spec")
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port_of(am)), 10)) for _ in range(66)]
        late = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(am)), 10))
        am.log_says("66 connections wait for their handshake")
        assert silent[0].recv(1) == b"", "the oldest makes room"
        for connection in (*silent, late):
            connection.settimeout(20)
            assert connection.recv(1) == b""
        (tmp_path / "own").mkdir()
        own = Stranger(am, am.credentials, tmp_path / "own")
        own.socket.settimeout(20)
        assert own.socket.recv(1) == b"", "the handshake alone is not enough: the first line is missing"
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_a_connection_costs_the_coordinator_little_memory(tmp_path):
    """Asyncio's own buffers would be 256 KiB each: 250 MiB for 1,000 agents in an AM of 1 GiB."""
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, workers=1)
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec")
        before = resident_mib(am)
        strangers = []
        for number in range(40):
            (tmp_path / str(number)).mkdir()
            strangers.append(Stranger(am, am.credentials, tmp_path / str(number)))
        assert resident_mib(am) - before < 40 * 0.2
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED


def resident_mib(am):
    child = Path(f"/proc/{am.coordinator.pid}/task/{am.coordinator.pid}/children").read_text().split()[0]
    return int(re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{child}/status").read_text()).group(1)) / 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, why",
    [
        ({"version": 99}, "version 99"),
        ({"container": "worker_7"}, "knows no live container"),
        ({"container": "worker_0", "nonce": "mine"}, "registered already"),
        ({"port": "80"}, "incomplete"),
    ],
)
def test_registrations_that_do_not_fit_are_refused_with_the_reason(tmp_path, change, why):
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, workers=1)
    message = {
        "type": "register",
        "version": 1,
        "container": "worker_0",
        "nonce": "n",
        "host": "h",
        "port": 1,
        "round": 1,
        "start": 0,
        "yarn_container": "",
        "node_http": "",
        "unfit": None,
    }
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec")
        (tmp_path / "own").mkdir()
        line = json.dumps(message | change).encode() + b"\n"
        answer = json.loads(Stranger(am, am.credentials, tmp_path / "own").echo(line))
        assert answer["type"] == "refused" and why in answer["why"]
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_next_free_port_is_found_behind_a_strangers_port(tmp_path):
    with socket.create_server(("", 0)) as stranger:
        base = stranger.getsockname()[1]
        with AppMaster(tmp_path / "job", job("true", ps=False, workers=1), base_port=base) as am:
            assert am.wait().reason is Reason.SUCCEEDED
            assert base < port_of(am) < base + 16


@contextlib.contextmanager
def two_neighbours():
    """Listen on two consecutive ports; gives the first."""
    for base in range(30000, 32000, 2):  # where the system gives nobody a port by chance
        with contextlib.ExitStack() as servers:
            try:
                for port in (base, base + 1):
                    servers.enter_context(socket.create_server(("", port)))
            except OSError:
                continue
            yield base
            return
    raise AssertionError("no two free ports in a row")


@pytest.mark.slow
def test_all_ports_taken_ends_the_job_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.submit.application.PORTS", 2)
    spec = job("true", ps=False, workers=1)
    with two_neighbours() as base, AppMaster(tmp_path / "job", spec, base_port=base) as am:
        report = am.wait()
    assert report.reason is Reason.AM_FAILED
    assert f"the ports {base} to {base + 1} are all taken" in report.message


@pytest.mark.slow
@pytest.mark.parametrize("target", ["page", "agents"])
def test_idle_connections_stop_neither_the_page_nor_the_agents_port(tmp_path, target):
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, workers=1)
    with AppMaster(tmp_path / "job", spec) as am, contextlib.ExitStack() as stack:
        page = int(until(lambda: am.pages.get("ytf")).rpartition(":")[2])
        am.log_says("Published the cluster spec")
        child = int(Path(f"/proc/{am.coordinator.pid}/task/{am.coordinator.pid}/children").read_text().split()[0])
        resource.prlimit(child, resource.RLIMIT_NOFILE, (1024, 1024))
        ports = {"page": page, "agents": port_of(am)}
        for _ in range(2):
            for _ in range(600):
                idle = stack.enter_context(socket.create_connection(("127.0.0.1", ports[target]), 10))
                idle.sendall(b"GET / HTTP/1.1\r\n" if target == "page" else b"")
            assert len(os.listdir(f"/proc/{child}/fd")) < 512
            Stranger(am, None, tmp_path).socket.close()
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/status.json", timeout=10) as answer:
                assert answer.status == 200
        assert am.coordinator_log.stat().st_size < 100_000
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED

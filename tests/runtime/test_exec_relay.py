"""Sessions of ``ytf exec`` on the wire: a real coordinator, agent and process; the client is the test's."""

import asyncio
import base64
import contextlib
import os
import select
import signal
import socket
import ssl
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.appmaster import AppMaster
from support.runtime_jobs import job
from support.waiting import until
from support.wire import job as wire_job
from support.wire import state_of
from tf_yarn_ops.runtime.agent import exec_process
from tf_yarn_ops.runtime.agent.exec_process import ExecProcess
from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.contract import CERTIFICATE_FILE, KEY_FILE, VERSION
from tf_yarn_ops.runtime.common.exec_session import ATTACH, EXEC, MAX_PIECE, ExecChannel
from tf_yarn_ops.runtime.common.link import Link, LinkLost, connect
from tf_yarn_ops.runtime.common.mutual_tls import client_context
from tf_yarn_ops.runtime.common.processes import set_child_subreaper
from tf_yarn_ops.runtime.master.exec_relay import MAX_SESSIONS, ExecRelay
from tf_yarn_ops.submit.certificate import mint

pytestmark = pytest.mark.slow

REQUEST = {
    "version": VERSION, "task": "worker:0", "command": "true", "tty": False, "rows": 24, "columns": 80,
    "term": "xterm", "user": "ann", "host": "laptop",
}  # fmt: skip
SECONDS = 60


@pytest.fixture(scope="module")
def am(tmp_path_factory):
    command = "export SEEN=no; until [ -e go ]; do sleep 0.1; done"
    with AppMaster(tmp_path_factory.mktemp("exec") / "job", job(command, workers=1, ps=False), allow_exec=True) as am:
        am.log_says("Published the cluster spec")
        until(lambda: marked("until [ -e go ]"), SECONDS, what="the command of the task")
        yield am


def context_of(folder, credentials):
    folder.mkdir(exist_ok=True)
    (folder / CERTIFICATE_FILE).write_bytes(credentials.certificate)
    (folder / KEY_FILE).write_bytes(credentials.key)
    return client_context(str(folder))


def marked(text):
    """Return the processes whose command lines have a text."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if text.encode() in Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(entry))
    return [pid for pid in found if pid != os.getpid()]


class Client:
    """One end of a session, which takes output only while it polls."""

    def __init__(self, link, silence_seconds=SECONDS):
        self.channel = ExecChannel(link, silence_seconds)
        self.channel.free = False
        self.texts = {"output": b"", "errors": b""}

    def poll(self):
        """Take what has arrived; return the end, ``(kind, value)``, or None."""
        select.select([self.channel.link], [], [], 0.05)
        for message in self.channel.receive():
            kind = message["type"]
            if kind in self.texts:
                self.texts[kind] += message["data"]
                self.channel.send("taken")
            elif kind in ("exit", "reason"):
                return kind, message.get("code", message.get("why"))
        return None

    def until(self, condition):
        """Poll until a condition holds; return it, or the end of the session."""
        deadline = time.monotonic() + SECONDS
        while not (found := condition()):
            assert time.monotonic() < deadline, self.texts
            if ended := self.poll():
                return ended
        return found

    def end(self):
        return self.until(lambda: None)

    def shows(self, text):
        assert self.until(lambda: text in self.texts["output"]) is True, self.texts

    def type(self, content):
        assert self.until(lambda: self.channel.free) is True
        self.channel.send_piece("input", content)


@contextlib.contextmanager
def open_session(am, command="", **request):
    link = connect("127.0.0.1", am.job.ports, context_of(am.folder / "client", am.credentials))
    try:
        link.send(protocol.encode(EXEC, **{**REQUEST, "command": command, **request}))
        yield Client(link)
    finally:
        link.close()


def execute(am, command, **request):
    """Return the end and both outputs of a command with empty input."""
    with open_session(am, command, **request) as client:
        ended = client.until(lambda: client.channel.free)  # a command may end before it wants its input
        if ended is True:
            client.channel.send_piece("input", b"")
            ended = client.end()
        return (*ended, client.texts["output"], client.texts["errors"])


def test_command_has_the_environment_and_the_folder_of_the_task(am):
    script = "echo $DTF_TASK_JOB_NAME:$DTF_TASK_INDEX $(pwd) $TF_CONFIG; echo no >&2; exit 7"
    kind, code, output, errors = execute(am, script)
    assert (kind, code, errors) == ("exit", 7, b"no\n")
    assert output.startswith(b"worker:0 %s {" % str(am.container("worker_0").folder).encode())


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("kill -KILL $$", 137, b""),
        ("exec no-such-program", 127, b"not found"),
        ("/", 126, b"Is a directory"),
        ("sleep 61234 & exit 3", 3, b""),
    ],
)
def test_exit_code_is_that_of_a_shell(am, command, code, text):
    kind, found, output, errors = execute(am, command)
    assert (kind, found, output) == ("exit", code, b"") and text in errors
    assert not marked("sleep 61234")


def test_input_and_output_pass_whole_and_in_order(am):
    content = os.urandom(40 * MAX_PIECE + 1)
    with open_session(am, "cat; echo end >&2") as client:
        for at in range(0, len(content), MAX_PIECE):
            client.type(content[at : at + MAX_PIECE])
        client.type(b"")
        assert client.end() == ("exit", 0)
        assert client.texts == {"output": content, "errors": b"end\n"}


def test_command_that_reads_no_input_ends_all_the_same(am):
    with open_session(am, "exec <&-; echo done") as client:
        client.type(b"x" * MAX_PIECE)
        assert client.end() == ("exit", 0) and client.texts["output"] == b"done\n"


#: Prints the terminal's columns and rows for each signal of a new size. A shell at its prompt may wait for a key first.
SIZES = """\
import os, signal
signal.signal(signal.SIGWINCH, lambda *_: print(*os.get_terminal_size(), flush=True))
print("ready for", *os.get_terminal_size(), flush=True)
while True:
    signal.pause()
"""


def test_terminal_has_size_type_and_ctrl_c(am, tmp_path):
    (tmp_path / "sizes.py").write_text(SIZES)
    with open_session(am, tty=True, rows=33, columns=99) as client:
        client.type(f"echo $TERM $(tty); {sys.executable} {tmp_path / 'sizes.py'}\n".encode())
        client.shows(b"ready for 99 33")
        client.channel.send("size", rows=44, columns=66)
        client.shows(b"66 44")
        client.type(b"\x03")
        client.type(b"sleep 61235\n")
        client.until(lambda: marked("sleep 61235"))
        client.type(b"\x03")
        client.type(b"exit 5\n")
        assert client.end() == ("exit", 5)
    assert b"xterm /dev/pts/" in client.texts["output"] and not marked("sleep 61235")


def test_ctrl_c_ends_a_command_with_a_terminal_as_sigint(am):
    with open_session(am, "exec sleep 61239", tty=True) as client:
        client.until(lambda: marked("sleep 61239"))
        client.type(b"\x1a\x03")
        assert client.end() == ("exit", 130)


LEAVING = "trap '' HUP TERM; sleep 61236 & setsid sleep 61236 & (nohup sleep 61236 &) ; echo up; wait; sleep 61236"


@pytest.mark.parametrize("tty", [True, False])
def test_lost_client_leaves_nothing_running(am, tty):
    with open_session(am, LEAVING, tty=tty) as client:
        client.shows(b"up")
    until(lambda: not marked("sleep 61236"), SECONDS, what="the end of the session's processes")
    assert marked("until [ -e go ]"), "the task goes on"


HOSTILE_LINES = [
    b"\xff\xff\n",
    b"[]\n",
    b'{"type":"bye"}\n',
    b'{"type":"input","data":"%"}\n',
    b'{"type":"input"}\n',
    b'{"type":"size","rows":"1","columns":2}\n',
    protocol.encode("input", data=base64.b64encode(b"x" * 30000).decode()) * 9,
    b"x" * (5 << 20),
]


def test_hostile_line_ends_the_session_only(am):
    """Another session goes on: its command sees the input that is sent at last."""
    with open_session(am, "cat") as other:
        for line in HOSTILE_LINES:
            with open_session(am, "exec sleep 61237") as client:
                client.until(lambda: marked("sleep 61237"))
                with contextlib.suppress(LinkLost):
                    client.channel.link.send(line)
                with pytest.raises(LinkLost):
                    client.end()
            until(lambda: not marked("sleep 61237"), SECONDS, what=f"the end of the session of {line[:50]!r}")
        other.type(b"alive\n")
        other.type(b"")
        assert other.end() == ("exit", 0) and other.texts["output"] == b"alive\n"


def test_client_that_takes_nothing_stops_the_command(am):
    """No end may store what the client does not take."""

    def written(pid):
        return int(Path(f"/proc/{pid}/io").read_text().split("wchar:")[1].split()[0])

    with open_session(am, "exec head -c 61238000000 /dev/zero") as client:
        client.until(lambda: marked("head -c 61238000000"))
        (pid,) = marked("head -c 61238000000")
        seen = []
        until(lambda: seen.append(written(pid)) or (len(seen) > 20 and len(set(seen[-20:])) == 1), SECONDS)
        assert 0 < seen[-1] < 1 << 20
    until(lambda: not marked("head -c 61238000000"), SECONDS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"task": "worker:1"}, "worker:1 does not run"),
        ({"task": "../x\n"}, "../x\n does not run"),
        ({"version": 0}, "the job runs another version of tf_yarn_ops than this client"),
        ({"version": "1"}, "version is not of type int"),
        ({"command": ["ls"]}, "command is not of type text"),
        ({"rows": None}, "rows is not of type int"),
    ],
)
def test_invalid_request_is_refused_with_the_reason(am, change, why):
    with open_session(am, **change) as client:
        assert client.end() == ("reason", why)


def test_values_that_no_terminal_or_program_takes_are_replaced(am):
    with open_session(am, "printf %s 'a\0b'", tty=True, rows=-5, columns=10**9, term="x\0") as client:
        assert client.end() == ("exit", 0) and client.texts["output"] == b"a\\u0000b"


def test_connection_with_another_key_is_refused(am, tmp_path):
    """The key of another job, and no TLS at all."""
    other = context_of(tmp_path / "other", mint())
    with pytest.raises(LinkLost, match="no coordinator on"):
        connect("127.0.0.1", am.job.ports, other)
    other.verify_mode = ssl.CERT_NONE  # a client that believes any server: the coordinator must refuse it
    with pytest.raises(LinkLost):
        link = connect("127.0.0.1", am.job.ports, other)
        link.send(protocol.encode(EXEC, **REQUEST))
        Client(link).end()
    port = int(am.coordinator_log.read_text().split("Listening on port ")[1].split()[0])
    with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
        plain.sendall(protocol.encode(EXEC, **REQUEST))
        with contextlib.suppress(ConnectionResetError):
            assert not plain.recv(1000)[7:], "no more than an alert of TLS"


def test_process_that_nobody_awaits_is_dropped(am):
    link = connect("127.0.0.1", am.job.ports, context_of(am.folder / "client", am.credentials))
    link.send(protocol.encode(ATTACH, id="0" * 32))
    with pytest.raises(LinkLost, match="closed the connection"):
        Client(link).end()
    link.close()
    am.log_says("A connection names no awaited session")


def test_log_names_who_ran_what_without_secrets_in_one_line(am):
    execute(am, "true --password letmein 'a\nb'", user="ann\x1b[2J\nINFO forged")
    am.log_says("Exec ends for ann\\u001b")
    (line,) = [line for line in am.coordinator_log.read_text().splitlines() if "begins for ann\\u001b" in line]
    assert "ann\\u001b[2J\\u000aINFO forged at laptop (127.0.0.1:" in line and "in worker:0: true" in line
    assert "letmein" not in line and "'a\\u000ab'" in line


@pytest.mark.parametrize("how", ["success", "the agent is killed"])
def test_session_ends_with_its_task(tmp_path, how):
    spec = job("until [ -e go ]; do sleep 0.1; done", workers=1, ps=False)
    with AppMaster(tmp_path / "job", spec, allow_exec=True) as am:
        am.log_says("Published the cluster spec")
        until(lambda: marked("until [ -e go ]"), SECONDS)
        container = am.container("worker_0")
        with open_session(am, LEAVING, tty=True) as client:
            client.shows(b"up")
            if how == "success":
                (container.folder / "go").touch()
                assert client.end() == ("reason", "the task ends")
            else:
                os.kill(container.process.pid, signal.SIGKILL)
                with contextlib.suppress(LinkLost):
                    client.end()
            until(lambda: not marked("sleep 61236"), SECONDS, what="the end of the session's processes")
        if how == "success":
            assert am.wait().reason.value == "SUCCEEDED"


class Refusing:
    """A connection that stores what it gets."""

    address = "10.0.0.1:5"

    def __init__(self):
        self.sent = b""

    def send(self, line):
        self.sent += line


@pytest.mark.parametrize(
    ("allowed", "sessions", "why"),
    [
        (False, 0, "this job was submitted without 'allow_exec: true' in the site file"),
        (True, MAX_SESSIONS, "8 sessions are open, which is the limit of a job"),
    ],
)
def test_coordinator_refuses_what_the_site_forbids_or_is_too_much(allowed, sessions, why):
    state, client = state_of(wire_job()._replace(allow_exec=allowed)), Refusing()
    state.registry.serving["worker:0"] = SimpleNamespace(connection=client, running=True)
    relay = ExecRelay(state)
    relay._sessions = dict.fromkeys(map(str, range(sessions)))
    asyncio.run(relay.serve(client, {"type": EXEC, **REQUEST}))
    assert client.sent == protocol.encode("reason", why=why)


def test_second_process_of_a_session_is_dropped():
    """It neither takes the place of the first one, nor ends the coordinator, which fails at an error of its own."""

    async def attach_twice():
        relay = ExecRelay(state_of(wire_job()))
        arrival = relay._sessions["1"] = asyncio.get_running_loop().create_future()
        first, second = (
            SimpleNamespace(address="10.0.0.1:5", writer=SimpleNamespace(wait_closed=lambda: asyncio.sleep(0)))
            for _ in range(2)
        )
        await relay.attach(first, {"type": ATTACH, "id": "1"})
        await relay.attach(second, {"type": ATTACH, "id": "1"})
        assert arrival.result() is first

    asyncio.run(attach_twice())


@contextlib.contextmanager
def served(command, *, silence_seconds=SECONDS, idle_seconds=SECONDS, **request):
    """Serve a session by a process of its own with other limits; the test has the client's end."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            ours.close()
            os.setsid()
            set_child_subreaper()
            channel = ExecChannel(Link(theirs), silence_seconds)
            ExecProcess(channel, {**REQUEST, "command": command, **request}, idle_seconds).serve()
        os._exit(0)
    theirs.close()
    with ours:
        yield Client(Link(ours)), pid
    until(lambda: os.waitpid(pid, os.WNOHANG)[0], SECONDS, what="the end of the session's process")


@pytest.mark.parametrize("tty", [True, False])
def test_session_without_input_and_output_ends(tty):
    with served("exec sleep 61240", idle_seconds=1, tty=tty) as (client, _):
        assert client.end() == ("reason", "no input and no output for 0.0166667 minutes")
        assert not marked("sleep 61240")


def test_output_and_input_keep_a_session():
    with served("for n in 1 2 3 4 5 6; do sleep 0.4; echo; done", idle_seconds=2) as (client, _):
        assert client.end() == ("exit", 0)


@pytest.mark.parametrize("command", ["exec sleep 61241", "head -c 100000 /dev/zero", "exec cat"])
def test_silent_client_ends_the_session(command):
    """Without a word of the client neither a command nor the rest of its output holds the process."""
    with served(command, silence_seconds=1) as (_, pid):
        until(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), SECONDS)
    assert not marked("sleep 61241")


def test_client_that_only_pings_holds_the_rest_until_the_limit():
    with served("head -c 100000 /dev/zero", idle_seconds=2) as (client, _):
        until(
            lambda: client.channel.send("ping") or "reason" in [one["type"] for one in client.channel.receive()],
            SECONDS,
            what="the end of a session whose output nobody takes",
        )


def test_silent_coordinator_ends_the_client():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(LinkLost, match="no message for"):
        Client(Link(ours), silence_seconds=0.2).end()


def test_agent_goes_on_where_the_system_starts_no_process(monkeypatch, am):
    """A fork that fails, as at the limit of processes, must not cost the training."""
    from tf_yarn_ops.runtime.agent.agent import Agent

    def refuse(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(exec_process, "start_exec", refuse)
    agent = SimpleNamespace(
        job=SimpleNamespace(allow_exec=True), command=SimpleNamespace(waiting=False), coordinator="h", env={}
    )
    Agent.on_exec(agent, {"type": "exec", "id": "1"})

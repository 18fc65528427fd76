"""The agent, one in every container: hold a port, register, run the command, report its end.

Input: the job file and the messages of `protocol`. Output: the user's process and its ending. One thread and one
`poll`: an agent costs at most 20 MiB and 60 ms of CPU.
"""

import contextlib
import errno
import functools
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set

from ..common import protocol
from ..common.contract import (
    AGENT_LINE,
    AGENT_WARNING,
    LINK_KEY,
    MAX_RESULT,
    METRICS_FILE,
    RESULT_FILE,
    TEMPORARY_FOLDER,
    TRAINED_FILE,
    VERSION,
    ClusterSpec,
    TaskId,
    process_environments,
    read_job,
    runtime_command,
    task_environment,
    write_line,
)
from ..common.log_part import read_log_part
from ..common.masking import mask_output, secrets_of
from ..common.processes import descendants, find_program, reserve_port, send_signal, set_child_subreaper
from ..common.roles import TENSORBOARD
from ..common.values import check_values, open_regular, parse_json
from .command import UNKILLABLE_SECONDS, Command, CommandEnd, log_size, open_wakeup, read_log_end
from .contact import Contact
from .memory_cgroup import MemoryCgroup
from .metrics import MetricsFile

if TYPE_CHECKING:
    from .relay import Relay

#: Seconds between two samples of CPU, memory and metrics.
SAMPLE_SECONDS = 5.0
#: Cores below which a command counts as idle: the threads of a waiting TensorFlow take less.
IDLE_CORES = 0.05
#: What Linux calls the PID namespace of the machine, in which no Docker container runs that YARN starts for a job.
INITIAL_NAMESPACE = "pid:[4026531836]"
#: Characters of a log's end that somebody asks for; in JSON a character may take twelve bytes.
TAIL_CHARACTERS = 8 * 1024
#: Wait after a command that a signal ended: YARN may be ending the whole container, seconds.
SIGNAL_PAUSE = 0.05
#: NodeManagers send SIGKILL 250 ms after SIGTERM; before that the agent kills the processes that are left, seconds.
TERMINATION_SECONDS = 0.15

Message = Dict[str, Any]


#: Writes a line to the container's log.
log = functools.partial(write_line, AGENT_LINE)
#: The same; those who follow the program see it too.
warn = functools.partial(write_line, AGENT_WARNING)


def is_port_taken(port: int) -> bool:
    """Return whether another process has the port; connections that an ended command has left do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
            return False
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return False
    # A socket without a process is a connection that is closing, as in TIME_WAIT. One that is only bound has no row.
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table) as rows:
            inodes |= {row.split()[9] for row in rows if row.split()[1].endswith(":%04X" % port)}
    return inodes != {"0"}


def encode_end(kind: str, name: str, text: str, **fields: Any) -> bytes:
    """Return a message with a text in the field ``name``; of one that is too long for a line, with its end."""
    while len(line := protocol.encode(kind, **{name: text}, **fields)) >= protocol.MAX_PROTOCOL_LINE:
        text = text[len(text) // 2 + 1 :]  # one character may take twelve bytes
    return line


def remove_path(path: str) -> None:
    """Remove a file, or a folder that a program has made in its place."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.unlink(path)
        except IsADirectoryError:
            import shutil  # few agents need it

            shutil.rmtree(path)


def read_result(path: str) -> Optional[Dict[str, Any]]:
    """Return the JSON object in YTF_RESULT_FILE; None without the file, and, after a log line, if it is unusable."""
    try:
        with open_regular(path) as file:
            content = file.read(MAX_RESULT + 1)
        if len(content) > MAX_RESULT:
            raise ValueError("it is longer than %d bytes" % MAX_RESULT)
        result = parse_json(content)
        if not isinstance(result, dict):
            raise ValueError("it is not a JSON object")
        return dict(check_values(result))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warn("the result file is not used: %s", error)
        return None


class Agent:
    """The agent of one container; `run` returns its exit code."""

    def __init__(self, container: str, address: str, application_id: str):
        self.job = read_job()
        self.container = container
        self.service = self.job.services.get(container.rpartition("_")[0])
        self.application_id = application_id
        self.nonce = os.urandom(16).hex()
        self.folder = os.getcwd()
        self.host = os.environ.get("NM_HOST") or socket.getfqdn()
        self.reserved: Optional[socket.socket] = None
        self.port = 0
        self.round = 1
        self.start = 0
        self.command: Optional[Command] = None
        self.renewal: Optional[Message] = None
        self.next_start: Optional[Message] = None
        self.next_start_at = 0.0
        self.exit_code: Optional[int] = None
        self.terminated = False
        self._handlers: Dict[str, Callable[[Message], None]] = {
            "welcome": self.on_welcome,
            "refused": self.on_refused,
            "start": self.on_start,
            "renew": self.on_renew,
            "stop": self.on_stop,
            "ack": self.on_ack,
            "bye": self.on_bye,
            "tail": self.on_tail,
            "read": self.on_read,
            "stack": self.on_stack,
            "exec": self.on_exec,
            "ping": self.on_ping,
            "trained": self.on_trained,
        }
        self.cluster: ClusterSpec = {}
        self.published: ClusterSpec = {}
        self.relay: Optional["Relay"] = None
        self.metrics: Optional[MetricsFile] = None
        self.secrets: Set[str] = set()
        self.env: Dict[str, str] = {}
        self.memory = MemoryCgroup()
        self.sample_at = self.active_at = 0.0
        self.log_size = 0
        self.unfit = self.name_files() or self.find_image_fault()
        self.new_port()
        self.coordinator = address.rpartition(":")[0] or address
        self.contact = Contact(
            self.coordinator, self.job.ports, self.job.deadlines["heartbeat"], self.registration, log, self.heartbeat
        )

    def new_port(self) -> None:
        """Release the port and reserve another."""
        if self.reserved:
            self.reserved.close()
        self.reserved = reserve_port()
        self.port = self.reserved.getsockname()[1]

    def name_files(self) -> Optional[str]:
        """Give the job's files the names that YARN has not given them; return why that failed."""
        try:
            links = self.job.types[self.service.type].links if self.service else {}
            for name, key in links.items():
                if os.path.lexists(key) and not os.path.lexists(name):  # on one machine they have their names
                    os.symlink(os.readlink(key), name)
            for key in {*links.values()}:
                if key.startswith(LINK_KEY) and os.path.lexists(key):
                    os.unlink(key)
        except OSError as error:
            return "a file of the job can't get its name: %s" % error
        return None

    def find_image_fault(self) -> Optional[str]:
        """Return why this container does not run in the job's image; None if nothing says so.

        A NodeManager without the Docker runtime ignores an image. The job never requests the node's PID namespace.
        """
        image = self.service and self.job.image_of(self.service.type)
        with contextlib.suppress(OSError):
            if image and os.readlink("/proc/self/ns/pid") == INITIAL_NAMESPACE:
                return (
                    "YARN has ignored the image %s and started the container outside Docker: the node needs "
                    "LinuxContainerExecutor, and docker in yarn.nodemanager.runtime.linux.allowed-runtimes" % image
                )
        return None

    def run(self) -> int:
        """Serve until the coordinator says bye, YARN ends the container, or the contact is lost for too long."""
        set_child_subreaper()
        wakeup = open_wakeup()
        signal.signal(signal.SIGTERM, self.terminate)
        signal.signal(signal.SIGINT, self.terminate)
        while self.exit_code is None:
            self.contact.keep()
            poll = select.poll()
            poll.register(wakeup, select.POLLIN)
            self.contact.listen(poll)
            poll.poll(self.pause() * 1000)
            with contextlib.suppress(BlockingIOError):
                os.read(wakeup, 4096)
            if self.terminated:
                return self.on_terminated()
            for message in self.contact.receive():
                if handler := self._handlers.get(message["type"]):
                    handler(message)
            self.step()
            if self.contact.silence() and self.exit_code is None:
                warn("no message from the coordinator for %d seconds, ending", self.contact.silence())
                self.exit_code = 1
        if self.command:
            self.command.end_now(self.job.deadlines["stop_grace"] if self.exit_code else 0.0)
        return self.exit_code

    def terminate(self, *_: object) -> None:
        """Note that YARN ends the container."""
        self.terminated = True

    def pause(self) -> float:
        """Return the time until there is something to do, seconds."""
        if self.command and self.command.waiting:
            return 0.05
        pause = self.contact.pause()
        return min(pause, max(0.0, self.next_start_at - time.monotonic())) if self.next_start else pause

    def registration(self) -> bytes:
        """Return the line with which the agent registers."""
        return protocol.encode(
            "register",
            version=VERSION,
            container=self.container,
            nonce=self.nonce,
            round=self.round,
            start=self.start,
            host=self.host,
            port=self.port,
            yarn_container=os.environ.get("CONTAINER_ID", ""),
            node_http="%s:%s" % (self.host, os.environ.get("NM_HTTP_PORT", "")),
            unfit=self.unfit,
        )

    def heartbeat(self) -> bytes:
        """Return a sample of the command if one is due, else a ping."""
        now = time.monotonic()
        if self.command is None or now < self.sample_at:
            return protocol.encode("ping")
        self.sample_at = now + SAMPLE_SECONDS
        return self.sample(self.command)

    def sample(self, command: Command, *, last: bool = False) -> bytes:
        """Return the line with what the command uses and its new metrics."""
        assert self.metrics is not None
        points, left_out = self.metrics.read(last=last)
        self.memory.poll()
        usage, written, now = command.meter.measure(), log_size(), time.monotonic()
        if points or written != self.log_size or usage["cpu_cores"] >= IDLE_CORES or usage["gpu_percent"]:
            self.active_at, self.log_size = now, written
        return protocol.encode(
            "sample",
            round=self.round,
            start=self.start,
            metrics=points,
            left_out=left_out,
            idle_seconds=round(now - self.active_at, 1),
            **usage,
        )

    def on_welcome(self, message: Message) -> None:
        """Take the coordinator's round number if the agent is new: it may join a later round than the first."""
        if self.start == 0:
            self.round = message["round"]
        log("%s registered as %s with port %d", self.container, message["task"], self.port)

    def on_refused(self, message: Message) -> None:
        """End: the coordinator does not want this container."""
        warn("the coordinator refused %s: %s", self.container, message["why"])
        self.exit_code = 1

    def on_start(self, message: Message) -> None:
        """Plan the start of the command after the delay; of a start that is already known, take what has moved."""
        if message["round"] != self.round:
            return
        self.cluster = message["cluster"]
        if self.relay:
            self.relay.move(
                {
                    address: self.cluster[name][index]
                    for name, hosts in self.published.items()
                    for index, address in enumerate(hosts)
                }
            )
        if message["start"] > self.start:
            self.start = message["start"]
            self.next_start = message
            self.next_start_at = time.monotonic() + message["delay"]

    def on_renew(self, message: Message) -> None:
        """End the command; `step` then takes another port and registers for the next round.

        One of this round is for a command that has ended, because another process has its port.
        """
        if message["round"] > self.round or (message["round"] == self.round and self.start and not self.command):
            self.renewal = message
            self.next_start = None
            if self.command:
                self.command.end(message["grace"])

    def on_stop(self, message: Message) -> None:
        """End the command and report it; cancel and report a start that is still planned."""
        if self.command:
            self.command.end(message["grace"])
        elif self.next_start:
            self.contact.send(
                protocol.encode(
                    "exited",
                    round=self.round,
                    start=self.start,
                    stopped=True,
                    code=None,
                    signal=None,
                    seconds=0.0,
                    started_at=None,
                    finished_at=None,
                    late=0.0,
                    cpu_seconds=None,
                    peak_memory_mib=None,
                    log_tail="",
                    result=None,
                    out_of_memory=None,
                    port_taken=False,
                )
            )
        self.next_start = None

    def on_trained(self, _: Message) -> None:
        """Create the file that shows an evaluator the end of the training."""
        os.close(os.open(os.path.join(self.folder, TRAINED_FILE), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666))

    def on_tail(self, message: Message) -> None:
        """Send the end of the log; nothing if the job shows no logs."""
        self.send_text(message, read_log_end(TAIL_CHARACTERS) if self.job.report_log_tail else "")

    def on_read(self, message: Message) -> None:
        """Send a part of the log as it is; nothing if the job shows no logs."""
        text = read_log_part("/proc/self/fd/1", message["offset"]) if self.job.report_log_tail else ""
        self.contact.send(protocol.encode("log", id=message["id"], text=text))

    def on_stack(self, message: Message) -> None:
        """Send the stacks of the command's processes."""
        from .stacks import read_stacks  # few jobs need it

        self.send_text(message, read_stacks(TAIL_CHARACTERS) if self.command else "no command runs\n")

    def on_exec(self, message: Message) -> None:
        """Start the process of a session beside the command; without a command there is none."""
        if self.job.allow_exec and self.command and not self.command.waiting:
            from .exec_process import start_exec  # few jobs need it

            log("a session of ytf exec starts")
            try:
                start_exec(self.coordinator, message["id"], self.env)
            except OSError as error:
                warn("no session of ytf exec: %s", error)

    def send_text(self, message: Message, text: str) -> None:
        """Answer a message with a text, or its end, without the values of secret variables."""
        self.contact.send(encode_end("log", "text", mask_output(text, self.secrets), id=message["id"]))

    def on_ping(self, _: Message) -> None:
        """Answer that the agent lives and its command runs; after the command's end the report of it is the answer."""
        self.step()
        if self.command is None or not self.command.waiting:
            self.contact.send(protocol.encode("pong"))

    def on_ack(self, _: Message) -> None:
        """Note that the ending has arrived."""
        self.contact.acknowledged()

    def on_bye(self, _: Message) -> None:
        """End: the job is over."""
        self.exit_code = 0

    def step(self) -> None:
        """Take the steps that are due: report an ended command, register for the next round, start the command."""
        if self.command and (ending := self.command.reap()):
            self.report(self.command, ending)
            self.command = None
        if self.renewal and self.command is None:
            self.round, self.renewal = self.renewal["round"], None
            self.start = 0
            self.new_port()
            self.contact.renew()
        if self.next_start and self.command is None and time.monotonic() >= self.next_start_at:
            message, self.next_start = self.next_start, None
            self.launch(message)

    def launch(self, message: Message) -> None:
        """Start the user's command."""
        task = TaskId.parse(message["task"])
        plan = self.job.types[task.type]
        address = "%s:%d" % (self.host, self.port)
        os.makedirs(TEMPORARY_FOLDER, exist_ok=True)
        temporary = "/proc/%d/cwd/%s" % (os.getpid(), TEMPORARY_FOLDER)  # short enough for sockets in it (108 bytes)
        env = task_environment(
            self.job,
            task,
            self.cluster,
            {**os.environ, "TMPDIR": temporary},
            application_id=self.application_id,
            round_number=self.round,
            address=address,
            folder=self.folder,
        )
        if self.job.leads(task):
            with reserve_port() as free:  # TonY's programs start a TensorBoard of their own on it
                env.setdefault("TB_PORT", str(free.getsockname()[1]))
        for name in (RESULT_FILE, METRICS_FILE):
            remove_path(os.path.join(self.folder, name))
        if not plan.hold_port and self.reserved:
            self.reserved.close()
            self.reserved = None
        if self.job.workers_rejoin and task.type in ("chief", "ps"):
            from .relay import Relay  # threads cost the other agents memory

            self.relay = self.relay or Relay()
            self.relay.move({})
            env.update(grpc_proxy=self.relay.url, no_grpc_proxy="")
        self.published = self.cluster
        self.metrics = MetricsFile(os.path.join(self.folder, METRICS_FILE))
        self.secrets = secrets_of(plan._asdict())
        self.sample_at, self.active_at = 0.0, time.monotonic()
        log("%s starts, round %d, start %d, on %s", task, self.round, self.start, address)
        if self.job.hides_gpus(task) and find_program("nvidia-smi"):
            log("%s sees none of the node's GPUs: it has asked for none by task_gpus", task)
        self.memory.begin()
        self.env = env
        mirrored = (self.job.mirror != "off" or self.job.mirror_input) and task.type != TENSORBOARD
        self.command = Command(
            runtime_command("mirror") if mirrored else plan.command,
            env,
            processes=[] if mirrored else process_environments(self.job, env),
            grace=float(self.job.deadlines["stop_grace"]),
        )
        self.contact.send(protocol.encode("running", round=self.round, start=self.start))

    def read_result(self) -> Optional[Dict[str, Any]]:
        """Return the program's result with the values of its secret variables masked; names stay."""
        result = read_result(os.path.join(self.folder, RESULT_FILE))
        masked: Optional[Dict[str, Any]] = mask_output(result, self.secrets)
        if masked != result:
            warn("the result file has values that look like secrets: the report shows them as ***")
        return masked

    def report(self, command: Command, ending: CommandEnd) -> None:
        """Report to the coordinator how the command ended."""
        if not command.stopping:
            select.select([], [], [], SIGNAL_PAUSE if ending.signal else 0)
            if self.terminated:
                return
        tail = mask_output(command.log_tail(self.job.report_log_tail), self.secrets)
        sample = self.sample(command, last=True)
        how = "signal %d" % ending.signal if ending.signal else "exit code %s" % ending.code
        log("the command ended with %s after %.1f seconds", how, ending.seconds)
        fields = {
            "round": self.round,
            "start": self.start,
            "stopped": command.stopping,
            "code": ending.code,
            "signal": ending.signal,
            "seconds": round(ending.seconds, 3),
            "started_at": command.started_at,
            "finished_at": command.finished_at,
            "cpu_seconds": round(ending.cpu_seconds, 3),
            "peak_memory_mib": round(max(ending.peak_memory_mib, command.meter.peak_mib), 1),
            "result": self.read_result(),
            "out_of_memory": self.memory.kill_of(ending.code, ending.signal),
            "port_taken": self.reserved is None and is_port_taken(self.port),
        }

        def message() -> bytes:
            late = round(time.time() - command.finished_at, 3)
            return sample + encode_end("exited", "log_tail", tail, late=late, **fields)

        self.contact.deliver(message)

    def on_terminated(self) -> int:
        """Tell the coordinator that YARN ends the container, and end all processes before YARN's SIGKILL comes."""
        self.contact.send(protocol.encode("terminated"))
        send_signal(descendants(), signal.SIGTERM)
        began = time.monotonic()
        while descendants() and time.monotonic() < began + TERMINATION_SECONDS:
            select.select([], [], [], 0.01)
        while descendants() and time.monotonic() < began + UNKILLABLE_SECONDS:
            send_signal(descendants(), signal.SIGKILL)
            select.select([], [], [], 0.005)
        return 143


def main(arguments: List[str]) -> int:
    """Run the agent of this container.

    Parameters
    ----------
    arguments : list of str
        The service and the application id, for readers of ``ps`` only.

    Returns
    -------
    int
        The exit code.
    """
    return Agent(
        os.environ["SKEIN_CONTAINER_ID"], os.environ["SKEIN_APPMASTER_ADDRESS"], os.environ["SKEIN_APPLICATION_ID"]
    ).run()

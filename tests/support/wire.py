"""A coordinator without a network, which keeps its messages to agents; and the state of a job alone."""

from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.protocol import decode
from tf_yarn_ops.runtime.master.containers import Container, SkeinContainers
from tf_yarn_ops.runtime.master.coordinator import Coordinator
from tf_yarn_ops.runtime.master.job_state import JobState
from tf_yarn_ops.submit.application import build_runtime_job


class Wire:
    """One end of a connection: keeps what the coordinator says."""

    address = "test"

    def __init__(self):
        self.said, self.closed = [], False

    def send(self, line):
        self.said.append(decode(line))

    def close(self):
        self.closed = True

    def last(self):
        return self.said[-1]["type"], self.said[-1].get("round"), self.said[-1].get("start")


def known_containers():
    """Return the containers of `job`, and replacements, as Skein lists them."""
    return {f"{name}_{n}": Container(f"{name}_{n}", name, "RUNNING", "") for name in ("worker", "ps") for n in range(3)}


def coordinator_of(job):
    coordinator = Coordinator(job, "application_1_1", SkeinContainers(job))
    coordinator.state.known = known_containers()
    return coordinator


def state_of(job, began=0.0):
    """Return the state of a job that has just begun, without a coordinator around it."""
    state = JobState(job, "application_1_1", began)
    state.known = known_containers()
    return state


def join(state, *containers, now=0.0):
    """Let the agents of these containers register, each over a connection of its own; return them."""
    for container in containers:
        state.on_connect(f"connection of {container}", registration(container), now)
    return [state.registry.peers[container] for container in containers]


def receive(state, peer, message, now=0.0):
    """Let a message of an agent arrive over its present connection; return the effects."""
    return state.on_message(peer, peer.connection, message, now)


def answer(coordinator):
    """Let every agent show that it lives, as a coordinator asks after a failure."""
    for peer in [peer for peer in coordinator.state.registry.peers.values() if peer.connection]:
        coordinator.agents.on_message(peer, peer.connection, {"type": "pong"})


def job(**fields):
    spec = JobSpec(command="x", tasks={"ps": TaskSpec(), "worker": TaskSpec(instances=2)}, **fields)
    return build_runtime_job(spec)._replace(user="u")


def job_of(*resourcemanagers, **fields):
    """Return a job that names these ResourceManagers."""
    return job()._replace(resourcemanagers=resourcemanagers, **fields)


def registration(container="worker_0", **fields):
    return {
        "type": "register",
        "version": 1,
        "container": container,
        "nonce": f"of {container}",
        "host": "h",
        "port": 2000,
        "round": 1,
        "start": 0,
        "yarn_container": "",
        "node_http": "",
        "unfit": None,
        **fields,
    }


def exited(**fields):
    """Return the message of a command that ended with exit code 0 after a minute."""
    return {
        "type": "exited",
        "round": 1,
        "start": 1,
        "stopped": False,
        "code": 0,
        "signal": None,
        "seconds": 60.0,
        "started_at": 1.0,
        "finished_at": 61.0,
        "late": 0.0,
        "cpu_seconds": 1.0,
        "peak_memory_mib": 1.0,
        "log_tail": "",
        "result": None,
        "out_of_memory": None,
        "port_taken": False,
        **fields,
    }


def sample(**fields):
    """Return the message with what a command uses that has just been active."""
    return {
        "type": "sample",
        "round": 1,
        "start": 1,
        "cpu_seconds": 2.0,
        "cpu_cores": 1.5,
        "memory_mib": 100.0,
        "peak_cpu_cores": 1.5,
        "peak_memory_mib": 120.0,
        "idle_seconds": 0.0,
        **dict.fromkeys(("gpus", "gpu_percent", "gpu_memory_mib", "gpu_given_mib", "gpu_uuids")),
        "metrics": {},
        "left_out": 0,
        **fields,
    }

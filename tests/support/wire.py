"""A coordinator without a network: what it says to its agents is kept."""

from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.protocol import decode
from tf_yarn_ops.runtime.master.containers import Container, SkeinContainers
from tf_yarn_ops.runtime.master.coordinator import Coordinator
from tf_yarn_ops.submit.application import JobContext, build_runtime_job


class Wire:
    """One end of a connection: keeps what the coordinator says."""

    address = "test"

    def __init__(self):
        self.said = []

    def send(self, line):
        self.said.append(decode(line))

    def close(self):
        pass

    def last(self):
        return self.said[-1]["type"], self.said[-1].get("round"), self.said[-1].get("start")


def coordinator_of(job):
    coordinator = Coordinator(job, "application_1_1", SkeinContainers(job))
    coordinator.known = {
        f"{name}_{n}": Container(f"{name}_{n}", name, "RUNNING", "") for name in ("worker", "ps") for n in range(3)
    }
    return coordinator


def answer(coordinator):
    """Let every agent show that it lives, as a coordinator asks after a failure."""
    for peer in [peer for peer in coordinator.registry.peers.values() if peer.connection]:
        coordinator.on_message(peer, peer.connection, {"type": "pong"})


def job(**fields):
    spec = JobSpec(command="x", tasks={"ps": TaskSpec(), "worker": TaskSpec(instances=2)}, **fields)
    return build_runtime_job(spec, JobContext(20000, user="u"))


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

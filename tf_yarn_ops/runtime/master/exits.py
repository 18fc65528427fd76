"""What the end of a command or of a container means for the job: pure, from an agent's message to an event."""

import re
from typing import Any, Mapping, Optional, Tuple, Union

from ..common.contract import Job
from ..common.reasons import Reason
from ..common.status import Usage
from .containers import last_line_of
from .lifecycle import Exited, Lost
from .registry import Peer

#: Share of a container's memory above which SIGKILL is taken for the kernel's.
FULL = 0.9
#: The words of a program that has found its port bound; like the next three, they only add advice to a message.
_PORT_BOUND = ("address already in use", "eaddrinuse")
#: The words of TensorFlow when Keras 3's ``model.fit`` runs under a strategy of several tasks, by what they mean.
#: A program's own loop gets the second words, too, so they count only below a line of Keras 3.
_KERAS_FIT = {
    "Keras 3's model.fit can't train with TensorFlow in several workers": re.compile(
        r"values\.PerReplica'>\) to a Tensor", re.I
    ),
    "Keras 3's model.fit can't train with parameter servers": re.compile(
        r"/keras/src/.*ClusterCoordinator\.create_per_worker_dataset", re.S
    ),
}
#: The words of TensorFlow where it can't open a path in HDFS.
_NO_HDFS = "File system scheme 'hdfs' not implemented"
#: The words of CUDA and cuDNN, PyTorch, TensorFlow, and JAX where the memory of a GPU is full.
_GPU_FULL = re.compile(
    r"\bCUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|OOM when allocating tensor.*device:GPU|RESOURCE_EXHAUSTED: Out of memory"
)


def describe_kill(found: Mapping[str, Any]) -> str:
    """Return a sentence about the kernel's kills for memory, as an agent reports them."""
    limit = "no limit, so the node's memory was exhausted" if found.get("limit") is None else f"{found['limit']} MiB"
    peak = f", the peak is {found['peak']} MiB" if found.get("peak") and found.get("limit") is not None else ""
    return f"the kernel killed {found.get('kills')} of its processes for memory: its cgroup has {limit}{peak}"


def read_exit(job: Job, peer: Peer, message: Mapping[str, Any], node: str) -> Union[Exited, Lost]:
    """Return the event of a command that ended: `Lost` if its port was taken.

    Parameters
    ----------
    job : Job
    peer : Peer
        Its agent.
    message : mapping
        ``exited`` of `protocol`.
    node : str
        As in `Exited.node`.
    """
    number, tail, plan = message["signal"], message["log_tail"], job.types[peer.task.type]
    code = 128 + number if number is not None else 1 if message["code"] is None else message["code"]
    if code and plan.in_cluster and message["port_taken"]:
        return Lost(peer.task, Reason.CONTAINER_LOST, "its port was taken before it could use it")
    how = f"was ended by signal {number}" if number else f"failed with exit code {message['code']}"
    cause = f"{how} on {peer.host} after {message['seconds']:.1f} s"
    event = Exited(peer.task, code, message["seconds"], cause, node)
    if code and message["out_of_memory"]:
        killed = f"{cause}: {describe_kill(message['out_of_memory'])}"
        return event._replace(cause=killed, reason=Reason.OUT_OF_MEMORY)
    printed, last = tail.lower(), last_line_of(tail)
    if keras := [what for what, words in _KERAS_FIT.items() if words.search(tail)]:
        cause += (
            f": {keras[0]}: install tf_keras of TensorFlow's version, and add --env TF_USE_LEGACY_KERAS=1 "
            "(a variable of the job)"
        )
    elif last:
        cause += f": {last[:300]}"
    advice = (
        (
            plan.in_cluster and plan.hold_port and any(words in printed for words in _PORT_BOUND),
            f". Its reserved port {peer.port} stays bound, with SO_REUSEPORT, while the command runs: for a "
            "program that binds it plainly, set hold_port to false",
        ),
        (
            _NO_HDFS in tail,
            ". Give the program local copies of paths in HDFS: set mirror to chief, and mirror_input to a size",
        ),
        (
            not job.hides_gpus(peer.task) and _GPU_FULL.search(tail),
            ". The memory of a GPU was full, not that of the container: use smaller batches or a larger GPU; "
            "task_memory has no effect on it",
        ),
    )
    return event._replace(cause=cause + "".join(text for applies, text in advice if code and applies))


def explain_sigkill(memory: int, usage: Optional[Usage], cause: str) -> Tuple[Reason, str]:
    """Return why SIGKILL ended a container with its agent: for memory, if the task used nearly all its MiB."""
    killed = "SIGKILL ended its container (exit code 137)"
    if usage is None or usage.peak_memory_mib < FULL * memory:
        return Reason.CONTAINER_LOST, f"{killed}: {cause}"
    return Reason.OUT_OF_MEMORY, f"{killed} when it used {usage.peak_memory_mib:.0f} of {memory} MiB"

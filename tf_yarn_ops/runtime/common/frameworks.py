"""What each framework needs to find its peers: the table of frameworks, read by the job and by its agents."""

import json
from typing import Callable, Dict, Mapping, NamedTuple, Sequence

from .roles import CHIEF, OTHER, ROLES, Role


class Position(NamedTuple):
    """The place of a task among those of the cluster spec.

    Attributes
    ----------
    cluster : mapping of str to sequence of str
        The cluster spec.
    type, index : str, int
        The task.
    number : int
        Its number; -1 outside the cluster spec. The chief's is 0, without a chief that of the first worker.
    addresses : sequence of str
        ``host:port`` of all tasks, by their numbers.
    application_id : str
    round : int
        From 1.
    processes, local_rank : int
        How many processes each task has, and which of them this is.
    """

    cluster: Mapping[str, Sequence[str]]
    type: str
    index: int  # type: ignore[assignment]  # hides tuple.index
    number: int
    addresses: Sequence[str]
    application_id: str
    round: int
    processes: int = 1
    local_rank: int = 0

    @property
    def leader(self) -> str:
        """Return the address of rank 0."""
        return self.addresses[0]

    @property
    def rank(self) -> int:
        """Return the rank of the process; negative outside the cluster spec."""
        return self.number * self.processes + self.local_rank

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.addresses) * self.processes


def find_position(
    cluster: Mapping[str, Sequence[str]],
    task_type: str,
    index: int,
    application_id: str,
    round_number: int,
    processes: int = 1,
) -> Position:
    """Return the position of a task; numbers are given type by type: chief, worker, then the others in their order."""
    order = sorted(cluster, key=lambda name: (name != CHIEF, name != "worker"))
    tasks = [(name, number) for name in order for number in range(len(cluster[name]))]
    number = tasks.index((task_type, index)) if (task_type, index) in tasks else -1
    addresses = [cluster[name][one] for name, one in tasks]
    return Position(cluster, task_type, index, number, addresses, application_id, round_number, processes)


def tf_config(cluster: Mapping[str, Sequence[str]], task_type: str, index: int) -> str:
    """Return TF_CONFIG; it names a task outside the cluster spec (the evaluator) without its address."""
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}}, separators=(",", ":"))


def _tensorflow(at: Position) -> Dict[str, str]:
    """Return TF_CONFIG, and DTensor's clients in the order of their ranks if there are several and no ps.

    References
    ----------
    TensorFlow, `tf.experimental.dtensor.initialize_accelerator_system`.
    """
    env = {"TF_CONFIG": tf_config(at.cluster, at.type, at.index)}
    if at.rank >= 0 and at.size > 1 and "ps" not in at.cluster:
        env.update(
            DTENSOR_CLIENT_ID=str(at.rank),
            DTENSOR_NUM_CLIENTS=str(at.size),
            DTENSOR_JOB_NAME="worker",
            DTENSOR_JOBS=",".join(at.addresses),
        )
    return env


def _pytorch(at: Position) -> Dict[str, str]:
    """Return what torchrun sets, and TonY's WORLD and INIT_METHOD."""
    host, _, port = at.leader.rpartition(":")
    size = str(at.size)
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "RANK": str(at.rank),
        "WORLD_SIZE": size,
        "LOCAL_RANK": str(at.local_rank),
        "LOCAL_WORLD_SIZE": str(at.processes),
        "GROUP_RANK": str(at.number),
        "GROUP_WORLD_SIZE": str(len(at.addresses)),
        "ROLE_NAME": at.type,
        "ROLE_RANK": str(at.index * at.processes + at.local_rank),
        "ROLE_WORLD_SIZE": str(len(at.cluster[at.type]) * at.processes),
        "TORCHELASTIC_RUN_ID": at.application_id,
        "TORCHELASTIC_RESTART_COUNT": str(at.round - 1),
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "WORLD": size,
        "INIT_METHOD": "tcp://" + at.leader,
    }


def _jax(at: Position) -> Dict[str, str]:
    """Return what `jax.distributed.initialize` reads: the address itself, the numbers through `program.jax_cluster`."""
    return {"JAX_COORDINATOR_ADDRESS": at.leader, "JAX_PROCESS_ID": str(at.rank), "JAX_NUM_PROCESSES": str(at.size)}


def _horovod(at: Position) -> Dict[str, str]:
    """Return what horovodrun sets with Gloo; rank 0 has to serve the rendezvous at this address."""
    host, _, port = at.leader.rpartition(":")
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": host,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
        # Processes with one name form a group, and several containers of a job may have one host.
        "HOROVOD_HOSTNAME": f"{at.type}-{at.index}",
        "HOROVOD_RANK": str(at.rank),
        "HOROVOD_SIZE": str(at.size),
        "HOROVOD_LOCAL_RANK": str(at.local_rank),
        "HOROVOD_LOCAL_SIZE": str(at.processes),
        "HOROVOD_CROSS_RANK": str(at.number),
        "HOROVOD_CROSS_SIZE": str(len(at.addresses)),
    }


class Framework(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    variables : callable
        Returns the variables of a process. A container counts as a machine, because YARN gives it GPUs of its own.
    equal : bool
        Whether all tasks are equal ranks: each must end with exit code 0, and tasks outside the cluster spec get none
        of the variables. Otherwise the table of `roles` holds.
    hold_port : bool
        Whether its servers can bind a reserved port that stays bound, with SO_REUSEPORT.
    divides_gpus : bool
        Whether several processes of a task see a share of its GPUs each. Otherwise they see all, because programs
        select theirs by the local rank.
    """

    variables: Callable[[Position], Dict[str, str]]
    equal: bool = True
    hold_port: bool = False
    divides_gpus: bool = False

    def role_of(self, task_type: str) -> Role:
        """Return how a task type is treated."""
        return OTHER if self.equal else ROLES.get(task_type, OTHER)


TENSORFLOW = "tensorflow"
#: By the words of the option ``framework``.
FRAMEWORKS = {
    TENSORFLOW: Framework(_tensorflow, equal=False, hold_port=True),
    "pytorch": Framework(_pytorch),
    "jax": Framework(_jax, hold_port=True, divides_gpus=True),
    "horovod": Framework(_horovod),
    "none": Framework(lambda at: {}, equal=False, divides_gpus=True),
}

"""From the message of an agent whose command has ended to the event of the lifecycle."""

import pytest

from support.wire import exited, job, registration
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.status import Usage
from tf_yarn_ops.runtime.master.exits import describe_kill, explain_sigkill, read_exit
from tf_yarn_ops.runtime.master.lifecycle import Exited, Lost
from tf_yarn_ops.runtime.master.registry import Registry

KERAS = "ValueError: can't convert <class 'tensorflow...values.PerReplica'>) to a Tensor"
#: What TensorFlow 2.21 and Keras 3.15 print.
PARAMETER_SERVERS = """\
  File "/v/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/v/lib/python3.11/site-packages/tensorflow/python/distribute/input_lib.py", line 984, in __iter__
    raise ValueError("To use this dataset, you need to pass this dataset to "
ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset.
"""
HDFS = "UnimplementedError: File system scheme 'hdfs' not implemented"


def read(spec=None, **fields):
    spec = spec or job()
    peer, _ = Registry(spec).admit(registration())
    return read_exit(spec, peer, exited(**fields), "n:1")


@pytest.mark.parametrize(
    "fields, code, cause",
    [
        ({"code": 0}, 0, "failed with exit code 0 on h after 60.0 s"),
        ({"code": 3}, 3, "failed with exit code 3 on h after 60.0 s"),
        ({"code": None}, 1, "failed with exit code None on h after 60.0 s"),
        ({"code": None, "signal": 9}, 137, "was ended by signal 9 on h after 60.0 s"),
        ({"code": 3, "log_tail": "a\n b \n\n"}, 3, "failed with exit code 3 on h after 60.0 s: b"),
        ({"code": 3, "log_tail": "x" * 400}, 3, "failed with exit code 3 on h after 60.0 s: " + "x" * 300),
    ],
)
def test_exit_has_the_code_of_a_shell_and_the_last_line(fields, code, cause):
    event = read(**fields)
    assert (event.code, event.cause, event.node, event.seconds) == (code, cause, "n:1", 60.0)
    assert event.reason is Reason.TASK_FAILED


@pytest.mark.parametrize(
    "printed, words, lacks",
    [
        (KERAS, "install tf_keras of TensorFlow's version", "PerReplica"),
        (PARAMETER_SERVERS, "Keras 3's model.fit can't train with parameter servers: install tf_keras", "dataset"),
        (PARAMETER_SERVERS.replace("/keras/src", "/mine"), "ClusterCoordinator.create_per", "tf_keras"),
        (PARAMETER_SERVERS.replace("/keras/src", "/tf_keras/src"), "ClusterCoordinator.create_per", "tf_keras"),
        (HDFS, "set mirror to chief", "tf_keras"),
        ("OSError: [Errno 98] Address already in use", "set hold_port to false", "mirror"),
        ("EADDRINUSE", "Its reserved port 2000 stays bound", "mirror"),
    ],
)
def test_known_words_of_a_program_add_advice_to_a_failure(printed, words, lacks):
    cause = read(code=1, log_tail=printed).cause
    assert words in cause and lacks not in cause
    assert "set mirror" not in read(code=0, log_tail=printed).cause
    assert "hold_port" not in read(code=0, log_tail=printed).cause


@pytest.mark.parametrize(
    "printed, full",
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity", True),
        ("RuntimeError: CUDA error: out of memory", True),
        ("failed to allocate 1.50GiB from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\nerror", True),
        ("OOM when allocating tensor with shape[9] and type float on /job:worker/task:0/device:GPU:0 by a\nhint", True),
        ("OOM when allocating tensor with shape[9] and type float on /job:worker/task:0/device:CPU:0 by a", False),
        ("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 11.95MiB.", True),
        ("RESOURCE_EXHAUSTED: Received message larger than max", False),
        ("MemoryError", False),
    ],
)
def test_full_gpu_is_advice_and_never_a_reason(printed, full):
    """What a program prints chooses no reason; a task that sees no GPU has filled none."""
    hidden = job()
    worker = hidden.services["worker"]._replace(gpus=1)
    event = read(hidden._replace(services={**hidden.services, "worker": worker}), code=1, log_tail=printed)
    assert ("The memory of a GPU was full" in event.cause, event.reason) == (full, Reason.TASK_FAILED)
    assert "The memory of a GPU" not in read(hidden, code=1, log_tail=printed).cause


def test_advice_about_a_held_port_needs_a_held_port():
    held = job()
    spec = held._replace(types={name: plan._replace(hold_port=False) for name, plan in held.types.items()})
    assert "hold_port" not in read(spec, code=1, log_tail="Address already in use").cause


@pytest.mark.parametrize("code, event", [(1, Lost), (0, Exited)])
def test_failure_on_a_taken_port_is_a_loss(code, event):
    assert isinstance(read(code=code, port_taken=True), event)


@pytest.mark.parametrize(
    "found, text",
    [
        ({"kills": 1, "limit": None}, "for memory: its cgroup has no limit, so the node's memory was exhausted"),
        ({"kills": 2, "limit": 512}, "for memory: its cgroup has 512 MiB"),
        ({"kills": 2, "limit": 512, "peak": 511}, "for memory: its cgroup has 512 MiB, the peak is 511 MiB"),
    ],
)
def test_kernels_kill_is_out_of_memory_with_its_figures(found, text):
    assert describe_kill(found).endswith(text)
    event = read(code=None, signal=9, out_of_memory=found, log_tail=KERAS)
    assert event.reason is Reason.OUT_OF_MEMORY and event.cause.endswith(text)
    assert read(code=0, out_of_memory=found).reason is Reason.TASK_FAILED


@pytest.mark.parametrize(
    "peak, reason, words",
    [
        (None, Reason.CONTAINER_LOST, "SIGKILL ended its container (exit code 137): it says"),
        (899.0, Reason.CONTAINER_LOST, "(exit code 137): it says"),
        (900.0, Reason.OUT_OF_MEMORY, "when it used 900 of 1000 MiB"),
    ],
)
def test_sigkill_of_a_full_container_is_out_of_memory(peak, reason, words):
    usage = None if peak is None else Usage(0.0, 1.0, 1.0, 1.0, peak, 1.0)
    found, cause = explain_sigkill(1000, usage, "it says")
    assert (found, cause.endswith(words)) == (reason, True), cause

"""The messages between agents and coordinator: one JSON object a line, over mutual TLS, ``type`` and these fields.

A question mark behind a type allows null.

From the agent:

- ``register``: version int, container text, nonce text, round int, start int, host text, port int, yarn_container text,
  node_http text, unfit text?. The first message of each connection. Also sent when the agent has a new port for the
  next round. ``unfit`` says why no task of the job can run on this node.
- ``running``: round int, start int. The command has started.
- ``exited``: round int, start int, stopped flag, code int?, signal int?, seconds number, started_at number?,
  finished_at number?, late number, cpu_seconds number?, peak_memory_mib number?, log_tail text, result object?,
  out_of_memory object?, port_taken flag. The command has ended, so many seconds before the message (``late``), and with
  it all its processes; ``stopped`` is true if the agent ended it. ``out_of_memory``: how many of them the kernel has
  killed (``kills``), the ``limit`` and the ``peak`` in MiB. ``port_taken``: another process has the task's port, which
  the agent did not hold. The agent repeats the message until it is acknowledged.
- ``sample``: round int, start int, cpu_seconds number, cpu_cores number, memory_mib number, peak_cpu_cores number,
  peak_memory_mib number, idle_seconds number, gpus int?, gpu_percent number?, gpu_memory_mib number?, gpu_given_mib
  number?, gpu_uuids text?, metrics object, left_out int. What the command uses, and the points that its program has
  added to YTF_METRICS_FILE since the sample before: by name ``[step, value]``, and the number of lines that were left
  out. A sample takes the place of a ping, at most every 5 s while the command runs, and comes once more with the end.
- ``log``: id int, text text. The answer to ``tail``, ``stack`` and ``read``.
- ``terminated``. YARN ends the container.
- ``ping``. The agent is alive.
- ``pong``. The answer to ``ping``; none after the end of the command, until its report has arrived.

From the coordinator:

- ``welcome``: task text, round int. The registration is accepted.
- ``refused``: why text. The registration is refused; the agent ends.
- ``start``: round int, start int, task text, cluster object, delay number. Start the command after the delay, seconds;
  of a start that is known already, take what has moved in the cluster.
- ``renew``: round int, grace number. End the command, take a new port and register for this round.
- ``stop``: grace number. End the command and report it.
- ``trained``. The training has succeeded; the command may go on for a while.
- ``tail``: id int. Send the end of the log.
- ``stack``: id int. Send the stacks of the command's processes.
- ``read``: id int, offset int. Send a part of the log, as `read_log_part` makes it.
- ``exec``: id text. Start the process of a session of ``ytf exec``, as `exec_session` says.
- ``ack``. The message ``exited`` has arrived.
- ``bye``. The agent kills the processes that still run, and ends.
- ``ping``. Another task has failed; does the command of this one run?
- ``pong``. The answer to ``ping`` and to a ``sample`` in its place.
"""

import json
from typing import Any, Dict, Mapping, Set

from .values import parse_plain

#: Longest line that the coordinator reads, bytes.
MAX_PROTOCOL_LINE = 64 * 1024
#: Number of ports that an agent tries.
PORTS = 16
HANDSHAKE_SECONDS = 5.0
FIRST_LINE_SECONDS = 5.0
CONTACT_SECONDS = 2.0

_START = {"round": "int", "start": "int"}
#: The messages of an agent: type, then each field with its type.
FROM_AGENT: Mapping[str, Mapping[str, str]] = {
    "register": {
        "version": "int",
        "container": "text",
        "nonce": "text",
        **_START,
        "host": "text",
        "port": "int",
        "yarn_container": "text",
        "node_http": "text",
        "unfit": "text?",
    },
    "running": _START,
    "exited": {
        **_START,
        "stopped": "flag",
        "code": "int?",
        "signal": "int?",
        "seconds": "number",
        "started_at": "number?",
        "finished_at": "number?",
        "late": "number",
        "cpu_seconds": "number?",
        "peak_memory_mib": "number?",
        "log_tail": "text",
        "result": "object?",
        "out_of_memory": "object?",
        "port_taken": "flag",
    },
    "sample": {
        **_START,
        "cpu_seconds": "number",
        "cpu_cores": "number",
        "memory_mib": "number",
        "peak_cpu_cores": "number",
        "peak_memory_mib": "number",
        "idle_seconds": "number",
        "gpus": "int?",
        "gpu_percent": "number?",
        "gpu_memory_mib": "number?",
        "gpu_given_mib": "number?",
        "gpu_uuids": "text?",
        "metrics": "object",
        "left_out": "int",
    },
    "log": {"id": "int", "text": "text"},
    "terminated": {},
    "ping": {},
    "pong": {},
}
#: The messages of the coordinator.
FROM_COORDINATOR: Mapping[str, Mapping[str, str]] = {
    "welcome": {"task": "text", "round": "int"},
    "refused": {"why": "text"},
    "start": {**_START, "task": "text", "cluster": "object", "delay": "number"},
    "renew": {"round": "int", "grace": "number"},
    "stop": {"grace": "number"},
    "trained": {},
    "tail": {"id": "int"},
    "stack": {"id": "int"},
    "read": {"id": "int", "offset": "int"},
    "exec": {"id": "text"},
    "ack": {},
    "bye": {},
    "ping": {},
    "pong": {},
}
_KINDS: Mapping[str, Set[type]] = {
    "int": {int},
    "number": {int, float},
    "text": {str},
    "flag": {bool},
    "object": {dict},
}
_TYPES = {**_KINDS, **{kind + "?": {*types, type(None)} for kind, types in _KINDS.items()}}
_write = json.JSONEncoder(separators=(",", ":")).encode


class ProtocolError(ValueError):
    """A line that is not a message, or a message with other fields than its type has."""


def encode(kind: str, **fields: Any) -> bytes:
    """Return a message as a line."""
    return _write({"type": kind, **fields}).encode("ascii") + b"\n"


def decode(line: bytes) -> Dict[str, Any]:
    """Return the message of a line as plain values; raise `ProtocolError` if it is not an object with a ``type``."""
    try:
        message = parse_plain(line)
    except ValueError as error:
        raise ProtocolError("not JSON: %s" % str(error)[:100]) from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("not an object with a type")
    return message


def check_message(message: Mapping[str, Any], fields: Mapping[str, str]) -> None:
    """Raise `ProtocolError` unless the message has these fields, each of its type; it may have more."""
    for name, kind in fields.items():
        if type(message.get(name, ...)) not in _TYPES[kind]:
            raise ProtocolError("%s is not of type %s" % (name, kind))

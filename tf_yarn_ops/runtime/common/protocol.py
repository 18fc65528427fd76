"""The words between agents and coordinator: one JSON object a line, over mutual TLS.

Agent: ``register`` (version, container, nonce, round, host, port, yarn_container,
node_http), ``running`` (round, start), ``exited`` (round, start, code, signal,
seconds, cpu_seconds, peak_memory_mib, log_tail, result, stopped), ``terminated``, ``ping``.

Coordinator: ``welcome`` (task, heartbeat), ``refused`` (why), ``start`` (round,
start, task, cluster, delay), ``renew`` (round, grace), ``stop`` (grace), ``ack``
(round, start), ``bye``, ``pong``.
"""

import json
from typing import Any, Dict

#: Longest line that the coordinator reads, bytes.
MAX_LINE = 64 * 1024
#: Ports that an agent tries.
PORTS = 16
HANDSHAKE_SECONDS = 5.0
FIRST_LINE_SECONDS = 5.0
CONNECT_SECONDS = 2.0


class ProtocolError(ValueError):
    """A line that is no message."""


def encode(kind: str, **fields: Any) -> bytes:
    """Give a message as a line."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Dict[str, Any]:
    """Read a line; `ProtocolError` for whatever is not an object with a ``type``."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not JSON: %s" % str(error)[:100]) from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("not an object with a type")
    return message

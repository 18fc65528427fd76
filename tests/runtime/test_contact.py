"""The connection of an agent to its coordinator."""

import socket

import pytest

from tf_yarn_ops.runtime.agent.contact import Link, LinkLost


def test_the_last_words_before_the_end_of_a_connection_are_heard():
    """A coordinator says bye and is gone; an agent that wakes up after both must not look for it for a minute."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(ours)
        theirs.sendall(b'{"type":"ack"}\n{"type":"bye"}\n{"half')
        theirs.close()
        assert [message["type"] for message in link.receive()] == ["ack", "bye"]
        with pytest.raises(LinkLost, match="closed the connection"):
            link.receive()

"""Signals: handled once, and seen by other threads."""

import os
import signal

import pytest

from tf_yarn_ops.terminal.signals import Interrupted, Interruption, await_signal


def test_first_signal_is_raised_and_later_ones_are_ignored():
    with Interruption() as interruption, pytest.raises(Interrupted), interruption.raised():
        os.kill(os.getpid(), signal.SIGTERM)
    assert (interruption.exit_code, interruption.number) == (143, signal.SIGTERM)
    with interruption:
        os.kill(os.getpid(), signal.SIGINT)
    assert interruption.number == signal.SIGTERM


def test_noted_signal_calls_once_and_interrupts_nothing():
    seen = []
    with Interruption() as interruption, interruption.on_signal(lambda: seen.append(interruption.number)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert seen == [signal.SIGINT]


def test_await_signal_skips_signals_of_others():
    read, write = os.pipe()
    os.write(write, bytes([signal.SIGCHLD, signal.SIGTERM]))
    assert await_signal(read) == signal.SIGTERM
    assert await_signal(read, 0.01) is None

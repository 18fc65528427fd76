"""Waiting in tests: no test sleeps, it asks again until a deadline."""

import asyncio
import os
import time

#: Factor of all deadlines. They bound a hang, not a speed: a slow machine sets more.
PATIENCE = float(os.environ.get("YTF_TEST_PATIENCE", "1"))


def until(condition, seconds=60.0, pause=None, what="it"):
    """Return the first true value of a condition; raise AssertionError if there is none in time.

    Parameters
    ----------
    condition : callable
    seconds : float
        The deadline, from now, times ``PATIENCE``.
    pause : float, optional
        Seconds between two looks. Default: a tenth of the time waited so far, from 0.01 to 0.5: a report of a job that
        runs costs the ResourceManager, the job and this process 20 ms of CPU.
    what : str or callable
        What did not happen, or a function that returns this text after the deadline.
    """
    started = time.monotonic()
    seconds *= PATIENCE
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - started
        if waited >= seconds:
            raise AssertionError(f"{what() if callable(what) else what} did not happen within {seconds:g} s")
        time.sleep(min(max(0.01, waited / 10), 0.5) if pause is None else pause)


def lives(pid):
    """Return whether a process has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def until_async(condition, seconds=60.0):
    """Wait in an event loop as `until` does elsewhere."""
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        await asyncio.sleep(0.01)

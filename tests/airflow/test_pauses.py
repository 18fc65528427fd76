"""How long a triggerer stood still, and whether another one may have its triggers."""

import asyncio

import pytest

from support.waiting import until_async
from tf_yarn_ops.airflow import pauses as pauses_module
from tf_yarn_ops.airflow.pauses import Pauses

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("silence", "since", "replaced"), [(10, 0, False), (21, 0, True), (21, 200, True), (21, 400, False)]
)
def test_pause_counts_near_the_threshold_and_for_minutes(silence, since, replaced, monkeypatch):
    clock = [0.0]
    pauses = Pauses(30.0, lambda: clock[0])

    async def main():
        answered = asyncio.Event()

        async def ping():
            await answered.wait()

        monkeypatch.setattr(pauses_module, "ping_supervisor", ping)
        with pauses.measured():
            await asyncio.sleep(0)
            clock[0] += silence
            if since:
                answered.set()
                await until_async(lambda: pauses._answered == clock[0])
                clock[0] += since
                pauses._answered = clock[0]
            return pauses.may_be_replaced()

    assert asyncio.run(main()) is replaced

"""A program for tests, for Airflow 2: cancel triggers, as a triggerer does, whose tasks have states.

python cancelled.py TRIGGERS, where TRIGGERS has the arguments of a trigger, but for its identity, by the state of its task.
"""

import asyncio
import json
import sys

import pendulum
from airflow.operators.empty import EmptyOperator

from airflow import DAG
from tf_yarn_ops.airflow import TensorFlowYarnTrigger

NOW = pendulum.datetime(2026, 11, 22)

with DAG("cancelled", schedule=None, start_date=NOW) as dag:
    EmptyOperator(task_id="train")


async def cancel(trigger):
    task = asyncio.create_task(anext(trigger.run()))
    await asyncio.sleep(0)  # it begins
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return task.cancelled()


def main():
    for number, (state, arguments) in enumerate(json.loads(sys.argv[1]).items()):
        day = NOW.add(days=number)
        run = dag.create_dagrun("running", execution_date=day, run_id=state, data_interval=(day, day))
        run.get_task_instance("train").set_state(state)
        identity = {"key": json.dumps(["airflow", "cancelled", state, "train", -1]), "deployment": "test"}
        trigger = TensorFlowYarnTrigger(**arguments, identity=identity)
        trigger.trigger_id = number
        assert asyncio.run(cancel(trigger))


if __name__ == "__main__":
    main()

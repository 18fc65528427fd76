"""A home for Airflow in this process, before anybody imports it, and a task instance without a scheduler."""

import atexit
import os
import shutil
import tempfile
from datetime import datetime, timezone
from types import SimpleNamespace

if "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-home-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW_VAR_TF_YARN_DEPLOYMENT_ID", "test")  # without a server the environment has variables
os.environ.setdefault("AIRFLOW_VAR_TF_YARN_MACHINES", "{}")


class TaskInstance:
    """What the operator sees of Airflow: identifiers, and XComs that a test can read.

    ``on_push`` is called with each key at the moment of its push.
    """

    def __init__(self, **values):
        self.dag_id, self.run_id, self.task_id, self.map_index = "daily", "manual__1", "train", -1
        self.try_number, self.max_tries, self.hostname = 1, 0, "worker"
        self.start_date = datetime.now(timezone.utc)
        self.clear_number = 0
        self.xcoms = {}
        self.state = "running"
        self.on_push = lambda key: None
        self.__dict__.update(values)

    def xcom_push(self, key, value):
        self.on_push(key)
        self.xcoms[key] = value

    def xcom_pull(self, task_ids=None, key="return_value", map_indexes=None):
        assert (task_ids, map_indexes) == (self.task_id, self.map_index)
        return self.xcoms.get(key)

    def get_task_states(self, *, dag_id, task_ids, run_ids, map_index):
        """As the server answers; an exception in place of the state is raised."""
        assert (dag_id, task_ids, run_ids) == (self.dag_id, [self.task_id], [self.run_id])
        assert map_index == (None if self.map_index < 0 else self.map_index)
        if isinstance(self.state, Exception):
            raise self.state
        return {self.run_id: {self.task_id if map_index is None else f"{self.task_id}_{map_index}": self.state}}


class OutletEvents(dict):
    """As Airflow's: an event for each asset that is asked for."""

    class Event:
        extra = None

    def __missing__(self, asset):
        event = self[asset] = self.Event()
        return event


def context_of(task_instance):
    dag_run = SimpleNamespace(clear_number=task_instance.clear_number)
    return {
        "ti": task_instance,
        "dag_run": dag_run,
        "outlet_events": OutletEvents(),
        "ds": "2026-11-21",
        "run_id": task_instance.run_id,
    }

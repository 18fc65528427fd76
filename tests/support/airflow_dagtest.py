"""A program for tests: run DAGs of the Airflow of ``AIRFLOW_HOME`` by ``dag.test()``, in turn.

python airflow_dagtest.py ANSWER CONF DAG... [-- FILE]

The file is run as a program when the answer is there.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import few_versions  # noqa: F401  beside this program
from airflow.dag_processing.dagbag import DagBag
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select


def run(dag, conf):
    """The state of a run, what its tasks returned, and their rendered fields."""
    ended = dag.test(run_conf=conf)
    with create_session() as session:
        of_run = {"dag_id": dag.dag_id, "run_id": ended.run_id}
        values = session.scalars(select(XComModel).filter_by(key="return_value", **of_run)).all()
        fields = session.scalars(select(RenderedTaskInstanceFields).filter_by(**of_run)).all()
        return {
            "state": ended.state,
            "values": {row.task_id: XComModel.deserialize_value(row) for row in values},
            "rendered": {row.task_id: row.rendered_fields for row in fields},
        }


def main():
    answer, conf, *names = sys.argv[1:]
    names, then = (names[:-2], names[-1]) if "--" in names else (names, None)
    bag = DagBag()
    Path(f"{answer}.new").write_text(json.dumps({name: run(bag.dags[name], json.loads(conf)) for name in names}))
    os.rename(f"{answer}.new", answer)
    if then:
        runpy.run_path(then, run_name="__main__")


if __name__ == "__main__":
    main()

"""A program for tests: ask the Airflow of ``AIRFLOW_HOME`` about its DAGs, or run some by ``dag.test()``, in turn.

python airflow_dagtest.py ANSWER bag | ANSWER test CONF DAG...
"""

import json
import sys
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select


def describe(bag):
    """The DAGs of each file, and the files that are none."""
    dags = {}
    for dag_id, dag in sorted(bag.dags.items()):
        dags.setdefault(Path(dag.fileloc).name, []).append(dag_id)
    return {"dags": dags, "import_errors": bag.import_errors}


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
    answer, question, *words = sys.argv[1:]
    bag = DagBag()
    if question == "bag":
        said = describe(bag)
    else:
        conf, *names = words
        said = {name: run(bag.dags[name], json.loads(conf)) for name in names}
    Path(answer).write_text(json.dumps(said))


if __name__ == "__main__":
    main()

"""Inputs and outputs of a training for OpenLineage."""

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from airflow.sdk import DAG, task

from support.airflow_task import ID, JOB, deferral, first_event, run
from tf_yarn_ops.airflow import TensorFlowYarnOperator
from tf_yarn_ops.airflow.lineage import dataset_of
from tf_yarn_ops.job.spec import JobSpec

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("hdfs://nn:8020/data/7/", ("hdfs://nn:8020", "/data/7")),
        ("s3://lake/digits/7", ("s3://lake", "digits/7")),
        ("s3a://lake", ("s3://lake", "/")),
        ("hdfs:///data", ("hdfs://", "/data")),
        ("/data/7", None),
        ("file:///x", None),
        (None, None),
    ],
)
def test_a_path_is_a_dataset_by_openlineages_naming(path, dataset):
    assert dataset_of(path) == dataset


@pytest.fixture
def datasets(monkeypatch):
    """Return the input and output datasets that an operator names; the classes of the optional packages as far as used."""
    extractors, events = (
        ModuleType("airflow.providers.openlineage.extractors"),
        ModuleType("openlineage.client.event_v2"),
    )
    extractors.OperatorLineage, events.Dataset = SimpleNamespace, lambda namespace, name: (namespace, name)
    for name, module in (
        ("airflow.providers.openlineage", ModuleType("x")),
        (extractors.__name__, extractors),
        ("openlineage", ModuleType("x")),
        ("openlineage.client", ModuleType("x")),
        (events.__name__, events),
    ):
        monkeypatch.setitem(sys.modules, name, module)

    def read(operator, ended=True):
        lineage = (
            operator.get_openlineage_facets_on_complete(None) if ended else operator.get_openlineage_facets_on_start()
        )
        return lineage.inputs, lineage.outputs

    return read


PATHS = {"input": "hdfs://nn:8020/data", "output": "s3://lake/models/7"}
NAMED = [("hdfs://nn:8020", "/data")], [("s3://lake", "models/7")]
DOCUMENT = {**PATHS, "name": "x", "command": "true", "tasks": {"worker": {"instances": 2, "memory": 256}}}


@pytest.mark.parametrize(
    "arguments",
    [
        {**JOB, "input": PATHS["input"], "output_path": PATHS["output"]},
        {"spec": DOCUMENT},
        {"spec": JobSpec.from_dict(DOCUMENT)},
        {"spec": {**DOCUMENT, "output": "s3://other"}, "output_path": PATHS["output"]},
    ],
    ids=["arguments", "document", "JobSpec", "argument over document"],
)
def test_openlineage_learns_input_and_output(datasets, arguments):
    operator = TensorFlowYarnOperator(task_id="train", **arguments)
    assert datasets(operator, ended=False) == datasets(operator) == NAMED


def deferred_and_resumed(site, operator, again):
    """Defer, and end in another process with another operator. Return the two."""
    deferred, context = deferral(operator)
    site.end(ID)
    resumed = again()
    resumed.execute_complete(context, asyncio.run(first_event(deferred.trigger)))
    return operator, resumed


def test_openlineage_learns_the_paths_of_a_file_after_a_deferral(site, datasets, tmp_path):
    (tmp_path / "job.yaml").write_text(json.dumps(DOCUMENT | {"input": PATHS["input"]}))

    def operator():
        return TensorFlowYarnOperator(
            task_id="train", spec=str(tmp_path / "job.yaml"), deferrable=True, poll_interval=0.05
        )

    assert datasets(operator(), ended=False) == ([], [])
    for each in deferred_and_resumed(site, operator(), operator):
        assert datasets(each) == NAMED


def test_openlineage_learns_what_a_function_returned_after_a_deferral(site, datasets):
    def operator():
        @task.tf_yarn_cmd(**{**JOB, "task_command": None}, deferrable=True, poll_interval=0.05)
        def train():
            return {"task_command": "true", "input": PATHS["input"], "output_path": PATHS["output"]}

        with DAG("lineage"):
            return train().operator

    for each in deferred_and_resumed(site, operator(), operator):
        assert datasets(each) == NAMED


@pytest.mark.parametrize("deferrable", [False, True])
def test_openlineage_learns_the_version_that_was_committed(site, datasets, deferrable):
    def operator():
        return site.operator(input=PATHS["input"], output_path="hdfs://nn:8020/models", deferrable=deferrable)

    committed = {"output_path": "hdfs://nn:8020/models/20240131"}
    if deferrable:
        deferred, context = deferral(operator())
        site.end(ID, **committed)
        ended = operator()
        ended.execute_complete(context, asyncio.run(first_event(deferred.trigger)))
    else:
        ended = operator()
        with site.ending(**committed):
            run(ended)
    assert datasets(ended) == (NAMED[0], [("hdfs://nn:8020", "/models/20240131")])

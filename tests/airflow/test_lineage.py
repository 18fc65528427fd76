"""Inputs and outputs of a training for OpenLineage."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from support.airflow_task import JOB
from tf_yarn_ops.airflow import TensorFlowYarnOperator
from tf_yarn_ops.airflow.lineage import dataset_of

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


def test_openlineage_learns_input_and_output(monkeypatch):
    """The classes of the optional packages, as far as they are used."""
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
    operator = TensorFlowYarnOperator(
        task_id="train", **JOB, input="hdfs://nn:8020/data", output_path="s3://lake/models/7"
    )
    lineage = operator.get_openlineage_facets_on_start()
    assert (lineage.inputs, lineage.outputs) == ([("hdfs://nn:8020", "/data")], [("s3://lake", "models/7")])

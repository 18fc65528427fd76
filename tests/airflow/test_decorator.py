"""The decorator, and operators in a DAG: templates, mapped tasks, serialisation, secrets."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import ConnectionAccessor
from airflow.serialization.serialized_objects import DagSerialization

from support import airflow_setup
from support.airflow_task import ID
from tf_yarn_ops.airflow import TensorFlowYarnOperator
from tf_yarn_ops.airflow.decorator import as_options
from tf_yarn_ops.airflow.outcome import build_event
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cluster_in_the_environment")]


def dag_of(said, **arguments):
    with DAG("decorated") as dag:

        @task.tf_yarn_cmd(**arguments)
        def train(day, **context):
            return said(day) if callable(said) else said

        train("{{ ds }}")
    return dag.get_task("train")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("python train.py", {"task_command": "python train.py"}),
        ({"task_command": "x", "env": {"A": "{{ ds }}"}}, {"task_command": "x", "env": {"A": "2026-11-21"}}),
    ],
)
def test_a_function_says_what_is_trained(yarn, monkeypatch, said, expected):
    operator = dag_of(said, cluster_requirement="worker:1", tf_yarn_conn_id=None)
    context = airflow_setup.context_of(airflow_setup.TaskInstance())
    with pytest.raises(Exception, match="no ResourceManager is known"):
        operator.execute(context)
    assert operator.options() == {"cluster_requirement": "worker:1", **expected}
    assert set(expected) - {"env"} <= set(operator.template_fields) and operator.multiple_outputs is False


def test_what_the_decorator_was_given_is_rendered_once_only():
    operator = dag_of({"input": "{{ ds }}"}, cluster_requirement="worker:1", task_command="{{ said }}")
    context = {**airflow_setup.context_of(airflow_setup.TaskInstance()), "said": "echo {{ ds }} {% x"}
    operator.render_template_fields(context)
    operator.complete_job(context)
    assert (operator.task_command, operator.input) == ("echo {{ ds }} {% x", "2026-11-21")


@pytest.mark.parametrize("given", [{}, {"env": {"RATE": "0.1"}}], ids=["function", "both"])
def test_variables_that_a_function_returns_are_not_on_the_page(given):
    from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields

    operator = dag_of(
        {"task_command": "true", "env": {"MY_LOGIN": "geheim-2"}}, cluster_requirement="worker:1", **given
    )
    operator.complete_job(airflow_setup.context_of(airflow_setup.TaskInstance()))
    shown = json.dumps(_serialize_rendered_fields(operator))
    assert operator.env == {"MY_LOGIN": "geheim-2"} and "geheim" not in shown and '"task_command"' in shown


def test_a_function_that_says_nothing_of_use_ends_the_task_for_good():
    operator, ti = dag_of({"task_comand": "x"}, cluster_requirement="worker:1"), airflow_setup.TaskInstance()
    with pytest.raises(AirflowFailException, match="did you mean 'task_command'"):
        operator.execute(airflow_setup.context_of(ti))


def test_a_function_is_asked_once_and_not_for_the_end_of_a_deferral(yarn):
    asked = []
    operator = dag_of(lambda day: asked.append(day) or "true", cluster_requirement="worker:1", tf_yarn_conn_id=None)
    ti = airflow_setup.TaskInstance()
    event = build_event(ID, JobReport(ID, reason=Reason.SUCCEEDED))
    assert operator.execute_complete(airflow_setup.context_of(ti), event)["reason"] == "SUCCEEDED" and not asked
    for _ in range(2):
        with pytest.raises(Exception, match="no ResourceManager is known"):
            operator.execute(airflow_setup.context_of(ti))
    assert len(asked) == 1


@pytest.mark.parametrize("said", ["", "  ", None, 7, {}, ["x"]])
def test_a_function_that_says_nothing_of_use_is_refused(said):
    with pytest.raises(SpecInvalid, match="must return a task_command, or a mapping of options"):
        as_options(said)


def test_unknown_options_of_a_function_are_named_together():
    with pytest.raises(
        SpecInvalid, match=r"yarn_qeue: unknown option \(did you mean 'yarn_queue'\?\); task_memroy: unknown"
    ):
        as_options({"yarn_qeue": 1, "task_memroy": 2})


def function_of(*words, **arguments):
    with DAG("sent") as dag:

        @task.tf_yarn(**{"cluster_requirement": "worker:1", "tf_yarn_conn_id": None, **arguments})
        def train(password, ds=None):
            return len(password)

        train(*words)
    return dag.get_task("train")


def test_arguments_of_a_function_are_stars_on_the_page(monkeypatch):
    from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields

    monkeypatch.setenv("AIRFLOW_CONN_S3", json.dumps({"conn_type": "aws", "login": "me", "password": "geheim-1"}))
    operator = function_of("{{ conn.s3.password }}", archive={"data": "/srv/data.zip"})
    context = airflow_setup.context_of(airflow_setup.TaskInstance())
    operator.render_template_fields({**context, "conn": ConnectionAccessor()})
    operator.complete_job(context)
    assert (
        operator.op_args == ("geheim-1",) and operator.archive[0] == "data=/srv/data.zip" and len(operator.archive) == 2
    )
    for shown in (_serialize_rendered_fields(operator), operator.options()):
        assert "geheim" not in json.dumps(shown)
    operator._clean()


@pytest.mark.parametrize("option", [{"task_command": "true"}, {"command": {"worker": "true"}}, {"wait_for_completion": False}],
                         ids=lambda option: next(iter(option)))  # fmt: skip
def test_function_and_a_command_exclude_each_other(option):
    with pytest.raises(ValueError, match=f"train: {next(iter(option))}: @task.tf_yarn runs the function.*tf_yarn_cmd"):
        function_of("x", **option)


def test_function_that_cannot_travel_ends_the_task_for_good():
    operator, ti = function_of("x"), airflow_setup.TaskInstance()
    operator.op_args = (threading.Lock(),)
    with pytest.raises(AirflowFailException, match="train can't be sent to the tasks"):
        operator.execute(airflow_setup.context_of(ti))
    assert not Path(operator._folder.name).exists()


def test_options_may_be_mapped_and_come_from_other_tasks():
    with DAG("mapped") as dag:
        first = TensorFlowYarnOperator(task_id="first", task_command="true", cluster_requirement="worker:1")
        mapped = TensorFlowYarnOperator.partial(
            task_id="search", task_command="train", cluster_requirement="worker:1", input=first.output,
            yarn_queue="low").expand(env=[{"RATE": "0.1"}, {"RATE": "0.2"}])  # fmt: skip
        after = TensorFlowYarnOperator(
            task_id="after", spec={"command": "x", "tasks": {"worker": 1}, "input": first.output}
        )
    assert mapped.upstream_task_ids == after.upstream_task_ids == {"first"}
    with pytest.raises(TypeError, match="task_memroy"):
        TensorFlowYarnOperator.partial(task_id="x").expand(task_memroy=[1])
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids == dag.task_ids


def test_secrets_are_templates_in_the_database_and_stars_on_the_page(monkeypatch):
    """Airflow keeps the DAG and what was rendered; the container gets the value."""
    from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields

    monkeypatch.setenv("AIRFLOW_CONN_S3", json.dumps({"conn_type": "aws", "login": "me", "password": "geheim-1"}))
    env = {"MY_S3": "{{ conn.s3.password }}", "RATE": "0.1"}
    with DAG("secrets") as dag:
        options = TensorFlowYarnOperator(
            task_id="options", task_command="true", cluster_requirement="worker:1", env=env
        )
        spec = TensorFlowYarnOperator(task_id="spec", spec={"command": "true", "tasks": {"worker": {"env": env}}})
    text = json.dumps(DagSerialization.to_dict(dag))
    assert "geheim" not in text and "{{ conn.s3.password }}" in text
    for operator in (options, spec):
        operator.render_template_fields({"conn": ConnectionAccessor()})
        shown = json.dumps(_serialize_rendered_fields(operator))
        assert "geheim" not in shown and "***" in shown and "0.1" in shown
    assert options.env["MY_S3"] == spec.spec["tasks"]["worker"]["env"]["MY_S3"] == "geheim-1"


def test_the_serialised_operator_keeps_its_links():
    with DAG("links") as dag:
        TensorFlowYarnOperator(task_id="train", task_command="true", cluster_requirement="worker:1")
    links = DagSerialization.from_dict(DagSerialization.to_dict(dag)).get_task("train").operator_extra_links
    assert {link.name: link.xcom_key for link in links} == {
        "Training": "tf_yarn_link_training",
        "YARN application": "tf_yarn_link_yarn_application",
        "YARN logs": "tf_yarn_link_yarn_logs",
        "TensorBoard": "tf_yarn_link_tensorboard",
    }


def test_whether_to_defer_is_airflows_own_setting():
    """Read when the class is made, as in Airflow's own operators."""
    show = (
        "import importlib, os; from tf_yarn_ops.airflow import operator; "
        "print(*[importlib.reload(operator).TensorFlowYarnOperator("
        "task_id='x', task_command='y', cluster_requirement='worker:1').deferrable "
        "for os.environ['AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE'] in ('True', 'False')])"
    )
    ran = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split()[-2:] == ["True", "False"], ran.stderr

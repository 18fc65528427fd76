"""What Airflow is told of the package, the connection, the decorator, and the page that describes them."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk import DAG, Connection, task
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException
from airflow.sdk.execution_time.context import ConnectionAccessor
from airflow.sdk.module_loading import import_string
from airflow.serialization.serialized_objects import DagSerialization

import tf_yarn_ops.airflow
from support import airflow_setup
from support.fake_yarn import STAMP, FakeYarn, serving
from tf_yarn_ops.airflow import TensorFlowYarnOperator, YarnHook
from tf_yarn_ops.airflow.decorator import as_options
from tf_yarn_ops.airflow.hook import addresses
from tf_yarn_ops.airflow.operator import OPTIONS
from tf_yarn_ops.airflow.provider import get_provider_info
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
AIRFLOW = Path(inspect.getfile(import_string("airflow.configuration"))).parent
PAGE = ROOT / "docs" / "guides" / "airflow.md"


def schema(name):
    return json.loads((AIRFLOW / name).read_text())


# -- the provider ----------------------------------------------------------------------------------------------

def test_the_description_is_as_airflow_wants_it():
    info = get_provider_info()
    jsonschema.validate(info, schema("provider_info.schema.json"))
    source = schema("provider.yaml.schema.json")
    known = source["properties"]
    for key, value in info.items():
        jsonschema.validate(value, {**known[key], "definitions": source["definitions"]})


def test_everything_that_the_description_names_is_there():
    info = get_provider_info()
    for part in ("operators", "hooks", "triggers"):
        for module in info[part][0]["python-modules"]:
            __import__(module)
    names = [*info["extra-links"], *(item["class-name"] for item in info["task-decorators"]),
             *(item["hook-class-name"] for item in info["connection-types"])]
    assert len(names) == 5 and all(import_string(name) for name in names)
    hook = info["connection-types"][0]
    assert (hook["connection-type"], hook["hook-name"]) == (YarnHook.conn_type, YarnHook.hook_name)
    assert {link.rsplit(".", 1)[1] for link in info["extra-links"]} == {
        type(link).__name__ for link in TensorFlowYarnOperator.operator_extra_links}


def test_the_description_imports_nothing():
    script = ("import sys; before = set(sys.modules); from tf_yarn_ops.airflow.provider import get_provider_info; "
              "get_provider_info(); print(*sorted(name for name in set(sys.modules) - before "
              "if name.split('.')[0] not in sys.stdlib_module_names))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["tf_yarn_ops", "tf_yarn_ops.airflow", "tf_yarn_ops.airflow.provider"]


def test_airflow_knows_the_links_and_the_decorator():
    manager = ProvidersManager()
    links = sorted(name for name in manager.extra_links_class_names if "tf_yarn" in name)
    assert links == [f"tf_yarn_ops.airflow.links.{name}" for name in ("TensorBoardLink", "YarnApplicationLink", "YarnLogsLink")]
    assert "tf_yarn" in dict(manager.taskflow_decorators.items())


def test_every_public_name_is_there_and_no_other():
    for name in tf_yarn_ops.airflow.__all__:
        assert getattr(tf_yarn_ops.airflow, name)
    with pytest.raises(AttributeError, match="Operator"):
        _ = tf_yarn_ops.airflow.Operator


# -- the connection --------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("values", "expected"), [
    ({"host": "rm"}, "http://rm:8088"), ({"host": "rm", "port": 1}, "http://rm:1"),
    ({"host": "rm", "schema": "https", "port": 8090}, "https://rm:8090"),
    ({"host": "rm1,rm2", "port": 1}, "http://rm1:1,http://rm2:1"), ({"host": "rm:5"}, "http://rm:5"),
    ({"host": "http://rm1:1, https://rm2"}, "http://rm1:1,https://rm2"), ({}, None),
])
def test_the_address_may_be_written_in_many_ways(values, expected):
    assert addresses(Connection(conn_id="x", conn_type="tf_yarn", **values)) == expected


@pytest.fixture
def yarn(tmp_path, monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YTF_RESOURCEMANAGER", "YTF_SITE", "HADOOP_USER_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    yarn = FakeYarn()
    with serving(yarn) as url:
        yarn.url = url
        yield yarn


def connect(monkeypatch, **values):
    monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps({"conn_type": "tf_yarn", **values}))
    return YarnHook()


def test_the_connection_leads_to_the_cluster(yarn, monkeypatch, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("staging: /from/file\nlog_server: http://logs:1")
    extra = {"site_file": str(site), "staging": "/from/extra/{user}", "submit_with": ""}
    hook = connect(monkeypatch, host=yarn.url, login="ann", extra=extra)
    cluster = hook.get_conn()
    assert (cluster.resourcemanagers, cluster.user, cluster.login) == ((yarn.url,), "ann", "ann")
    assert (cluster.staging, cluster.site.log_server, cluster.site.submit_with) == ("/from/extra/ann", "http://logs:1", "auto")
    assert hook.environ["HADOOP_USER_NAME"] == "ann"
    assert hook.test_connection() == (
        True, f"Hadoop 3.4.3 at {yarn.url}, as ann, staging directory hdfs://namenode:8020/from/extra/ann")


def test_the_connections_address_goes_before_the_workers_environment(yarn, monkeypatch):
    monkeypatch.setenv("YTF_RESOURCEMANAGER", "http://127.0.0.1:1")
    assert connect(monkeypatch, host=yarn.url).get_conn().resourcemanagers == (yarn.url,)


def test_a_hadoop_conf_dir_may_stand_for_the_address(yarn, monkeypatch, tmp_path):
    address = yarn.url.removeprefix("http://")
    (tmp_path / "yarn-site.xml").write_text("<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
                                            f"<value>{address}</value></property></configuration>")
    (tmp_path / "core-site.xml").write_text("<configuration><property><name>fs.defaultFS</name>"
                                            "<value>hdfs://of-the-folder:1</value></property></configuration>")
    cluster = connect(monkeypatch, extra={"hadoop_conf_dir": str(tmp_path)}).get_conn()
    assert (cluster.resourcemanagers, cluster.default_filesystem) == ((yarn.url,), "hdfs://of-the-folder:1")


def test_an_unknown_extra_is_named_with_the_nearest_one(yarn, monkeypatch):
    hook = connect(monkeypatch, host=yarn.url, extra={"stagin": "/x"})
    with pytest.raises(SpecInvalid, match=r"unknown extra 'stagin' \(did you mean 'staging'\?\)"):
        hook.get_conn()
    assert hook.test_connection()[0] is False


def test_without_a_connection_the_environment_is_asked(yarn, monkeypatch):
    assert YarnHook().test_connection() == (False, (
        "no ResourceManager is known: there is no connection 'tf_yarn_default' (type tf_yarn, its host is the "
        "ResourceManager's), and the worker has neither YTF_RESOURCEMANAGER, nor a site.yaml with a resourcemanager, "
        "nor a HADOOP_CONF_DIR"))
    monkeypatch.setenv("YTF_RESOURCEMANAGER", yarn.url)
    assert YarnHook().get_conn().resourcemanagers == YarnHook(None).get_conn().resourcemanagers == (yarn.url,)
    with pytest.raises(AirflowNotFoundException):
        YarnHook("another_one").get_conn()


def test_without_a_connection_a_hadoop_conf_dir_will_do(yarn, monkeypatch, tmp_path):
    (tmp_path / "yarn-site.xml").write_text("<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
                                            f"<value>{yarn.url.removeprefix('http://')}</value></property></configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert YarnHook().get_conn().resourcemanagers == (yarn.url,)


def test_whether_to_defer_is_airflows_own_setting():
    """Read when the class is made, as in Airflow's own operators."""
    show = ("import importlib, os; from tf_yarn_ops.airflow import operator; "
            "print(*[importlib.reload(operator).TensorFlowYarnOperator("
            "task_id='x', task_command='y', cluster_requirement='worker:1').deferrable "
            "for os.environ['AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE'] in ('True', 'False')])")
    ran = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split()[-2:] == ["True", "False"], ran.stderr


def test_the_readme_takes_a_report_as_it_can_be_taken():
    """An index of an output is the key of an XCom, not a part of the value."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert "promote(train.output)" in readme and ".output[" not in readme


# -- the decorator and the DAG -----------------------------------------------------------------------------------

def dag_of(said, **arguments):
    with DAG("decorated") as dag:

        @task.tf_yarn(**arguments)
        def train(day, **context):
            return said(day) if callable(said) else said

        train("{{ ds }}")
    return dag.get_task("train")


@pytest.mark.parametrize(("said", "expected"), [
    ("python train.py", {"task_command": "python train.py"}),
    ({"task_command": "x", "env": {"A": "{{ ds }}"}}, {"task_command": "x", "env": {"A": "2026-11-21"}}),
])
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

    operator = dag_of({"task_command": "true", "env": {"MY_LOGIN": "geheim-2"}}, cluster_requirement="worker:1", **given)
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
    report = JobReport(f"application_{STAMP}_0001", reason=Reason.SUCCEEDED).to_dict()
    event = {"application_id": report["application_id"], "report": report}
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
    with pytest.raises(SpecInvalid, match=r"yarn_qeue: unknown option \(did you mean 'yarn_queue'\?\); task_memroy: unknown"):
        as_options({"yarn_qeue": 1, "task_memroy": 2})


def test_options_may_be_mapped_and_come_from_other_tasks():
    with DAG("mapped") as dag:
        first = TensorFlowYarnOperator(task_id="first", task_command="true", cluster_requirement="worker:1")
        mapped = TensorFlowYarnOperator.partial(
            task_id="search", task_command="train", cluster_requirement="worker:1", input=first.output,
            yarn_queue="low").expand(env=[{"RATE": "0.1"}, {"RATE": "0.2"}])  # fmt: skip
        after = TensorFlowYarnOperator(task_id="after", spec={"command": "x", "tasks": {"worker": 1}, "input": first.output})
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
        options = TensorFlowYarnOperator(task_id="options", task_command="true", cluster_requirement="worker:1", env=env)
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
        "YARN application": "tf_yarn_link_yarn_application", "YARN logs": "tf_yarn_link_yarn_logs",
        "TensorBoard": "tf_yarn_link_tensorboard"}


# -- the page ----------------------------------------------------------------------------------------------------

def described(heading):
    """Give the first column of the tables below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [name for row in re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def test_the_page_describes_every_argument_and_no_other():
    own = set(inspect.signature(TensorFlowYarnOperator.__init__).parameters) - {"self", "kwargs"}
    own -= set(inspect.signature(BaseOperator.__init__).parameters)
    names = described("Arguments")
    assert sorted(names) == sorted(own) and set(OPTIONS) < own


def test_the_page_describes_every_field_of_the_connection():
    extras = get_provider_info()["connection-types"][0]["conn-fields"]
    assert sorted(described("The connection")) == sorted(["host", "port", "schema", "login", *extras])


def test_the_page_names_every_xcom_every_exception_and_the_setting():
    text = PAGE.read_text(encoding="utf-8")
    for word in ("tf_yarn_status", "`tf_yarn`", "TfYarnJobFailed", "TfYarnInfrastructureError", "TfYarnRetryPolicy",
                 "AirflowFailException", "deployment_id", f"application_{STAMP}_0001"[:12], "include_deferred"):
        assert word in text, word

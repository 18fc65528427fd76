"""The arguments of the operator: which ones are refused when the DAG is parsed, and the job that they make."""

import inspect
import json
import re
import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk import DAG, TaskGroup, task
from airflow.sdk.exceptions import AirflowFailException
from jinja2 import UndefinedError

from support.airflow_task import JOB, run
from tf_yarn_ops.airflow import TensorFlowYarnOperator
from tf_yarn_ops.airflow.job import operator_job
from tf_yarn_ops.airflow.operator import ALIASES, OPERATOR_OPTIONS, RENAMED
from tf_yarn_ops.declaration import OPERATOR
from tf_yarn_ops.job.options import options_of
from tf_yarn_ops.job.request import OPTION_NAMES
from tf_yarn_ops.job.spec import JobSpec

pytestmark = pytest.mark.slow


def test_the_signature_has_every_option_and_no_default_of_its_own():
    given = inspect.signature(TensorFlowYarnOperator.__init__).parameters
    table = {RENAMED.get(name, name) for name in options_of(OPERATOR)}
    assert table <= set(given)
    assert {name: given[name].default for name in OPERATOR_OPTIONS} == dict.fromkeys(OPERATOR_OPTIONS)
    assert len(OPERATOR_OPTIONS) == len(OPTION_NAMES) == len(set(OPERATOR_OPTIONS))
    assert set(given) - table == {
        "self",
        "kwargs",
        "tf_yarn_conn_id",
        "deferrable",
        "poll_interval",
        "on_kill",
        "wait_for_completion",
        "model_asset",
        "skip_on_exit_code",
        "log_tail_lines",
        "stream_logs",
        "yarn_lifetime",
    }


def test_every_option_reaches_the_request_by_its_own_name():
    values = {name: f"{{{{ {name} }}}}" for name in OPERATOR_OPTIONS} | {
        "success": "chief",
        "restart": "task",
        "tensorboard": True,
    }
    operator = TensorFlowYarnOperator(task_id="train", **values)
    back = {here: name for name, here in RENAMED.items()}
    assert operator.options() == {back.get(name, name): value for name, value in values.items()}


def test_the_names_from_elsewhere_lead_to_arguments():
    own = set(inspect.signature(TensorFlowYarnOperator.__init__).parameters)
    assert set(ALIASES.values()) <= own and not own & set(ALIASES)


def test_template_fields_are_assigned_as_given_and_only_those_are_shown():
    env = {"DAY": "{{ ds }}"}
    operator = TensorFlowYarnOperator(task_id="train", env=env, task_command="{{ ds }}", cluster_requirement="worker:1")
    assert operator.env is env
    assert set(operator.template_fields) == {"env", "task_command", "cluster_requirement"}
    assert set(TensorFlowYarnOperator.template_fields) == {"spec", *OPERATOR_OPTIONS}
    assert TensorFlowYarnOperator.template_ext == ()


def test_every_text_within_is_rendered():
    spec = {
        "tasks": {"worker": {"instances": 1, "env": {"DAY": "{{ ds }}"}}},
        "command": "run.sh",
        "tags": ["d{{ ds }}"],
    }
    operator = TensorFlowYarnOperator(task_id="train", spec=spec, output_path="s3://models/{{ ds }}", dag=DAG("d"))
    operator.render_template_fields({"ds": "2026-11-21"})
    assert operator.spec == {
        "tasks": {"worker": {"instances": 1, "env": {"DAY": "2026-11-21"}}},
        "command": "run.sh",
        "tags": ["d2026-11-21"],
    }  # a name like a file's is no file
    assert operator.options() == {"output": "s3://models/2026-11-21"}
    assert spec["tags"] == ["d{{ ds }}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "there is no job: give spec, or cluster_requirement and task_command"),
        (
            {"cluster_requirement": "worker:1"},
            "task_command: missing; give it, or command with one command per task type",
        ),
        ({**JOB, "spec": {}}, "spec and task_command: both say what the job runs; give only one of them"),
        ({**JOB, "memory": "4g"}, "memory: unknown option (did you mean 'task_memory'?)"),
        ({**JOB, "model_asset": ""}, "model_asset: '' is neither an asset nor its URI"),
        ({**JOB, "durable": True}, "durable: leave it out; each retry attaches to the application that runs"),
        ({**JOB, "num_workers": 4}, "num_workers: unknown option (did you mean 'cluster_requirement'?)"),
        ({**JOB, "task_memroy": 1}, "task_memroy: unknown option (did you mean 'task_memory'?)"),
        ({**JOB, "output": "x"}, "output: Airflow uses this name itself; here the option is called output_path"),
        ({**JOB, "on_kill": "leav"}, "on_kill: 'leav' is not one of kill, leave (did you mean 'leave'?)"),
        ({**JOB, "restart": "always"}, "restart: 'always' is not one of never, task, cluster"),
        ({**JOB, "submit_with": "java"}, "submit_with: 'java' is not one of auto, rest, skein"),
        ({**JOB, "poll_interval": 0}, "poll_interval: 0 is not a number of seconds above 0"),
        ({**JOB, "log_tail_lines": "many"}, "log_tail_lines: 'many' is not a whole number"),
        (
            {**JOB, "stream_logs": ["chief", "wroker", 3]},
            "stream_logs: 'wroker', 3 is not chief, all, or a task such as worker:*",
        ),
        ({**JOB, "yarn_lifetime": 0}, "yarn_lifetime: 0 is not above 0; None leaves the job's own deadlines"),
        (
            {**JOB, "yarn_lifetime": timedelta()},
            "yarn_lifetime: datetime.timedelta(0) is not above 0; None leaves the job's own deadlines",
        ),
        (
            {**JOB, "yarn_lifetime": "long"},
            "yarn_lifetime: 'long' is not 'auto', a number of seconds, a timedelta or None",
        ),
        (
            {**JOB, "wait_for_completion": False, "model_asset": "s3://models/x"},
            "model_asset: a task with wait_for_completion=False ends before the model exists",
        ),
        (
            {**JOB, "skip_on_exit_code": "99"},
            "skip_on_exit_code: '99' is neither an exit code nor a collection of exit codes",
        ),
    ],
)
def test_faults_of_the_file_are_reported_when_it_is_parsed(arguments, message):
    with pytest.raises(ValueError, match=f"^train: {re.escape(message)}$"):
        TensorFlowYarnOperator(task_id="train", **arguments)


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ({"cluster_requirement": "wroker:4"}, "tasks.wroker: task type 'wroker' looks like a misspelt 'worker'"),
        ({"cluster_requirement": "worker=4"}, "cluster_requirement, item 1 'worker=4': expected task_type:instances"),
        ({"task_memory": "lots"}, "task_memory 'lots': 'lots' is not an amount of memory"),
        ({"total_timeout": "1h"}, "total_timeout: "),
        ({"env": {"TF_CONFIG": "{}"}}, "env"),
        ({"lease": 5}, "lease: "),
        ({"retry_exit_codes": [300]}, "retry_exit_codes"),
        ({"environment": "conda:x"}, "environment: "),
        ({"tag": [*"abcdefg"]}, "tag: 7 given, at most 6 allowed"),
        ({"job_execution_timeout": -1}, "job_execution_timeout: "),
        ({"task_command": ["python", "x.py"]}, "task_command: "),
        ({"tensorboard": "maybe", "output_path": "x"}, "tensorboard: 'maybe' is neither true nor false"),
        ({"on_kill": None}, "on_kill: None is not one of kill, leave"),
        ({"restart": 3}, "restart: 3 is not one of never"),
        ({"skip_on_exit_code": True}, "skip_on_exit_code: True is neither an exit code"),
        ({"tf_yarn_conn_id": 3}, "tf_yarn_conn_id: 3 is "),
        ({"tag": True}, "tag: a bool is neither a text nor a number"),
        ({"docker_image": 3}, "docker_image: 3 is not a text"),
        ({"deferrable": "yes"}, "deferrable: 'yes' is neither True nor False"),
        ({"model_asset": 3}, "model_asset: 3 is neither an asset nor its URI"),
    ],
)
@pytest.mark.parametrize("elsewhere", [{}, {"input": "hdfs:///data/{{ ds }}"}], ids=["literal", "template elsewhere"])
def test_literal_mistake_is_import_error(arguments, start, elsewhere):
    with pytest.raises(ValueError, match=f"^train: {re.escape(start)}"):
        TensorFlowYarnOperator(task_id="train", **{**JOB, **arguments, **elsewhere})


@pytest.mark.parametrize("value", [object(), [object()], {"a": object()}], ids=["object", "list", "mapping"])
def test_value_of_another_type_is_refused_by_every_argument(value):
    own = inspect.signature(TensorFlowYarnOperator.__init__).parameters.keys() - {"self", "kwargs"}
    for name in own:
        base = {"spec": None} if name == "spec" else {**JOB, "output_path": "x"}
        with pytest.raises(ValueError, match=r"^train: "):
            TensorFlowYarnOperator(task_id="train", **{**base, name: value})


def test_all_literal_mistakes_come_together():
    with pytest.raises(ValueError, match=r"^train: on_kill: .*; task_memory 'lots': .*; tasks.wroker: "):
        TensorFlowYarnOperator(
            task_id="train", **{**JOB, "on_kill": "x", "cluster_requirement": "wroker:4", "task_memory": "lots"}
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"cluster_requirement": "{{ params.tasks }}"},
        {"task_memory": {"worker": "{{ params.memory }}"}, "custom_type": "x y"},
        {
            "spec": {"tasks": {"worker": {"memory": "{{ params.memory }}"}}},
            "task_command": None,
            "cluster_requirement": None,
        },
        {"spec": "/jobs/of/the/worker.yaml", "task_command": None, "cluster_requirement": None},
    ],
    ids=str,
)
def test_job_of_templates_is_checked_when_it_runs(arguments):
    TensorFlowYarnOperator(task_id="train", **{**JOB, **arguments})


@pytest.mark.parametrize("needs", [{"tensorboard": True}, {"commit": "version"}, {"mirror": "all"}], ids=str)
@pytest.mark.parametrize(
    "paths",
    [
        {"output_path": "hdfs:///models/{{ ds }}"},
        {"output_path": "{{ var.value.models }}/digits"},
        {"output_path": "/models/{{ macros.where('a//b/' + '" + "x" * 200 + "') }}"},
        {"output_path": "/models/{% if params.test %}test{% else %}digits{% endif %}"},
        {"input": "/data/{{ ds }}", "output_path": "/data/{{ run_id }}"},
        {"input": "{{ var.value.place }}/data", "output_path": "{{ var.value.place }}/models"},
    ],
    ids=str,
)
def test_output_of_a_template_is_the_output_that_an_option_needs(paths, needs):
    TensorFlowYarnOperator(task_id="train", **JOB, **paths, **needs)


@pytest.mark.parametrize("output", ["s3://models/{{ ds }}", "/data/{{ ds }}/model", "/models/../{{ ds }}"])
def test_committed_output_of_a_template_is_checked_in_the_dag_file(output):
    with pytest.raises(ValueError, match=r"^train: (commit: needs output_path|output_path: )"):
        TensorFlowYarnOperator(task_id="train", **JOB, input="/data/{{ ds }}", output_path=output, commit="new")


def test_result_of_another_task_is_not_a_literal():
    with DAG("d"):

        @task
        def where():
            return "s3://models"

        TensorFlowYarnOperator(task_id="train", **JOB, output_path=where(), task_vcores=where())


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        ({"task_memory": "4"}, "train: task_memory: worker has 4 MiB, in which no Python starts; for GiB write 4g"),
        ({"queue": "ml"}, "train: queue='ml' names a queue of Airflow's executor; YARN's queue is yarn_queue"),
    ],
)
def test_probable_mistake_is_warned_of(arguments, warning):
    with pytest.warns(UserWarning, match=f"^{re.escape(warning)}$"):
        TensorFlowYarnOperator(task_id="train", **{**JOB, **arguments})


@pytest.mark.parametrize(
    ("dag", "task", "warns"),
    [
        (None, None, True),
        ("d", None, True),
        ("d", "g.train", True),
        ("d", "g.other", False),
        ("other", "g.train", False),
    ],
)
def test_probable_mistake_is_in_the_log_of_its_own_task(dag, task, warns, monkeypatch, recwarn):
    """Airflow parses the file at the start of each of its tasks, and names it then."""
    for name, value in (("DAG", dag), ("TASK", task)):
        if value is None:
            monkeypatch.delenv(f"_AIRFLOW_PARSING_CONTEXT_{name}_ID", raising=False)
        else:
            monkeypatch.setenv(f"_AIRFLOW_PARSING_CONTEXT_{name}_ID", value)
    with DAG("d"), TaskGroup("g"):
        TensorFlowYarnOperator(task_id="train", **{**JOB, "task_memory": "4"}, queue="ml")
    found = [str(warning.message).split(": ")[:2] for warning in recwarn if "g.train" in str(warning.message)]
    names = ["queue='ml' names a queue of Airflow's executor; YARN's queue is yarn_queue", "task_memory"]
    assert found == [["g.train", name] for name in names] * warns


def test_queue_beside_yarn_queue_is_meant(recwarn):
    TensorFlowYarnOperator(task_id="train", **JOB, queue="gpu-workers", yarn_queue="ml")
    assert not [warning for warning in recwarn if "queue" in str(warning.message)]


def test_all_faults_of_the_file_come_together():
    with pytest.raises(ValueError, match=r"^train: tsk: unknown option.*; on_kill: 'x' is not.*; poll_interval: -1 is"):
        TensorFlowYarnOperator(task_id="train", **JOB, tsk=1, on_kill="x", poll_interval=-1)


def test_a_template_may_stand_where_a_choice_is():
    assert (
        TensorFlowYarnOperator(task_id="train", **JOB, restart="{{ params.restart }}").restart == "{{ params.restart }}"
    )


def test_importing_the_operator_loads_airflow_and_the_options_only():
    script = (
        "import sys; from airflow.sdk import Asset, BaseOperator, BaseOperatorLink; import airflow.sdk.configuration, "
        "airflow.sdk.exceptions; before = set(sys.modules); from tf_yarn_ops.airflow import TensorFlowYarnOperator; "
        "print(*sorted(name for name in sys.modules if name.split('.')[0] not in sys.stdlib_module_names "
        "and (name not in before or name.startswith(('tf_yarn_ops', 'skein', 'hdfs')))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    light = (
        "declaration",
        "errors",
        "job",
        "kinds",
        *(f"job.{name}" for name in ("document", "options", "parts", "requirement", "spec")),
        "validation",
        "runtime",
        "runtime.common",
        *(
            f"runtime.common.{name}"
            for name in (
                "committed_output",
                "contract",
                "frameworks",
                "masking",
                "reasons",
                "roles",
                "values",
                "web_address",
            )
        ),
        "airflow",
        "airflow.kill_state",
        "airflow.links",
        "airflow.operator",
        "airflow.provider",
        "airflow.versions",
    )
    assert set(done.stdout.split()) == {"tf_yarn_ops", *(f"tf_yarn_ops.{name}" for name in light)}


def test_faults_of_the_request_end_the_task_for_good_and_are_all_named(site):
    operator = site.operator(
        task_memory="{{ 'much' }}",
        tensorboard="{{ 'maybe' }}",
        priority=-1,
        environment="conda",
        job_execution_timeout=-1,
    )
    with pytest.raises(AirflowFailException) as failed:
        run(operator)
    for option in ("task_memory", "tensorboard", "priority", "environment", "job_execution_timeout"):
        assert f"\n  - {option}" in str(failed.value)
    assert site.submissions() == 0


def test_a_spec_may_be_a_mapping_a_value_or_a_file(tmp_path):
    document = {"tasks": {"worker": {"memory": 512}}, "command": "true", "queue": "low"}
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(document))
    job = JobSpec.from_dict(document)
    assert (
        operator_job({}, document, None, None)
        == operator_job({}, job, None, None)
        == operator_job({}, str(path), None, None)
        == job
    )
    assert operator_job({"queue": "default"}, document, None, None).queue == "default"


#: Texts that Python reads as something else.
TEXTS = ("1.10", "1e3", "0x10", "1_000", "True", "None", "12,13", "['a']", "{'a': 1}", "007", "20261128", "'x'", "")


@pytest.mark.parametrize("native", [False, True])
def test_texts_of_options_stay_texts_in_a_dag_with_native_objects(native):
    env = {f"A{number}": text for number, text in enumerate(TEXTS)}
    templates = {f"T{number}": f"{{{{ texts[{number}] }}}}" for number in range(len(TEXTS))}
    document = {"name": "1_0", "tasks": {"worker": {"instances": 2, "env": {"B": "{{ texts[0] }}"}}}}
    with DAG("texts", render_template_as_native_obj=native):
        operator = TensorFlowYarnOperator(
            task_id="train", **{**JOB, "name": "20261128", "user": "{{ texts[3] }}", "env": {**env, **templates}}
        )
        whole = TensorFlowYarnOperator(
            task_id="whole", cluster_requirement="{{ '12' }}", task_command="{{ texts[7] if false else '1.10' }}",
            env="{{ given }}", tag="{{ texts[6] }}")  # fmt: skip
        documented = TensorFlowYarnOperator(task_id="documented", spec=document)
    context = {"texts": TEXTS, "given": {"C": 0.1, "D": "1.10"}}
    for each in (operator, whole, documented):
        each.render_template_fields(context)
    assert operator.env == {**env, **{f"T{number}": text for number, text in enumerate(TEXTS)}}
    assert (operator.name, operator.user) == ("20261128", "1_000")
    assert (whole.cluster_requirement, whole.task_command, whole.tag) == ("12", "1.10", "12,13")
    assert whole.env == (context["given"] if native else str(context["given"]))
    assert documented.spec["name"] == "1_0" and documented.spec["tasks"]["worker"]["env"] == {"B": "1.10"}
    assert operator.render_texts(["{{ texts[0] }}", "True"], context) == ["1.10", "True"]


def test_arguments_of_a_function_stay_native_in_a_dag_with_native_objects():
    with DAG("arguments", render_template_as_native_obj=True):

        @task.tf_yarn(cluster_requirement="worker:1", env={"A": "1.10"})
        def train(number, text="1.10"):
            return number

        operator = train("{{ 3 }}").operator
    operator.render_template_fields({})
    assert (operator.op_args, operator.env) == ((3,), {"A": "1.10"})


def test_undefined_name_in_an_option_names_the_field(caplog):
    with DAG("undefined", render_template_as_native_obj=True):
        operator = TensorFlowYarnOperator(task_id="train", **{**JOB, "env": {"A": "{{ ds }}"}, "name": "{{ ds }}"})
    with pytest.raises(UndefinedError, match="'ds' is undefined"):
        operator.render_template_fields({})
    assert "field 'name'" in caplog.text or "field 'env'" in caplog.text

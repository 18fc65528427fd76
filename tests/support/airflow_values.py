"""The laws of Airflow's door: of a report Airflow holds all it gets, and no argument or connection ends in a traceback."""

import contextlib
import inspect
import json
import warnings
from decimal import Decimal
from unittest import mock

import msgspec
from airflow.sdk import Connection
from airflow.sdk.serde import deserialize, serialize
from hypothesis import strategies as st

from support import airflow_setup  # noqa: F401  gives Airflow a home
from support.hostile_values import Law, holds, statuses
from support.hostile_words import documents, enter_folder, letters, texts, values
from tf_yarn_ops.airflow import TensorFlowYarnOperator, YarnHook
from tf_yarn_ops.airflow.job import operator_job
from tf_yarn_ops.airflow.outcome import MAX_BYTES, build_event, conclude, exception_of, to_xcom
from tf_yarn_ops.errors import SpecInvalid, TfYarnError
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport


class Silent:
    """A logger that writes nothing."""

    def info(self, *words):
        """Take a line."""


def read_as_postgresql(text):
    """Return a number as a column of type JSONB holds it: 1e30 is an integer there."""
    number = Decimal(text)
    return int(number) if "e" in text and number == number.to_integral_value() else float(text)


def any_report_reaches_airflow(document):
    report = JobReport.from_dict(document)
    event = build_event(report.application_id, report)
    assert event == {"application_id": report.application_id, "ended": report.application_id,
                     "reason": (report.reason or Reason.LOST).value}  # fmt: skip
    value, failure = conclude(report, str, Silent(), 50, (3,), 1)
    assert type(failure) is type(exception_of(report, (3,), 1)) and value == to_xcom(report)
    for part in (event, value):
        holds(part)
        packed = msgspec.msgpack.encode(part)
        assert msgspec.msgpack.decode(packed) == part
        assert deserialize(json.loads(json.dumps(serialize(part)))) == part
        msgspec.msgpack.encode(json.loads(json.dumps(part), parse_float=read_as_postgresql))
    assert len(json.dumps(value)) <= MAX_BYTES


def any_arguments_are_an_operator(arguments):
    """The parser of a DAG shows a ValueError with every fault; what it lets pass is a fault of the job, or a job."""
    with enter_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            operator = TensorFlowYarnOperator(task_id="t", **arguments)
        except ValueError as error:
            assert str(error).startswith("t: "), error
            return
        with contextlib.suppress(SpecInvalid):
            operator_job(operator.options(), operator.spec, operator.yarn_lifetime, None)


def any_connection_is_read(fields):
    connection = Connection(conn_id="x", **fields)
    hook = YarnHook("x")
    with mock.patch.object(hook, "get_connection", lambda name: connection), contextlib.suppress(TfYarnError):
        hook._settings()


_OWN = [
    name
    for name, parameter in inspect.signature(TensorFlowYarnOperator.__init__).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "task_id"
]
_arguments = st.dictionaries(
    st.sampled_from([*TensorFlowYarnOperator.template_fields, *_OWN]), values | documents, max_size=5
)
_complete = st.sampled_from([{}, {"cluster_requirement": "worker:1", "task_command": "true"}])
_connections = st.fixed_dictionaries(
    {"conn_type": st.sampled_from(["tf_yarn", "https"]) | letters},
    optional={
        "host": texts,
        "login": texts,
        "schema": texts,
        "port": st.none() | st.integers(),
        "extra": st.dictionaries(st.sampled_from([*Site.__dataclass_fields__, "hadoop_conf_dir", "site_file"]) | letters,
                                 values, max_size=3).map(json.dumps),
    },
)  # fmt: skip
AIRFLOW = {
    "report": Law(statuses, any_report_reaches_airflow),
    "operator": Law(st.builds(lambda one, more: {**one, **more}, _complete, _arguments), any_arguments_are_an_operator),
    "connection": Law(_connections, any_connection_is_read),
}

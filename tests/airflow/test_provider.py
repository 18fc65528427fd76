"""The description of the package for Airflow, and the page that describes its arguments."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.module_loading import import_string
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

import tf_yarn_ops.airflow
from support.fake_yarn import STAMP
from tf_yarn_ops.airflow import TensorFlowYarnOperator, YarnHook
from tf_yarn_ops.airflow.operator import OPERATOR_OPTIONS, RENAMED
from tf_yarn_ops.airflow.provider import get_provider_info
from tf_yarn_ops.cli.parameters import ALL

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[2]
AIRFLOW = Path(inspect.getfile(import_string("airflow.configuration"))).parent
PAGE = ROOT / "docs" / "guides" / "airflow.md"


def schema(name):
    return json.loads((AIRFLOW / name).read_text())


def test_the_description_is_as_airflow_wants_it():
    info = get_provider_info()
    jsonschema.validate(info, schema("provider_info.schema.json"))
    source = schema("provider.yaml.schema.json")
    known = source["properties"]
    for key, value in info.items():
        jsonschema.validate(value, {**known[key], "definitions": source["definitions"]})


def test_everything_that_the_description_names_is_there():
    info = get_provider_info()
    for part in ("operators", "sensors", "hooks", "triggers"):
        for module in info[part][0]["python-modules"]:
            __import__(module)
    names = [
        *info["extra-links"],
        *(item["class-name"] for item in info["task-decorators"]),
        *(item["hook-class-name"] for item in info["connection-types"]),
    ]
    assert len(names) == 7 and all(import_string(name) for name in names)
    hook = info["connection-types"][0]
    assert (hook["connection-type"], hook["hook-name"]) == (YarnHook.conn_type, YarnHook.hook_name)
    assert {link.rsplit(".", 1)[1] for link in info["extra-links"]} == {
        type(link).__name__ for link in TensorFlowYarnOperator.operator_extra_links
    }


def test_the_description_imports_nothing():
    script = (
        "import sys; before = set(sys.modules); from tf_yarn_ops.airflow.provider import get_provider_info; "
        "get_provider_info(); print(*sorted(name for name in set(sys.modules) - before "
        "if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["tf_yarn_ops", "tf_yarn_ops.airflow", "tf_yarn_ops.airflow.provider"]


def test_airflow_knows_the_links_and_the_decorator():
    links = sorted(name for name in ProvidersManager().extra_links_class_names if "tf_yarn" in name)
    assert links == [
        f"tf_yarn_ops.airflow.links.{name}"
        for name in ("TensorBoardLink", "TrainingLink", "YarnApplicationLink", "YarnLogsLink")
    ]
    assert "tf_yarn" in dict(ProvidersManagerTaskRuntime().taskflow_decorators.items())


def test_every_public_name_is_there_and_no_other():
    for name in tf_yarn_ops.airflow.__all__:
        assert getattr(tf_yarn_ops.airflow, name)
    with pytest.raises(AttributeError, match="Operator"):
        _ = tf_yarn_ops.airflow.Operator


def test_the_readme_takes_a_report_as_it_can_be_taken():
    """An index of an output is the key of an XCom, not a part of the value."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert "promote(train.output)" in readme and ".output[" not in readme


def described(heading):
    """Return the first column of the tables below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        name for row in re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]


def test_the_page_describes_every_argument_and_no_other():
    own = set(inspect.signature(TensorFlowYarnOperator.__init__).parameters) - {"self", "kwargs"}
    own -= set(inspect.signature(BaseOperator.__init__).parameters)
    named = set(described("Arguments"))
    # The page names the options of a job by their section.
    assert own - set(OPERATOR_OPTIONS) <= named <= own
    assert {RENAMED.get(option.name, option.name) for option in ALL if option.section != "submission"} <= own


def test_the_page_describes_every_field_of_the_connection():
    extras = get_provider_info()["connection-types"][0]["conn-fields"]
    assert sorted(described("The connection")) == sorted(["host", "port", "schema", "login", *extras])


def test_the_page_names_every_xcom_every_exception_and_the_setting():
    text = PAGE.read_text(encoding="utf-8")
    for word in (
        "tf_yarn_status",
        "`tf_yarn`",
        "TfYarnJobFailed",
        "TfYarnInfrastructureError",
        "TfYarnRetryPolicy",
        "AirflowFailException",
        "deployment_id",
        f"application_{STAMP}_0001"[:12],
        "include_deferred",
    ):
        assert word in text, word

"""Where names lie in each version of Airflow, and what older versions do by other means."""

import json
import subprocess
import sys

import pytest

from support.airflow_versions import NEWEST, VERSIONS, Airflow
from support.fake_yarn import FakeYarn, application, serving
from support.programs import ROOT
from tf_yarn_ops.airflow import versions
from tf_yarn_ops.airflow.following import cluster_to_dict
from tf_yarn_ops.airflow.versions import OLDEST, parse_airflow_version, place_of
from tf_yarn_ops.hadoop.cluster import current_user, discover

pytestmark = pytest.mark.slow

USER = current_user({})


@pytest.mark.parametrize(("name", "version", "place"), [
    ("Asset", "2.11.2", ("airflow.datasets", "Dataset")),
    ("Asset", "3.0.6", ("airflow.sdk", "Asset")),
    ("redact", "3.0.6", ("airflow.sdk.execution_time.secrets_masker", "redact")),
    ("redact", "3.4.0.dev0", ("airflow.sdk.log", "redact")),
    ("ServerError", "2.11.2", ("sqlalchemy.exc", "SQLAlchemyError")),
    ("conf", "3.1.8", ("airflow.configuration", "conf")),
    ("conf", "4.0.0", ("airflow.sdk.configuration", "conf")),
])  # fmt: skip
def test_a_name_lies_where_the_last_change_up_to_a_version_put_it(name, version, place):
    assert place_of(name, parse_airflow_version(version)) == place


def test_what_a_version_lacks_names_the_version_that_has_it():
    with pytest.raises(ImportError, match=f"TfYarnRetryPolicy needs Airflow 3.3 or later; this is Airflow {NEWEST}"):
        place_of("RetryPolicy", (3, 2))


def test_every_name_is_there_in_the_newest_version():
    assert all(getattr(versions, name) for name in versions._PLACES)


def test_the_oldest_version_is_the_oldest_that_is_tested():
    assert parse_airflow_version(VERSIONS[0]) == OLDEST
    assert '"apache-airflow>={}.{}"'.format(*OLDEST) in (ROOT / "pyproject.toml").read_text()


def test_an_older_airflow_is_refused(tmp_path):
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "__init__.py").write_text('__version__ = "2.10.5"')
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import tf_yarn_ops.airflow.operator"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: tf-yarn-ops needs Airflow 2.11 or later; this is Airflow 2.10.5"
    )


@pytest.mark.matrix
@pytest.mark.timeout(800)
def test_in_airflow_2_a_cancelled_trigger_kills_only_if_its_task_is_over(tmp_path):
    """A triggerer of Airflow 2 also cancels a trigger that another triggerer continues."""
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "yarn.application.classpath": "/etc/hadoop/conf",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}",
    }
    (tmp_path / "package").mkdir()
    airflow = Airflow(VERSIONS[0], tmp_path / "package")
    (tmp_path / "home").mkdir()
    names = {
        state: yarn.add(application(number, "RUNNING", user=USER))
        for number, state in enumerate(("deferred", "failed", "success"), start=1)
    }
    with serving(yarn) as url:
        cluster = cluster_to_dict(discover(url, {"HOME": "/nowhere", "HADOOP_USER_NAME": USER}))
        triggers = {state: {"application_id": name, "cluster": cluster} for state, name in names.items()}
        done = subprocess.run(
            [airflow.python, ROOT / "tests" / "support" / "airflow_dags" / "cancelled.py", json.dumps(triggers)],
            env=airflow.environ(tmp_path / "home", None),
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    states = {state: yarn.apps[name]["state"] for state, name in names.items()}
    assert states == {"deferred": "RUNNING", "failed": "KILLED", "success": "KILLED"}

"""What the tests of the Airflow provider share: an empty database of Airflow, and one running Airflow."""

import json
import shutil

import pytest

from support import airflow_setup  # noqa: F401  gives Airflow a home before a test file imports it
from support.shared import drives_airflow, share


@pytest.fixture(scope="session")
def airflow_database():
    """Return the file of an empty Airflow database."""
    from support.airflow_site import migrated_database

    return migrated_database()


@pytest.fixture(scope="module")
def airflow_site(request, minicluster, airflow_database, tmp_path_factory):
    """Return a running `AirflowSite` with the DAGs of the rows and, paused, those of dags_examples.

    The minicluster is its connection tf_yarn_default. One Airflow serves the rows of all files.
    """
    from support.airflow_examples import EDITS, Lake, copy_dags, variables
    from support.airflow_rows import SECRET
    from support.airflow_site import ROWS, AirflowSite

    def start():
        connection = {"conn_type": "tf_yarn", "host": minicluster.resourcemanager_url}
        folder = tmp_path_factory.mktemp("airflow")
        dags = copy_dags(folder, EDITS)
        shutil.copy(ROWS, dags)
        environ = {"AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps(connection),
                   "KRB5_CONFIG": str(folder / "krb5.conf"),  # of a test with a secured cluster
                   "AIRFLOW_CONN_VAULT": json.dumps({"conn_type": "generic", "password": SECRET}),
                   **variables(digits_folder=Lake(minicluster, "digits").url)}  # fmt: skip
        return AirflowSite(folder / "home", dags, airflow_database, environ)

    return share(request.config, drives_airflow, start)


@pytest.fixture
def no_cluster_in_the_environment(tmp_path, monkeypatch):
    """Let neither a variable nor a file of the user name a cluster."""
    for name in ("HADOOP_CONF_DIR", "YTF_RESOURCEMANAGER", "YTF_SITE", "HADOOP_USER_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a `support.airflow_task.Site`: a fake YARN, and the connection tf_yarn_default to it."""
    from support.airflow_task import serving_site

    with serving_site(tmp_path / "files") as site:
        monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps(site.connection))
        yield site

"""What the tests of the Airflow provider share: an empty database of Airflow, and one running Airflow."""

import json
import shutil

import pytest

from support import airflow_setup  # noqa: F401  gives Airflow a home before a test file imports it


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory):
    """Return the file of an empty Airflow database, which one run makes once: the migration takes seconds of CPU."""
    from support.airflow_site import migrated_database

    return migrated_database(tmp_path_factory)


@pytest.fixture(scope="session")
def airflow_site(minicluster, airflow_database, tmp_path_factory):
    """Return a running `AirflowSite` with the DAGs of the rows and, paused, those of dags_examples.

    The minicluster is its connection tf_yarn_default.
    """
    from support.airflow_examples import EDITS, Lake, copy_dags, variables
    from support.airflow_site import ROWS, AirflowSite

    connection = {"conn_type": "tf_yarn", "host": minicluster.resourcemanager_url}
    folder = tmp_path_factory.mktemp("airflow")
    dags = copy_dags(folder, EDITS)
    shutil.copy(ROWS, dags)
    environ = {"AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps(connection),
               **variables(digits_folder=Lake(minicluster, "digits").url)}  # fmt: skip
    with AirflowSite(folder / "home", dags, airflow_database, environ) as site:
        yield site

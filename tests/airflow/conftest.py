"""Give Airflow a home of its own before a test file of this folder imports it."""

from support import airflow_setup  # noqa: F401

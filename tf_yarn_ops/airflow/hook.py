"""`YarnHook`: find the `Cluster` of an Airflow connection, or of the process's environment."""

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster
    from ..hadoop.site import Site

#: Extras of a connection that are not settings of the site.
_OWN_EXTRAS = ("site_file", "hadoop_conf_dir")


class YarnHook(BaseHook):
    """Connect to a Hadoop cluster.

    Parameters
    ----------
    tf_yarn_conn_id : str, optional
        A connection of type ``tf_yarn``. For None, and if the default connection does not exist, the cluster is found
        as on the command line: ``YTF_RESOURCEMANAGER``, the site file, ``HADOOP_CONF_DIR``.
    """

    conn_name_attr = "tf_yarn_conn_id"
    default_conn_name = "tf_yarn_default"
    conn_type = "tf_yarn"
    hook_name = "TensorFlow on YARN"

    def __init__(self, tf_yarn_conn_id: str | None = default_conn_name):
        super().__init__()
        self.tf_yarn_conn_id = tf_yarn_conn_id
        #: The environment for a Hadoop client of this connection; complete once `get_cluster` has returned.
        self.environ: dict[str, str] = dict(os.environ)

    def get_conn(self) -> "Cluster":
        """Return the cluster, as its ResourceManager describes it.

        Raises
        ------
        ClusterUnreachable, SubmissionRejected, SpecInvalid
            As in `cluster.discover`. SpecInvalid also for an unknown extra.
        """
        return self.get_cluster()

    def get_cluster(self) -> "Cluster":
        """Return the cluster; see `get_conn`."""
        from ..errors import ResourceManagerUnknown
        from ..hadoop.cluster import discover

        found = self._settings()
        if found is None:
            try:
                return discover()
            except ResourceManagerUnknown as error:
                raise ResourceManagerUnknown(
                    f"no ResourceManager is known: there is no connection {self.default_conn_name!r} (type tf_yarn, "
                    "its host is the ResourceManager's), and the worker has neither YTF_RESOURCEMANAGER, nor a "
                    "site.yaml with a resourcemanager, nor a HADOOP_CONF_DIR") from error
        resourcemanager, site = found
        return discover(resourcemanager, self.environ, site=site)

    def _settings(self) -> "tuple[str | None, Site] | None":
        """Return the addresses and the site of the connection, and complete `environ`; None without a connection."""
        connection = self._connection()
        if connection is None:
            return None
        environ = self.environ
        extra = dict(connection.extra_dejson)
        if connection.login:
            environ["HADOOP_USER_NAME"] = connection.login
        if extra.get("hadoop_conf_dir"):
            environ["HADOOP_CONF_DIR"] = str(extra["hadoop_conf_dir"])
        if connection.host or extra.get("hadoop_conf_dir"):
            environ.pop("YTF_RESOURCEMANAGER", None)
        return addresses(connection), _site(extra, environ)

    def _connection(self) -> Any:
        if self.tf_yarn_conn_id is None:
            return None
        try:
            return self.get_connection(self.tf_yarn_conn_id)
        except AirflowNotFoundException:
            if self.tf_yarn_conn_id != self.default_conn_name:
                raise
            return None

    def test_connection(self) -> tuple[bool, str]:
        """Make the checks of ``ytf doctor`` but for the application; return whether there is no fault, and a sentence.

        The sentence names the cluster, or the first fault with what to do; then the warnings.
        """
        from ..doctor.examination import examine
        from ..doctor.known import Question
        from ..doctor.symptoms import Outcome
        from ..errors import TfYarnError

        try:
            found = self._settings()
            if found is None:
                self.get_cluster()  # its error names the connection that is missing
        except TfYarnError as error:
            return False, str(error)
        resourcemanager, site = found or (None, None)
        diagnosis = examine(Question(self.environ, resourcemanager, site=site))
        fault = diagnosis.first_fault
        if fault is not None:
            return False, f"{fault.check}: {fault.finding.message}. What to do: {fault.finding.advice}"
        facts = {result.check: result.finding.facts for result in diagnosis.results}
        known, where = facts["identity"], ", ".join(facts["configuration"]["resourcemanagers"])
        warnings = [f"{result.check}: {result.finding.message}" for result in diagnosis.results
                    if result.finding.outcome is Outcome.WARNING]
        told = "".join(f"; warning: {text}" for text in warnings)
        return True, (f"Hadoop {known['hadoop'] or 'of unknown version'} at {where}, as {known['user']}, "
                      f"staging directory {known['staging']}{told}")


def addresses(connection: Any) -> str | None:
    """Return the URLs of a connection's ResourceManagers, comma-separated; None if it names none.

    The host of the connection is one host or URL, or several, comma-separated. Port and schema of the connection
    complete those without.
    """
    parts = [part.strip() for part in (connection.host or "").split(",") if part.strip()]
    for number, part in enumerate(parts):
        if "://" not in part:
            port = f":{connection.port or 8088}" if ":" not in part else ""
            parts[number] = f"{connection.schema or 'http'}://{part}{port}"
    return ",".join(parts) or None


def _site(extra: dict[str, Any], environ: dict[str, str]) -> "Site":
    """Return the settings of the site: those of the site file, overridden by the extras of the connection."""
    from ..errors import SpecInvalid, did_you_mean
    from ..hadoop.site import Site, find_site

    if extra.get("site_file"):
        environ["YTF_SITE"] = str(extra["site_file"])
    site = find_site(environ)
    known = [field.name for field in fields(Site)]
    unknown = [name for name in extra if name not in (*known, *_OWN_EXTRAS)]
    if unknown:
        raise SpecInvalid(f"connection: unknown extra {name!r}{did_you_mean(name, [*known, *_OWN_EXTRAS])}"
                          for name in unknown)
    settings = {name: value for name, value in extra.items() if name in known and value not in (None, "")}
    return replace(site, **settings)

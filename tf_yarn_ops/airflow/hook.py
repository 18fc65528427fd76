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

        connection = self._connection()
        if connection is None:
            try:
                return discover()
            except ResourceManagerUnknown as error:
                raise ResourceManagerUnknown(
                    f"no ResourceManager is known: there is no connection {self.default_conn_name!r} (type tf_yarn, "
                    "its host is the ResourceManager's), and the worker has neither YTF_RESOURCEMANAGER, nor a "
                    "site.yaml with a resourcemanager, nor a HADOOP_CONF_DIR") from error
        environ = self.environ
        extra = dict(connection.extra_dejson)
        if connection.login:
            environ["HADOOP_USER_NAME"] = connection.login
        if extra.get("hadoop_conf_dir"):
            environ["HADOOP_CONF_DIR"] = str(extra["hadoop_conf_dir"])
        if connection.host or extra.get("hadoop_conf_dir"):
            environ.pop("YTF_RESOURCEMANAGER", None)
        return discover(addresses(connection), environ, site=_site(extra, environ))

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
        """Return whether the cluster answers, and a sentence with its version, user and staging directory."""
        from ..errors import TfYarnError

        try:
            cluster = self.get_cluster()
        except TfYarnError as error:
            return False, str(error)
        return True, (f"Hadoop {cluster.version or 'of unknown version'} at {', '.join(cluster.resourcemanagers)}, "
                      f"as {cluster.user}, staging directory {cluster.filesystem}{cluster.staging}")


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

"""`YarnHook`: the cluster of an Airflow connection, or of the process's environment, and what one does there."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ..errors import ResourceManagerUnknown, SpecInvalid, TfYarnError, did_you_mean
from .versions import AirflowNotFoundException, BaseHook

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster
    from ..hadoop.site import Site
    from ..job.spec import JobSpec
    from ..launch.launcher import Launcher
    from ..runtime.common.report import JobReport

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
        #: The environment for a Hadoop client of this connection; complete once `get_conn` has returned.
        self.environ: dict[str, str] = dict(os.environ)

    def get_conn(self) -> "Cluster":
        """Return the cluster, as its ResourceManager describes it.

        Raises
        ------
        ClusterUnreachable, SubmissionRejected, SpecInvalid
            As in `cluster.discover`. SpecInvalid also for an unknown extra.
        """
        from ..hadoop.cluster import discover

        quieten()
        if (found := self._settings()) is None:
            try:
                return discover()
            except ResourceManagerUnknown as error:
                raise ResourceManagerUnknown(
                    f"no ResourceManager is known: there is no connection {self.default_conn_name!r} (type tf_yarn, "
                    "its host is the ResourceManager's), and the worker has neither YTF_RESOURCEMANAGER, nor a "
                    "site.yaml with a resourcemanager, nor a HADOOP_CONF_DIR"
                ) from error
        resourcemanager, site = found
        return discover(resourcemanager, self.environ, site=site)

    def get_launcher(self) -> "Launcher":
        """Return a `Launcher` for the cluster; it submits, follows and kills applications."""
        from ..launch.launcher import Launcher

        return Launcher(self.get_conn(), environ=self.environ)  # `get_conn` completes `environ`

    def submit(self, spec: "Mapping[str, Any] | JobSpec | str") -> str:
        """Submit a job and return its application id. Nobody waits for it, and a repeated call submits again.

        Parameters
        ----------
        spec : mapping, JobSpec or str
            As the argument ``spec`` of `TensorFlowYarnOperator`; the file of a path is taken as it is.

        Raises
        ------
        SpecInvalid, SubmissionRejected, ResourcesImpossible, ClusterUnreachable
            As `Launcher.submit`.
        """
        from .job import operator_job

        with closing(self.get_launcher()) as launcher:
            return launcher.submit(operator_job({}, spec, None, None))

    def report(self, application_id: str) -> "JobReport":
        """Return the present report of an application: its ``reason`` is None while it runs, LOST if it is unknown.

        Raises
        ------
        ClusterUnreachable
            No ResourceManager answers.
        """
        with closing(self.get_launcher()) as launcher:
            return launcher.report(application_id)

    def kill(self, application_id: str, why: str = "Killed by a task of Airflow") -> "JobReport":
        """Kill an application, wait until it is gone, and return its report.

        Parameters
        ----------
        application_id : str
        why : str, optional
            A sentence, which YARN keeps.

        Raises
        ------
        SubmissionRejected
            The user may not kill it.
        ClusterUnreachable
            YARN does not answer, or the application has not ended in time.
        """
        with closing(self.get_launcher()) as launcher:
            return launcher.kill(application_id, why)

    def logs(self, application_id: str, task: str | None = None) -> Iterator[str]:
        """Yield the log of a task in chunks of text, while it runs and after its end.

        Parameters
        ----------
        application_id : str
        task : str, optional
            ``worker:1``, ``coordinator`` or ``master``. Default: the task that failed first, else the chief or the
            first task.

        Raises
        ------
        LogMissing
            There is no such task, or YARN has no log of it.
        ClusterUnreachable
            YARN does not answer.
        """
        with closing(self.get_launcher()) as launcher:
            yield from launcher.log(application_id, task)

    def _settings(self) -> "tuple[str | None, Site] | None":
        """Return the addresses and the site of the connection, and complete `environ`; None without a connection."""
        if (connection := self._connection()) is None:
            return None
        environ = self.environ
        extra = dict(connection.extra_dejson)
        if connection.conn_type not in (None, self.conn_type) and not (connection.host or connection.login or extra):
            # Airflow reads nothing of a URI whose scheme has an underscore, and takes `local` of `local://` for a type.
            raise SpecInvalid(
                f"connection: {self.tf_yarn_conn_id!r} has the type {connection.conn_type!r}, and no host, login or "
                "extra; as a URI it is tf-yarn://USER@HOST:8088 , with a hyphen, and for this machine "
                "tf-yarn://local%3A%2F%2F"
            )
        if connection.login:
            environ["HADOOP_USER_NAME"] = connection.login
        if extra.get("hadoop_conf_dir"):
            environ["HADOOP_CONF_DIR"] = str(extra["hadoop_conf_dir"])
        if connection.host or extra.get("hadoop_conf_dir"):
            environ.pop("YTF_RESOURCEMANAGER", None)
        return addresses(connection), _site(extra, environ)

    def _connection(self) -> Any:
        try:
            return None if self.tf_yarn_conn_id is None else self.get_connection(self.tf_yarn_conn_id)
        except AirflowNotFoundException:
            if self.tf_yarn_conn_id != self.default_conn_name:
                raise
            return None

    def test_connection(self) -> tuple[bool, str]:
        """Run the checks of ``ytf doctor`` except the application; return whether there is no fault, and a sentence.

        The sentence names the cluster, or the first fault with what to do; then the warnings.
        """
        from ..doctor.examination import examine
        from ..doctor.known import Question
        from ..doctor.symptoms import CheckOutcome
        from .machines import differences, read_machines
        from .task_instance import deployment_conflict

        try:
            found = self._settings()
            if found is None:
                self.get_conn()  # its error names the connection that is missing
        except TfYarnError as error:
            return False, str(error)
        resourcemanager, site = found or (None, None)
        diagnosis = examine(Question(self.environ, resourcemanager, site=site))
        if (fault := diagnosis.first_fault) is not None:
            return False, f"{fault.check}: {fault.finding.message}. What to do: {fault.finding.advice}"
        facts = {result.check: result.finding.facts for result in diagnosis.results}
        known, where = facts["identity"], ", ".join(facts["configuration"]["resourcemanagers"])
        warnings = [
            f"{result.check}: {result.finding.message}"
            for result in diagnosis.results
            if result.finding.outcome is CheckOutcome.WARNING
        ]
        warnings += filter(None, [deployment_conflict()])
        for connection, machines in read_machines().items():
            warnings += differences(connection, machines)
        warned = "".join(f"; warning: {text}" for text in warnings)
        return True, (
            f"Hadoop {known['hadoop'] or 'of unknown version'} at {where}, as {known['user']}, "
            f"staging directory {known['staging']}{warned}"
        )


def quieten() -> None:
    """Keep the log lines of single HTTP requests out of the task's log, unless their level was set."""
    if logging.getLogger("httpx").level == logging.NOTSET:
        logging.getLogger("httpx").setLevel(logging.WARNING)


def addresses(connection: Any) -> str | None:
    """Return the URLs of a connection's ResourceManagers, comma-separated; None if it names none.

    The host of the connection is one host or URL, or several, comma-separated. Port and schema of the connection
    complete those without. The connection's form sends port 0 for an empty field.
    """
    from ..hadoop.cluster import RESOURCEMANAGER_PORT, parse_addresses

    scheme = connection.schema or ("https" if connection.conn_type == "https" else "http")
    return ",".join(parse_addresses(connection.host or "", scheme, connection.port or RESOURCEMANAGER_PORT)) or None


def _site(extra: dict[str, Any], environ: dict[str, str]) -> "Site":
    """Return the settings of the site: those of the site file, overridden by the extras of the connection."""
    from ..hadoop.site import Site, find_site, read_setting

    if extra.get("site_file"):
        environ["YTF_SITE"] = str(extra["site_file"])
    site = find_site(environ)
    known = [field.name for field in fields(Site)]
    if unknown := [name for name in extra if name not in (*known, *_OWN_EXTRAS)]:
        raise SpecInvalid(
            f"connection: unknown extra {name!r}{did_you_mean(name, [*known, *_OWN_EXTRAS])}" for name in unknown
        )
    settings = {
        name: read_setting(name, value) if isinstance(value, str) else value
        for name, value in extra.items()
        if name in known and value not in (None, "")
    }
    return replace(site, **settings)

"""`operator_job`: a pure function from the arguments of an operator to its `JobSpec`."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ..errors import Fault
from ..job.document import read_document
from ..job.request import build_job
from ..job.spec import JobSpec
from ..validation import check_faults, noting

#: Seconds between the deadline of the Airflow task, after which Airflow ends the job with a good report, and the moment
#: at which YARN ends it.
SLACK = 300.0


def operator_job(
    options: Mapping[str, Any],
    spec: Any,
    lifetime: Any,
    execution_timeout: timedelta | None,
    name: str = "",
    names: Mapping[str, str] | None = None,
) -> JobSpec:
    """Return the job of an operator.

    Parameters
    ----------
    options : mapping
        Values by the names of ``ytf-submit``.
    spec : mapping, JobSpec, str or None
        A document, or the path of a YAML file, which the options override.
    lifetime : "auto", number of seconds, timedelta or None
        The time after which YARN ends the job, even when no part of Airflow runs. ``auto`` is `SLACK` seconds more
        than `execution_timeout`.
    execution_timeout : timedelta or None
        The limit of the Airflow task, for ``auto``.
    name : str, optional
        Name of the application, if the job has none.
    names : mapping of str to str, optional
        The operator's names of options, by the names of ``ytf-submit``, where they differ; faults use them.

    Raises
    ------
    SpecInvalid
        With every fault.
    """
    faults: list[Fault] = []
    document = spec.to_dict() if isinstance(spec, JobSpec) else spec
    if document is not None and not isinstance(document, Mapping):
        document = read_document(str(document), faults=faults)
    if name and not (document or {}).get("name"):
        options = {"name": name, **options}
    with noting(faults):
        job = build_job(options, document)
    other = {name: here for name, here in (names or {}).items() if name in options}
    check_faults(fault.renamed(lambda path: other.get(path, path)) for fault in faults)
    if lifetime == "auto":
        limit = None if execution_timeout is None else execution_timeout.total_seconds() + SLACK
    else:
        limit = lifetime.total_seconds() if isinstance(lifetime, timedelta) else lifetime
    if limit is None:
        return job
    own = job.deadlines
    return replace(
        job, deadlines=replace(own, total=min(own.total or limit, limit), queue=min(own.queue or limit, limit))
    )

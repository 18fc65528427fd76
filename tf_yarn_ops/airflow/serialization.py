"""Convert a `Cluster` to an argument of a trigger, and back. Pure.

The arguments of a trigger lie in clear text in Airflow's database. They are addresses, names and paths, and no secrets.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..follow.lease import lease_of
from ..hadoop.cluster import Cluster
from ..hadoop.site import Site
from ..job.spec import JobSpec

#: Fields that only a submission or a log needs; they are long.
_FOR_SUBMISSION = ("application_classpath", "inside", "log_services", "log_directory", "log_suffix",
                   "resourcemanager_services", "renewer", "nameservices")
_SITE_FOR_SUBMISSION = ("application_classpath", "am_java_options", "docker_folders", "namenodes",
                        "resourcemanager_service", "token_renewer")


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return the fields of a cluster that a client needs to watch and to kill, as values for JSON."""
    document = _different(cluster, Cluster((), "", "", "", "", ""), _FOR_SUBMISSION)
    document["site"] = _different(cluster.site, Site(), _SITE_FOR_SUBMISSION)
    return document


def cluster_from_dict(document: Mapping[str, Any]) -> Cluster:
    """Read the document of `cluster_to_dict`."""
    needed: dict[str, Any] = dict.fromkeys(("resourcemanagers",), ())
    needed |= dict.fromkeys(("user", "login", "default_filesystem", "filesystem", "staging_template"), "")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}
    return Cluster(**{**needed, **values, "site": Site(**document.get("site", {}))})


def lease_to_dict(spec: JobSpec) -> dict[str, Any] | None:
    """Return the lease of a job as values for JSON, without its holder; None if it has none."""
    lease = lease_of(spec, "")
    return None if lease is None else {"seconds": lease.seconds, "lifetime": lease.lifetime}


def _different(part: Any, plain: Any, without: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields whose values are not those of ``plain``."""
    values = {field.name: getattr(part, field.name) for field in fields(part) if field.name not in (*without, "site")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
            if value != getattr(plain, name)}

"""Inputs and outputs of a training as datasets of OpenLineage, by its naming: ``hdfs://host:port`` and ``/path``."""

from typing import Any
from urllib.parse import urlsplit


def dataset_of(path: str | None) -> tuple[str, str] | None:
    """Return the namespace and the name of a path's dataset; None for a path without scheme and for no path.

    Parameters
    ----------
    path : str or None
        ``hdfs://namenode:8020/data``, ``s3://bucket/data``. A file of the nodes is no dataset: it has no host.

    References
    ----------
    OpenLineage's specification, Naming.md.
    """
    split = urlsplit(path or "")
    if not split.scheme or split.scheme == "file":
        return None
    name = split.path.rstrip("/")
    if split.scheme in ("s3", "s3a", "s3n"):
        return f"s3://{split.netloc}", name.lstrip("/") or "/"
    return f"{split.scheme}://{split.netloc}", name or "/"


def lineage_of(given: str | None, made: str | None) -> Any:
    """Return OpenLineage's ``OperatorLineage`` of a training.

    Only the package ``apache-airflow-providers-openlineage`` calls for it.

    Parameters
    ----------
    given, made : str or None
        The input and the output path.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset  # type: ignore[import-not-found]

    inputs, outputs = ([Dataset(*names)] if (names := dataset_of(path)) else [] for path in (given, made))
    return OperatorLineage(inputs=inputs, outputs=outputs)

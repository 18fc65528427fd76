"""The text of a dry run: the job and its Skein application as YAML, with secrets masked."""

from collections.abc import Mapping
from typing import Any

from ..runtime.common.masking import mask_variables


def format_dry_run(job: Mapping[str, Any], application: str, mask: str) -> str:
    """Return the job and its application as two YAML documents.

    Parameters
    ----------
    job : mapping
        `JobSpec.to_dict` of the job.
    application : str
        The Skein application as YAML.
    mask : str
        Replaces the value of each environment variable whose name suggests a secret.
    """
    import yaml

    tasks = {name: _mask_secrets(task, mask) for name, task in job["tasks"].items()}
    text = yaml.safe_dump({**_mask_secrets(job, mask), "tasks": tasks}, sort_keys=False, allow_unicode=True)
    return f"# The job, as --spec reads it\n{text}---\n# The application, as Skein reads it\n{application}"


def _mask_secrets(holder: Mapping[str, Any], mask: str) -> dict[str, Any]:
    """Return a copy of a mapping whose entry ``env`` shows no secrets."""
    return {**holder, "env": dict(mask_variables(holder["env"], mask))} if "env" in holder else dict(holder)

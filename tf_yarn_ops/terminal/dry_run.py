"""The text of a dry run: the job and its Skein application as YAML, with secrets masked."""

from collections.abc import Mapping
from typing import Any


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
    if "env" not in holder:
        return dict(holder)
    return {**holder, "env": {name: mask if _is_secret(name) else value for name, value in holder["env"].items()}}


def _is_secret(variable: str) -> bool:
    """Return whether the name of a variable suggests a secret: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    name = variable.upper()
    return (any(word in name for word in ("SECRET", "PASSW", "CREDENTIAL"))
            or any(part.endswith(("TOKEN", "KEY")) for part in name.split("_")))

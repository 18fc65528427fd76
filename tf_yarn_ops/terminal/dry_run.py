"""The text of a dry run: the job and its Skein application as YAML, with secrets masked."""

from collections.abc import Mapping
from typing import Any

from ..runtime.common.masking import mask_options


def format_dry_run(job: Mapping[str, Any], application: str) -> str:
    """Return the job and its application as two YAML documents.

    Parameters
    ----------
    job : mapping
        `JobSpec.to_dict` of the job. Secrets in it are masked by `mask_options`, those of its commands too.
    application : str
        The Skein application as YAML, which has no variables or commands of the job.
    """
    import yaml

    text = yaml.safe_dump(mask_options(job), sort_keys=False, allow_unicode=True)
    return f"# The job, as --spec reads it\n{text}---\n# The application, as Skein reads it\n{application}"

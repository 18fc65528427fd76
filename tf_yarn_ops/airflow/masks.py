"""The secrets of a job in the lines of its program: found by the worker, handed to the triggerer, masked in both.

Airflow knows the secrets of a task in the task's own process only. So the worker looks for them in the options of the
job, and writes those that it finds into the application's directory, which other users cannot read and which holds
these options anyway. The trigger gets the path of the file: its own arguments lie in Airflow's database.
"""

import json
import sys
from collections.abc import Callable, Collection

from ..errors import SpecInvalid, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..job.spec import JobSpec
from ..runtime.common.masking import SHORTEST, mask_output, secrets_of, texts_of
from ..staging.staging_directory import PASSABLE, StagingDirectory
from .versions import redact

FILE = "masks.json"


def job_secrets(spec: JobSpec) -> set[str]:
    """Return the secrets in the options of a job.

    A text is a secret if Airflow masks it in this task's log, or if the name of its variable or of its option on a
    command line suggests one. Of a secret with several lines, each line is one, because a log is masked by lines.

    Raises
    ------
    SpecInvalid
        Airflow masks a text, and does not say what in it is the secret.
    """
    options = spec.to_dict()
    found = secrets_of(options).union(*(_known_to_airflow(text) for _, text in texts_of(options)))
    return found | {line.strip() for secret in found for line in secret.splitlines() if len(line.strip()) >= SHORTEST}


def _known_to_airflow(text: str) -> list[str]:
    """Return the parts of a text that Airflow masks."""
    if redact(text) == text:
        return []
    try:
        masker = sys.modules[redact.__module__]._secrets_masker()
        return [found.group() for found in masker.replacer.finditer(text)]
    except AttributeError as error:
        raise SpecInvalid(f"this version of Airflow does not tell its secrets ({error})") from error


def masking(secrets: Collection[str]) -> Callable[[str], str]:
    """Return a function that masks these secrets in a line, and those that Airflow knows in this process."""

    def mask(line: str) -> str:
        return str(redact(mask_output(line, secrets)))

    return mask


def hand_over(cluster: Cluster, application_id: str, secrets: Collection[str]) -> str:
    """Write secrets into the directory of an application; return the path of the file.

    Parameters
    ----------
    cluster : Cluster
        With the user of the application.
    application_id : str
    secrets : collection of str

    Raises
    ------
    TfYarnError
        The file can't be written where only its user reads it.
    """
    staging = StagingDirectory(cluster)
    staging.filesystem.makedirs(cluster.staging, PASSABLE)  # Skein's client does not use it
    directory = staging.directory(application_id)
    directory.make()
    directory.put(FILE, json.dumps(sorted(secrets)).encode())
    return f"{directory.own}/{FILE}"


def read(cluster: Cluster, path: str) -> list[str]:
    """Return the secrets of the file that `hand_over` wrote.

    Raises
    ------
    TfYarnError
        The file is not there any more, or can't be read.
    """
    if (content := cluster.open_filesystem().read(path)) is None:
        raise SubmissionRejected(f"{path} is not there any more")
    try:
        return [str(secret) for secret in json.loads(content)]
    except (ValueError, TypeError):
        raise SubmissionRejected(f"{path} does not have the secrets of the job") from None

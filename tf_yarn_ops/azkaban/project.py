"""Which files of the launcher's machine a job may name: all that the launcher can read, or those of its project."""

from collections.abc import Mapping
from pathlib import Path

from ..errors import Fault
from ..job.spec import JobSpec
from ..submit.preflight import file_faults, local_sources
from ..validation import check_faults
from .job_execution import JobExecution
from .request import AzkabanJobFault, AzkabanRequest, shown


def project_folder(properties: Mapping[str, str], execution: JobExecution) -> Path:
    """Return the folder into which Azkaban has unpacked the project for this execution, without links.

    It is the folder with the number of the execution around the job's attachment, whose path Azkaban sets after all
    properties of the job. The working directory is not used, because older versions of Azkaban let a job set it.
    """
    attachment = properties.get("azkaban.job.attachment.file", "")
    folder = (Path(attachment).parent if attachment.startswith("/") else Path.cwd()).resolve()
    return next((one for one in (folder, *folder.parents) if one.name == execution.execution_id), folder)


def check_sources(job: JobSpec, request: AzkabanRequest) -> None:
    """Raise SpecInvalid with a fault for each local file that is outside the project or can't be read.

    A fault of a file outside the project does not tell whether the file exists.
    """
    outside = {
        where: path for where, path in local_sources(job).items() if not request.may_read(request.key_of(where), path)
    }
    faults = [Fault(where, AzkabanJobFault.OUTSIDE, {"given": shown(str(path))}) for where, path in outside.items()]
    check_faults([*faults, *(fault for fault in file_faults(job) if fault.path not in outside)])

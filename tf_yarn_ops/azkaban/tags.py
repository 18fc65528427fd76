"""The YARN tags of a job: those by which Azkaban finds the application, and the job's own tags."""

from dataclasses import replace

from ..errors import Fault, FaultCode
from ..job.spec import MAX_TAGS_USER, JobSpec
from ..launch.identity import is_reserved
from ..validation import check_faults
from .job_execution import TAG_PREFIX, JobExecution
from .request import AzkabanRequest


class TagFault(FaultCode):
    """Fault codes for the tags that a job asks for."""

    RESERVED_TAG = "{tags} would look like a tag of Azkaban's or of another training's identity; choose another tag"
    TOO_MANY_TAGS = (
        "{given} given, at most {free} allowed: YARN takes ten, and the others are Azkaban's and the job's identity"
    )


def with_tags(job: JobSpec, execution: JobExecution, request: AzkabanRequest) -> JobSpec:
    """Return the job with Azkaban's tags.

    Raises
    ------
    SpecInvalid
        There is no room for the job's own tags, or one of them would look like Azkaban's or another training's.
        Tags of ``tony.application.tags``, which TonY overwrites, are left out with a warning instead.
    """
    tags = execution.tags
    free = MAX_TAGS_USER - len(tags)
    value = request.values.get("tf.tags")
    key = value.key if value and value.text.strip() else "tf.spec: tags"
    foreign = [tag for tag in job.tags if is_reserved(tag, TAG_PREFIX)]
    own = [tag for tag in job.tags if tag not in foreign]
    faults = []
    if foreign:
        faults.append(Fault(key, TagFault.RESERVED_TAG, {"tags": ", ".join(map(repr, foreign))}))
    if len(own) > free:
        faults.append(Fault(key, TagFault.TOO_MANY_TAGS, {"given": len(own), "free": free}))
    if key != "tony.application.tags":
        check_faults(faults)
    left_out = (foreign, own[free:])
    request.warnings += [
        f"{fault}; left out: {', '.join(out)}" for fault, out in zip(faults, filter(None, left_out), strict=True)
    ]
    return replace(job, tags=(*tags, *own[:free]))

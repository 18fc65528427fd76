"""The YARN tags of a job: Azkaban's, by which its killers look, and as many of its own as there is room for."""

from dataclasses import replace

from ..errors import SpecInvalid
from ..follow.identity import MAX_TAGS, is_reserved
from ..job.spec import JobSpec
from .execution import PREFIX, Execution
from .request import Request


def with_tags(job: JobSpec, execution: Execution, request: Request) -> JobSpec:
    """Give the job with Azkaban's tags.

    Raises
    ------
    SpecInvalid
        There is no room for the job's own tags, or one of them would pass for Azkaban's or for another training's.
        (TonY overwrites those of ``tony.application.tags``: as many as can be had stay.)
    """
    tags = execution.tags
    free = MAX_TAGS - len(tags) - len(execution.identity.tags)
    value = request.values.get("tf.tags")
    key = value.key if value and value.text.strip() else "tf.spec: tags"
    foreign = [tag for tag in job.tags if is_reserved(tag, PREFIX)]
    own = [tag for tag in job.tags if tag not in foreign]
    faults = []
    if foreign:
        faults.append(f"{key}: {', '.join(map(repr, foreign))} would pass for a tag of Azkaban's or of another "
                      "training's identity")
    if len(own) > free:
        faults.append(f"{key}: {len(own)} given, at most {free} allowed: YARN takes {MAX_TAGS}, and the others are "
                      "Azkaban's and the job's identity")
    if faults and key != "tony.application.tags":
        raise SpecInvalid(faults)
    left_out = (foreign, own[free:])
    request.warnings += [f"{fault}; {', '.join(out)} left out"
                         for fault, out in zip(faults, filter(None, left_out), strict=True)]
    return replace(job, tags=(*tags, *own[:free]))

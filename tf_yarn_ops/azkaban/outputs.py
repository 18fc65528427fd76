"""Output properties: the results of a training for the jobs downstream.

They are one flat JSON object of texts, and all names begin with ``tf.result.``. Azkaban lets them override a plugin's
own settings, resolves ``${...}`` in them and evaluates ``$(...)``. A program that could choose such a name or value
could choose the command of the next job.
"""

import json
import logging
from collections.abc import Mapping

from ..runtime.common.report import JobReport
from ..terminal.output_properties import METRIC, outputs_of

logger = logging.getLogger(__name__)

#: The most metrics, and the most characters of a metric's name and of any value.
MAX_METRICS = 100
MAX_OUTPUT_NAME = 100
MAX_VALUE = 1000
#: How the names of all output properties begin, and those of metrics. The job type never reads them.
RESULT, METRICS = "tf.result.", "tf.result.metrics."
_RESULTS = (
    "application_id",
    "final_status",
    "reason",
    "tracking_url",
    "output_path",
    "tensorboard_url",
    "duration_seconds",
)


def output_properties(report: JobReport) -> dict[str, str]:
    """Return the output properties of a job that succeeded.

    Parameters
    ----------
    report : JobReport

    Returns
    -------
    dict of str to str
        ``tf.result.<name>``. Unknown values are left out, because Azkaban drops all properties if one is null. The
        program's metrics are ``tf.result.metrics.<name>``; names of nested metrics are joined by dots.
    """
    finished, submitted = report.finished_at, report.submitted_at
    seconds = f"{finished - submitted:.1f}" if finished is not None and submitted is not None else None
    outputs = outputs_of(
        report, final_status=report.final_status, tensorboard_url=report.tensorboard_url, duration_seconds=seconds
    )
    found = {RESULT + name: outputs[name] for name in _RESULTS if name in outputs}
    metrics = {name: text for name, text in outputs.items() if name.startswith(METRIC)}
    for name, text in list(metrics.items())[:MAX_METRICS]:
        key = METRICS + (name.removeprefix(METRIC).replace("-", "_")[:MAX_OUTPUT_NAME].strip(".") or "_")
        if key in found:
            logger.warning("metrics: a second %s is left out", key)
        else:
            found[key] = text
    if len(metrics) > MAX_METRICS:
        logger.warning("more than %s metrics; the others are in the report only", MAX_METRICS)
    return {name: text for name, text in found.items() if _harmless(name, text)}


def write_job_outputs(path: str, properties: Mapping[str, str]) -> None:
    """Write the output properties into the file that Azkaban has made; log a failure as an error."""
    try:
        with open(path, "r+", encoding="ascii") as file:
            file.truncate()
            json.dump(dict(properties), file, indent=1)
    except OSError as error:
        logger.error("cannot write the output properties, so jobs downstream do not get them: %s", error)


def _harmless(name: str, text: str) -> bool:
    """Return whether a text is short enough and Azkaban evaluates nothing in it."""
    if "${" in text or "$(" in text:
        logger.warning("%s is left out: it holds ${ or $(, which Azkaban would evaluate", name)
        return False
    if len(text) > MAX_VALUE:
        logger.warning("%s is left out: it has %s characters, at most %s are allowed", name, len(text), MAX_VALUE)
        return False
    return True

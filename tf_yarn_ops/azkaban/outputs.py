"""Output properties: what a training tells the jobs downstream.

One flat JSON object of texts, under names of ours alone. Azkaban puts them above a
plugin's own settings, and resolves ``${...}`` and evaluates ``$(...)`` in them: a program
that could choose a name or such a value would choose what the next job runs.
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..runtime.common.report import JobReport

logger = logging.getLogger(__name__)

#: As many metrics are handed on, each with a name and a value of at most as many characters.
MAX_METRICS = 100
MAX_NAME = 100
MAX_VALUE = 1000
METRICS = "tf.result.metrics."


def output_properties(report: JobReport) -> dict[str, str]:
    """Give the output properties of a job that succeeded.

    Parameters
    ----------
    report : JobReport

    Returns
    -------
    dict of str to str
        ``tf.result.<name>``; what is not known is left out, as Azkaban loses all of them for one
        null. The program's metrics, nested ones joined by dots, are below ``tf.result.metrics.``.
    """
    finished, submitted = report.finished_at, report.submitted_at
    seconds = f"{finished - submitted:.1f}" if finished is not None and submitted is not None else None
    known = {
        "tf.result.application_id": report.application_id,
        "tf.result.final_status": report.final_status,
        "tf.result.reason": report.reason.value if report.reason else None,
        "tf.result.tracking_url": report.tracking_url,
        "tf.result.output_path": report.output_path,
        "tf.result.tensorboard_url": report.tensorboard_url,
        "tf.result.duration_seconds": seconds,
    }
    texts = {name: text for name, text in known.items() if text}
    return {name: text for name, text in (texts | _metrics(report.metrics or {})).items() if _harmless(name, text)}


def write_outputs(path: str, properties: Mapping[str, str]) -> None:
    """Write the file in place, as Azkaban made it and will read it; one that can't be written is told in the log."""
    content = json.dumps(dict(properties), indent=1).encode("ascii")
    try:
        with open(path, "r+b") as file:
            file.truncate()
            file.write(content)
    except OSError as error:
        logger.error("the output properties can't be written, jobs downstream have none of them: %s", error)


def _metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in _flat("", metrics):
        if len(texts) >= MAX_METRICS:
            logger.warning("more than %s metrics; the rest is in the report", MAX_METRICS)
            break
        key = METRICS + (re.sub(r"[^A-Za-z0-9_.]", "_", name)[:MAX_NAME].strip(".") or "_")
        if key in texts:
            logger.warning("metrics: %s is a second one of this name, left out", key)
            continue
        texts[key] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _flat(prefix: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        elif value is not None:
            yield f"{prefix}{name}", value


def _harmless(name: str, text: str) -> bool:
    """Whether Azkaban takes a text as it stands, and it is not too long."""
    if "${" in text or "$(" in text:
        logger.warning("%s is left out: Azkaban would evaluate what is in it", name)
        return False
    if len(text) > MAX_VALUE:
        logger.warning("%s is left out: %s characters are more than %s", name, len(text), MAX_VALUE)
        return False
    return True

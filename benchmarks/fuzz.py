"""The laws of all readers and doors with many examples: any JSON and bytes of others, any text in any option."""

import logging
import time
from collections.abc import Callable
from typing import Any

import hypothesis

from support.hostile_values import LAWS
from support.hostile_words import DOORS

from .samples import Figures, Samples, interleave

TITLE = "Laws of readers and doors: seconds for 20,000 examples each of any JSON, bytes and text"
EXAMPLES, FEW = 20_000, 200


def measure(runs: int, quick: bool) -> Samples:
    """Check each law once, whatever ``runs`` is; an example that breaks one ends the benchmark."""
    from support.airflow_values import AIRFLOW  # imports Airflow, which takes seconds

    logging.getLogger("tf_yarn_ops").setLevel(logging.ERROR)  # each example would log what does not fit
    examples = FEW if quick else EXAMPLES
    cases = {
        name: _case(law, examples)
        for name, law in {**LAWS, **DOORS, **{f"airflow {name}": law for name, law in AIRFLOW.items()}}.items()
    }
    return interleave(cases, 1, Samples())


def _case(law: Any, examples: int) -> Callable[[], Figures]:
    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(law.strategy)
    def check(example: Any) -> None:
        law.check(example)

    def run() -> Figures:
        began = time.monotonic()
        check()
        return {"s": round(time.monotonic() - began, 1), "examples": float(examples)}

    return run

"""Let a process of Airflow that builds its API for tasks start with less CPU. Import it before Airflow.

The API has nine versions, and all tasks here use the newest: three take 3 s less. Airflow marks a route as one that only
the third and older ones have. FastAPI inspects a function for each of some routes that include it: once is enough. The
collections of garbage by Python's threshold of 700 objects take another second.
"""

import functools
import gc

import cadwyn
import fastapi.dependencies.utils

_Bundle = cadwyn.VersionBundle


def _few(head, *versions):
    return _Bundle(head, *versions[:2], *(cadwyn.Version(version.value) for version in versions[2:3]))


cadwyn.VersionBundle = _few
fastapi.dependencies.utils.get_typed_signature = functools.cache(fastapi.dependencies.utils.get_typed_signature)
gc.set_threshold(100_000)

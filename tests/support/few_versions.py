"""Let a process of Airflow that builds its API for tasks start with less CPU. Import it before Airflow.

The API has nine versions, and all tasks here use the newest: three take 3 s less. Airflow marks a route as one that only
the third and older ones have. The collections of garbage by Python's threshold of 700 objects take another second.
"""

import gc

import cadwyn

_Bundle = cadwyn.VersionBundle


def _few(head, *versions):
    return _Bundle(head, *versions[:2], *(cadwyn.Version(version.value) for version in versions[2:3]))


cadwyn.VersionBundle = _few
gc.set_threshold(100_000)

"""Let Airflow build its API for tasks in three of nine versions: 3 s of CPU less at each start that builds it.

All tasks use the newest one. Airflow marks a route as one that only the third version and older ones have.
Import it before Airflow's API.
"""

import cadwyn

_Bundle = cadwyn.VersionBundle


def _few(head, *versions):
    return _Bundle(head, *versions[:2], *(cadwyn.Version(version.value) for version in versions[2:3]))


cadwyn.VersionBundle = _few

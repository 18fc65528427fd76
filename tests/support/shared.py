"""Systems that the test files of a worker share, from the first test that uses one to the last that may.

Idle, a cluster takes some percent of a core from all the tests that follow.
"""

import functools
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

SHARED = pytest.StashKey()


def share(config, may_use, start):
    """Return the system that ``start()``, a context manager, gives; it is entered unless this worker has it already.

    Parameters
    ----------
    may_use : callable
        Tells of a test file, a path, whether it may use the system. Unforeseen uses start it again.
    """
    shared = config.stash.setdefault(SHARED, {})
    if may_use not in shared:
        using = ExitStack()
        config.add_cleanup(using.close)  # of a run that was interrupted, or stopped at a failure
        shared[may_use] = using.enter_context(start()), using
    return shared[may_use][0]


def leave_unused(config, path, next_path):
    """Leave what the next test file may not use, the latest first; None: there is none."""
    shared = config.stash.get(SHARED, {})
    for may_use in reversed(tuple(shared)):
        # What a fixture of a module gave stays as long as the module.
        if next_path is None or (next_path != path and not may_use(next_path)):
            _, using = shared.pop(may_use)
            using.close()


@functools.cache
def read_test(path):
    """Return the text of a test file."""
    return Path(path).read_text()


@functools.cache
def drives_airflow(path):
    """Tell whether a test or a fixture of the file takes the fixture ``airflow_site``."""
    return re.search(r"def \w+\([^)]*\bairflow_site\b", read_test(path)) is not None


@functools.cache
def may_use_minicluster(path):
    """Tell whether a test or a fixture of the file takes the fixture ``minicluster``, perhaps by its name."""
    text = read_test(path)
    by_name = "getfixturevalue" in text and '"minicluster"' in text
    return (
        by_name
        or re.search(r"def \w+\([^)]*\b(minicluster|airflow_site|wire_and_real)\b|\breal_yarn\b", text) is not None
    )


@functools.cache
def may_use_secure_cluster(path):
    """Tell whether a test or a fixture of the file takes the fixture ``secure_cluster``."""
    return Path(path).parent.name == "secure" or re.search(r"\bsecure_cluster\b", read_test(path)) is not None

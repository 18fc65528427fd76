"""What test files share is started for the first, kept for those that may use it, and left behind the last."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from support.shared import leave_unused, share


@pytest.fixture
def config():
    return SimpleNamespace(stash=pytest.Stash(), add_cleanup=lambda clean: None)


def test_system_is_left_behind_the_last_file_that_may_use_it(config):
    events = []

    def uses_both(path):
        return path.startswith("both")

    def uses_one(path):
        return path.startswith(("both", "one"))

    @contextmanager
    def system(name):
        events.append(f"{name} starts")
        yield name
        events.append(f"{name} ends")

    assert share(config, uses_one, lambda: system("cluster")) == "cluster"
    assert share(config, uses_both, lambda: system("airflow")) == "airflow"
    assert share(config, uses_one, lambda: system("another")) == "cluster"
    leave_unused(config, "both_1", "both_2")
    assert events == ["cluster starts", "airflow starts"]
    leave_unused(config, "both_2", "one")
    assert events == ["cluster starts", "airflow starts", "airflow ends"]
    leave_unused(config, "one", "other")
    assert events[3:] == ["cluster ends"]


def test_system_stays_within_an_unforeseen_file_and_starts_again(config):
    running = []

    @contextmanager
    def system():
        running.append(True)
        yield
        running.pop()

    def nobody(path):
        return False

    for path in ("first", "second"):
        share(config, nobody, system)
        leave_unused(config, path, path)
        assert running
        leave_unused(config, path, None)
        assert not running

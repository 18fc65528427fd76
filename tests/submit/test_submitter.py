"""The way that a submission takes: HTTP, and Skein's Java client only where HTTP is closed."""

import pytest

from support.place import Place, job
from tf_yarn_ops.errors import ClusterUnreachable
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.hadoop.transport import RestUnavailable
from tf_yarn_ops.submit.submitter import SubmitMethod


@pytest.fixture
def session(yarn, tmp_path):
    return Session(Place(yarn, tmp_path / "files").cluster())


def attempts(session, way, *errors):
    """Return whether each way that was tried reserves ids, and what the last one has raised."""
    seen, left = [], list(errors)

    def work(submitter):
        seen.append(submitter.reserves)
        if left:
            raise left.pop(0)
        return "done"

    try:
        return seen, SubmitMethod(way, False, None).use(session, job(), work)
    except (RestUnavailable, ClusterUnreachable) as error:
        return seen, type(error)


@pytest.mark.parametrize(
    ("way", "error", "expected"),
    [
        ("auto", None, ([True], "done")),
        ("auto", RestUnavailable("closed"), ([True, False], "done")),
        ("auto", ClusterUnreachable("away"), ([True], ClusterUnreachable)),
        ("rest", RestUnavailable("closed"), ([True], RestUnavailable)),
        ("skein", None, ([False], "done")),
        ("skein", RestUnavailable("closed"), ([False], RestUnavailable)),
    ],
)
def test_only_auto_changes_its_way_and_only_where_http_is_closed(session, way, error, expected):
    assert attempts(session, way, *filter(None, [error])) == expected


def test_next_call_tries_http_again(session):
    method, seen = SubmitMethod("auto", False, None), []

    def work(submitter):
        seen.append(submitter.reserves)
        if seen == [True]:
            raise RestUnavailable("closed for a moment")

    for _ in range(2):
        method.use(session, job(), work)
    assert seen == [True, False, True]

"""Which jobs of the history are shown, in which order; what differs between jobs."""

import pytest

from support.records import DAY, STAMP, add, application_id, record
from support.staging_place import USER
from tf_yarn_ops.history.histories import Histories, read_record
from tf_yarn_ops.history.query import Query, parse_states
from tf_yarn_ops.runtime.common.reasons import Reason

EVERY = Query()


def found(cluster, query=EVERY, users=None):
    return [summary["application_id"] for summary in Histories(cluster, users).find(query)]


def test_jobs_come_the_latest_first_also_over_days_and_users(cluster):
    for number, (ended, user) in enumerate([(0, USER), (3600, "bob"), (DAY, USER), (DAY + 60, "bob"), (9 * DAY, USER)]):
        add(cluster, record(number, ended=STAMP + float(ended), user=user))
    assert found(cluster) == [application_id(number) for number in (4, 2, 0)]
    assert found(cluster, users="*") == [application_id(number) for number in (4, 3, 2, 1, 0)]
    assert found(cluster, users="b?b") == [application_id(number) for number in (3, 1)]
    assert found(cluster, users="carol") == []


def test_a_query_wants_names_times_and_states(cluster):
    add(cluster, record(1, name="digits-1", user=USER))
    add(cluster, record(2, name="digits-2", user=USER, reason=Reason.TASK_FAILED))
    add(cluster, record(3, name="words", user=USER, reason=Reason.KILLED, ended=STAMP + 3.0 * DAY))
    assert set(found(cluster, Query(name="digits*"))) == {application_id(1), application_id(2)}
    assert found(cluster, Query(since=STAMP + 2.0 * DAY)) == [application_id(3)]
    assert (
        found(cluster, Query(states=("FAILED",)))
        == found(cluster, Query(states=("TASK_FAILED",)))
        == [application_id(2)]
    )
    assert set(found(cluster, Query(states=("KILLED", "SUCCEEDED")))) == {application_id(1), application_id(3)}


def test_the_record_of_another_user_is_found(cluster):
    made = record(1, user="bob")
    add(cluster, made)
    assert read_record(cluster, application_id(1)) == made
    assert read_record(cluster, application_id(2)) is None


def test_states_are_words_of_yarn_or_reasons():
    assert parse_states(["failed,out_of_memory", "KILLED"]) == ("FAILED", "OUT_OF_MEMORY", "KILLED")
    with pytest.raises(ValueError, match="'BROKEN' is no state; give one of SUCCEEDED, FAILED, KILLED, "):
        parse_states(["broken"])

"""The job file of a package, and the values that Oozie gives it."""

from tf_yarn_ops.oozie.packed_job import values_of


def test_the_action_finds_the_values_in_its_environment():
    assert values_of({"YTF_OOZIE_nominalTime": "2026-11-21T02:00Z", "YTF_OTHER": "x", "PATH": "/"}) == {
        "nominalTime": "2026-11-21T02:00Z"
    }

"""The table of checks."""

from tf_yarn_ops.doctor.table import CHECKS


def test_a_check_needs_only_checks_before_it():
    names = [check.name for check in CHECKS]
    for number, check in enumerate(CHECKS):
        assert set(check.needs) <= set(names[:number]), check.name
    assert len(set(names)) == len(names)

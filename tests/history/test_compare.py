"""Two jobs compared."""

from support.records import record
from tf_yarn_ops.history.compare import compare


def test_what_differs_comes_first_by_section():
    one = record(1, options={"command": "train", "tasks": {"worker": {"instances": 2}}, "environment": "venv:///a"})
    other = record(
        2, loss=0.5, options={"command": "train", "tasks": {"worker": {"instances": 4}}, "environment": "venv:///b"}
    )
    rows = compare([one, other])
    differing = [(row.section, row.name, row.values) for row in rows if row.differs]
    assert differing == [
        ("metrics", "loss", (0.25, 0.5)),
        ("options", "tasks.worker.instances", (2, 4)),
        ("environment", "environment", ("venv:///a", "venv:///b")),
    ]
    equal = [(row.section, row.name) for row in rows if not row.differs]
    assert ("options", "command") in equal and ("environment", "tf_yarn_ops") in equal
    assert rows[:3] == [row for row in rows if row.differs]


def test_a_value_that_one_job_lacks_differs():
    one, other = record(1, options={}), record(2, options={"priority": 3})
    assert [row.values for row in compare([one, other]) if row.name == "priority"] == [(None, 3)]

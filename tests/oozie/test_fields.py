"""Values in a job's document."""

from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.oozie.fields import fill, uses


def test_values_replace_names_and_reach_commands_as_variables():
    document = {
        "command": "echo ${day} $day",
        "output": "/m/${day}/${other}",
        "env": {"A": "${day}", "day": "own"},
        "tasks": {"worker": {"command": "${day}", "env": {"B": "x${day}"}}},
        "tags": ["t-${day}"],
        "priority": 3,
    }
    filled = fill(document, {"day": "2026-11-21", "user": "ann"})
    assert filled == {
        "command": "echo ${day} $day", "output": "/m/2026-11-21/${other}", "tags": ["t-2026-11-21"], "priority": 3,
        "env": {"day": "own", "user": "ann", "A": "2026-11-21"},
        "tasks": {"worker": {"command": "${day}", "env": {"B": "x2026-11-21"}}}}  # fmt: skip
    assert JobSpec.from_dict(filled).output == "/m/2026-11-21/${other}"
    assert set(uses(document)) == {
        ("output", "day"),
        ("output", "other"),
        ("env.A", "day"),
        ("tasks.worker.env.B", "day"),
        ("tags", "day"),
    }


def test_a_value_is_never_read_a_second_time():
    assert fill({"output": "${a}"}, {"a": "${b}", "b": "x"})["output"] == "${b}"

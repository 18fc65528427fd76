"""The table of options: complete, consistent, and with the defaults that hold."""

import pytest

from tf_yarn_ops.declaration import AZKABAN, COMMAND_LINE, DOCUMENT, EVERYWHERE, OPERATOR, OPTION_SECTIONS
from tf_yarn_ops.hadoop.site import SUBMIT_WITH, Site
from tf_yarn_ops.job.options import OPTIONS, options_of
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.request import OPTION_NAMES, build_job
from tf_yarn_ops.job.spec import JobSpec


def test_public_docstrings_have_every_option():
    for name in ("tasks", "tensorboard", "am_memory"):
        assert f"\n{name} : " in JobSpec.__doc__
    assert "\nqueue : text, optional\n    The queue in YARN. Default: default.\n" in JobSpec.__doc__


def test_a_row_is_complete():
    for option in OPTIONS.values():
        assert option.section in OPTION_SECTIONS and option.help.endswith((".", "...")), option.name
        assert set(option.doors) <= set(EVERYWHERE) and option.doors, option.name
        if "." in option.name:
            assert option.name == ".".join(option.path) and not {COMMAND_LINE, OPERATOR} & set(option.doors)


def test_every_option_of_a_door_reaches_the_job():
    for door in (COMMAND_LINE, OPERATOR, AZKABAN):
        names = {name for name in options_of(door, submission=False) if "." not in name}
        assert names - {"client"} <= set(OPTION_NAMES), door
    assert {name for name in OPTIONS if DOCUMENT in OPTIONS[name].doors and not OPTIONS[name].path} == set()


#: Options with a default in words, because no single value is the default.
IN_WORDS = {"environment", "user", "lease", "commit_version", "max_restarts", "retry_exit_codes", "fatal_exit_codes", "tasks.<type>.awaited",
            "tasks.<type>.environment", "tasks.<type>.after", "tasks.<type>.max_restarts", "tasks.<type>.max_container_losses",
            "tasks.<type>.fatal", "tasks.<type>.in_cluster", "hold_port"}  # fmt: skip


def test_a_default_in_words_stands_only_where_no_value_is_the_default():
    words = {name for name, option in OPTIONS.items() if option.in_words and option.path and option.path[0] != "acls"}
    assert words == IN_WORDS


@pytest.mark.parametrize(
    "option",
    [
        option
        for name, option in OPTIONS.items()
        if name in OPTION_NAMES
        and option.path
        and option.kind.word in ("count", "seconds", "memory", "choice", "text")
        and name not in IN_WORDS
        and option.shown_default
    ],
    ids=lambda option: option.name,
)
def test_shown_defaults_equal_the_defaults_of_the_job(option):
    plain = {"task_command": "x", "cluster_requirement": "worker:1", "output": "/o", "tensorboard": True}
    assert build_job({**plain, option.name: option.shown_default}) == build_job(plain)


def test_a_job_and_its_site_take_the_same_ways_to_submit():
    assert OPTIONS["submit_with"].kind.choices == SUBMIT_WITH and OPTIONS["submit_with"].default == Site().submit_with


def test_the_defaults_in_words_are_those_of_the_parts():
    assert [RestartPolicy(mode).max_restarts for mode in ("never", "task", "cluster")] == [0, 3, 3]
    assert RestartPolicy().retry_exit_codes == RestartPolicy().fatal_exit_codes == ()
    job = JobSpec(tasks=dict.fromkeys(("chief", "worker", "other", "ps", "evaluator"), 1), command="x")
    roles = {name: job.role_of(name) for name in job.tasks}
    assert {name for name, role in roles.items() if not role.awaited} == {"ps"}
    assert {name for name, role in roles.items() if not role.in_cluster} == {"evaluator"}
    assert all(role.fatal for role in roles.values())

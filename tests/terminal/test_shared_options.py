"""The options that commands of all rooms share."""

import click
import pytest

from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.terminal.shared_options import RESOURCEMANAGER_OPTION, USER_OPTION, VERBOSE_OPTION


def described(option):
    """Return the options that a decorator adds, as ``--help`` shows them."""

    @option
    def command():
        """Do nothing."""

    return [(added.opts, added.metavar, added.help) for added in command.__click_params__]


@pytest.mark.parametrize("words", [["list"], ["kill"], ["doctor"], ["oozie", "package"], ["oozie", "run"], ["ui"]])
def test_each_command_about_a_cluster_has_the_same_options(words):
    command = ytf
    for word in words:
        command = command.get_command(click.Context(command), word)
    shown = [(option.opts, option.metavar, option.help) for option in command.params if hasattr(option, "help")]
    expected = [RESOURCEMANAGER_OPTION, VERBOSE_OPTION, *([] if words == ["ui"] else [USER_OPTION])]
    assert [option for one in expected for option in described(one) if option not in shown] == []

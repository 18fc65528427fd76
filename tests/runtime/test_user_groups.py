"""The groups of a user on this node."""

import grp
import os
import pwd

from tf_yarn_ops.runtime.common.user_groups import groups_on_node


def test_groups_of_this_user_are_those_of_the_system():
    user = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(user.pw_gid).gr_name in groups_on_node(user.pw_name)


def test_unknown_user_has_no_groups():
    assert groups_on_node("nobody-has-this-name") == frozenset()

"""The groups of a user, for the view ACLs of the job's page and of ``ytf ui``."""

import grp
import os
import pwd
from typing import FrozenSet


def groups_on_node(user: str) -> FrozenSet[str]:
    """Return the groups that the system of this node knows of a user; it may ask a directory service."""
    try:
        return frozenset(grp.getgrgid(number).gr_name for number in os.getgrouplist(user, pwd.getpwnam(user).pw_gid))
    except (KeyError, OSError):
        return frozenset()

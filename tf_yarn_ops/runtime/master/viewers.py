"""`Viewers`: whether the user that YARN's proxy names may open the pages of the job.

References
----------
Hadoop, ``WebAppProxyServlet`` and ``AmIpFilter``: the proxy names its user by the cookie ``proxy-user``, and passes no
cookie of the browser on; ``ApplicationACLsManager`` asks for the owner, the view ACL and the administrators.
"""

import asyncio
import os
import re
from typing import Collection, Optional
from urllib.parse import unquote_plus

from ..common.contract import EVERYBODY, Job, ViewersPlan
from ..common.local_job import is_local
from ..common.report import list_names
from ..common.user_groups import groups_on_node

#: A page of another site can give itself a name with this machine's address, which the browser then sends.
_HOST = re.compile(rb"^host:[ \t]*([^\r\n]*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_OWN = re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_USER = re.compile(rb"^cookie:(?:[^\r\n]*?;)??[ \t]*proxy-user=([^;\s]+)", re.IGNORECASE | re.MULTILINE)


class Viewers:
    """Decides who may open the pages.

    Parameters
    ----------
    job : Job
    application_id : str
    """

    def __init__(self, job: Job, application_id: str):
        self._plan, self._application_id = job.viewers, application_id
        # YARN itself names the owner to a container.
        self._users = {job.user, os.environ.get("USER", job.user), *(job.viewers.users if job.viewers else ())}

    async def why_not(self, head: bytes) -> Optional[str]:
        """Return why the sender of a request may not view the job; None if it may.

        A job of this machine is not behind YARN's proxy: its page answers requests to the machine's own name only.

        Parameters
        ----------
        head : bytes
            Request line and headers.
        """
        if is_local(self._application_id) and [host for host in _HOST.findall(head) if not _OWN.fullmatch(host)]:
            return "The page of a job of this machine has the address 127.0.0.1 or localhost.\n"
        plan, found = self._plan, _USER.search(head)
        if plan is None or EVERYBODY in (*plan.users, *plan.groups):
            return None
        if found is None:
            return f"The request names no user: open the pages of {self._application_id} through YARN.\n"
        user = unquote_plus(found[1].decode("latin-1"))
        if user in self._users or (plan.groups and not set(plan.groups).isdisjoint(await _groups_of(plan, user))):
            return None
        groups = f", members of {list_names(sorted(plan.groups))}" if plan.groups else ""
        return (
            f"{user} may not view {self._application_id}: only {list_names(sorted(self._users))}{groups} may. "
            "acls.view_users and acls.view_groups of the job name further viewers.\n"
        )


async def _groups_of(plan: ViewersPlan, user: str) -> Collection[str]:
    if user in plan.memberships:
        return plan.memberships[user]
    return await asyncio.to_thread(groups_on_node, user)

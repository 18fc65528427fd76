"""Who may open the pages of a job, by the user that YARN's proxy names; a real cluster is in tests/secure/test_view_acls.py."""

import asyncio
import grp
import os
import pwd

import pytest

from support import wire
from tf_yarn_ops.runtime.common.contract import ViewersPlan
from tf_yarn_ops.runtime.master.viewers import Viewers

ME = pwd.getpwuid(os.getuid()).pw_name
MY_GROUP = grp.getgrgid(os.getgid()).gr_name
ID = "application_1_0007"
PLAN = ViewersPlan(users=("bob", "a b"), groups=("ml",), memberships={"eve": ("ml", "x"), "dan": (), ME: ("x",)})


def why_not(plan, *headers):
    job = wire.job()._replace(user="ann", viewers=plan)
    head = "\r\n".join(["GET /status.json HTTP/1.1", *headers, "", ""]).encode()
    return asyncio.run(Viewers(job, ID).why_not(head))


@pytest.fixture(autouse=True)
def owner(monkeypatch):
    """YARN names the owner to its containers, which auth_to_local may have renamed."""
    monkeypatch.setenv("USER", "ann2")


@pytest.mark.parametrize("cookie", ["proxy-user=ann", "proxy-user=ann2", "proxy-user=bob", "x=1; proxy-user=bob; y=2", "proxy-user=a+b",
                                    "proxy-user=eve", "proxy-user=bob; proxy-user=dan"])  # fmt: skip
def test_owner_users_and_group_members_may_view(cookie):
    assert why_not(PLAN, "Host: x", f"cookie: {cookie}") is None


@pytest.mark.parametrize("cookie", ["proxy-user=dan", "proxy-user=ml", "proxy-user=Bob", "proxy-user=bob%0a", "proxy-user=dan; proxy-user=bob",
                                    f"proxy-user={ME}", "proxy-user=no-such-user-here"])  # fmt: skip
def test_everybody_else_is_refused(cookie):
    assert "may not view application_1_0007: only a b, ann, ann2, bob, members of ml may." in why_not(
        PLAN, f"Cookie: {cookie}"
    )


@pytest.mark.parametrize("headers", [(), ("Cookie: x=proxy-user=bob",), ("Cookie: xproxy-user=bob",), ("X-Cookie: proxy-user=bob",),
                                     ("Cookie: proxy-user=",), ("Cookies: proxy-user=bob",)])  # fmt: skip
def test_a_request_without_a_user_is_refused(headers):
    assert why_not(PLAN, *headers).startswith(
        "The request names no user: open the pages of application_1_0007 through YARN."
    )


def test_groups_that_hadoop_does_not_name_are_those_of_the_node():
    assert why_not(ViewersPlan(groups=(MY_GROUP,)), f"Cookie: proxy-user={ME}") is None
    assert why_not(ViewersPlan(groups=("no-such-group",)), f"Cookie: proxy-user={ME}") is not None


@pytest.mark.parametrize("plan", [None, ViewersPlan(users=("*",)), ViewersPlan(groups=("*",))])
def test_without_acls_and_with_a_star_everybody_may_view(plan):
    assert why_not(plan) is None and why_not(plan, "Cookie: proxy-user=eve") is None


@pytest.mark.parametrize("host, seen", [("127.0.0.1:8042", True), ("localhost", True), ("LOCALHOST:1", True), ("[::1]:80", True),
                                        ("evil.example", False), ("evil.example:8042", False), ("127.0.0.1.evil.example", False),
                                        ("localhost.evil", False), ("127.0.0.1@evil.example", False), ("", False),
                                        ("127.0.0.1\r\nHost: evil.example", False)])  # fmt: skip
def test_page_of_a_local_job_answers_its_own_name_only(host, seen):
    head = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert (asyncio.run(Viewers(wire.job(), "local_1_0001").why_not(head)) is None) == seen
    assert asyncio.run(Viewers(wire.job(), ID).why_not(head)) is None, "YARN's proxy sends names of its own"

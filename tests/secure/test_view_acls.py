"""Who may open the pages of a job on a secured cluster: its owner, the viewers that the job names, administrators."""

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from support.programs import SUBMIT, YTF
from support.secure import ask, ask_all, get_environment
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PATHS = (
    "",
    "status.json",
    "status.json?only=report",
    "parts.json",
    "log.txt?task=worker:0",
    "stack.txt?task=worker:0",
    "no-such-page",
)
ROUTES = (*(f"pages/ytf/{path}" for path in PATHS), "pages/tensorboard/", "pages/tensorboard/data/runs")
NAME = "a-name-that-no-page-shows"


class Started(NamedTuple):
    application_id: str
    url: str


@pytest.fixture(scope="module")
def clients(secure_cluster, tmp_path_factory):
    """Return the variables of a client with a ticket of each user."""
    folder = tmp_path_factory.mktemp("tickets")
    return {user: get_environment(secure_cluster, folder, user) for user in ("alice", "bob", "gateway", "hdfs", "yarn")}


@contextmanager
def running(cluster, environ, folder, *words, **fields):
    """Run a job of alice; give it when its pages answer her."""
    document = {
        "name": NAME,
        "environment": f"venv://{sys.prefix}",
        "command": "sleep 600",
        "output": "/user/alice/out",
        "tasks": {"worker": {"memory": 256}},
        "am_memory": 512,
        **fields,
    }
    (folder / "job.yaml").write_text(json.dumps(document))
    command = [*SUBMIT, "--spec", folder / "job.yaml", *words]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr
    job = Started(
        found := re.search(r"application_\d+_\d+", ran.stdout)[0], f"{cluster.resourcemanager_url}/proxy/{found}"
    )

    def answers():
        _, text = ask(cluster, environ, f"{job.url}/pages/ytf/status.json")
        tasks = json.loads(text)["tasks"] if text.startswith("{") else []
        return tasks and {task["state"] for task in tasks} == {"running"}

    try:
        assert until(answers, 120)
        if "tensorboard" in fields:

            def show():
                logs = subprocess.run(
                    [*YTF, "logs", job.application_id], env=environ, capture_output=True, text=True, timeout=60
                )
                return f"an answer of TensorBoard\n{ask(cluster, environ, f'{job.url}/pages/ytf/status.json')}\n{logs.stdout}"

            until(lambda: ask(cluster, environ, f"{job.url}/pages/tensorboard/data/runs")[0] == 200, 120, what=show)
        yield job
    finally:
        subprocess.run([*YTF, "kill", job.application_id], env=environ, check=True)


@pytest.fixture(scope="module")
def private(secure_cluster, clients, tmp_path_factory):
    """Return a job without ``acls``, and without TensorBoard."""
    with running(secure_cluster, clients["alice"], tmp_path_factory.mktemp("private")) as job:
        yield job


@pytest.fixture(scope="module")
def shared(secure_cluster, clients, tmp_path_factory):
    """Return a job with TensorBoard that names bob, and the group of hdfs and yarn."""
    acls = {"view_users": ["bob"], "view_groups": ["hadoop"]}
    folder = tmp_path_factory.mktemp("shared")
    (folder / "site.yaml").write_text(Path(clients["alice"]["YTF_SITE"]).read_text() + "\nallow_exec: true\n")
    environ = {**clients["alice"], "YTF_SITE": str(folder / "site.yaml")}
    with running(secure_cluster, environ, folder, acls=acls, tensorboard={}) as job:
        yield job


def statuses(cluster, environ, job, folder):
    answers = ask_all(cluster, environ, [f"{job.url}/{route}" for route in ROUTES], folder)
    return dict(zip(ROUTES, (status for status, _ in answers), strict=True))


def served(status, tensorboard=200):
    return {
        route: 404 if "no-such-page" in route else tensorboard if "tensorboard" in route else status for route in ROUTES
    }


@pytest.mark.parametrize("user", ["alice", "yarn"])
def test_owner_and_administrator_open_every_page(secure_cluster, clients, private, tmp_path, user):
    assert statuses(secure_cluster, clients[user], private, tmp_path) == served(200, tensorboard=404)


@pytest.mark.parametrize(
    ("user", "job", "tensorboard"), [("bob", "private", 404), ("hdfs", "private", 404), ("gateway", "shared", 403)]
)
def test_other_users_are_refused_on_every_route(secure_cluster, clients, request, tmp_path, user, job, tensorboard):
    expected = {route: tensorboard if "tensorboard" in route else 403 for route in ROUTES}
    assert statuses(secure_cluster, clients[user], request.getfixturevalue(job), tmp_path) == expected


@pytest.mark.parametrize(
    ("user", "job", "route", "viewers"),
    [
        ("bob", "private", "pages/ytf/status.json", "alice, yarn"),
        ("gateway", "shared", "pages/tensorboard/", "alice, bob, yarn, members of hadoop"),
    ],
)
def test_refusal_names_user_viewers_and_option(secure_cluster, clients, request, user, job, route, viewers):
    job = request.getfixturevalue(job)
    assert ask(secure_cluster, clients[user], f"{job.url}/{route}")[1] == (
        f"{user} may not view {job.application_id}: only {viewers} may. acls.view_users and acls.view_groups of the job name "
        "further viewers.\n"
    )


@pytest.mark.parametrize("user", ["alice", "bob", "hdfs", "yarn"])
def test_named_users_and_groups_open_every_page(secure_cluster, clients, shared, tmp_path, user):
    assert statuses(secure_cluster, clients[user], shared, tmp_path) == served(200)


@pytest.mark.parametrize(
    ("user", "words", "code", "text"),
    [
        ("alice", (), 7, "beside 0\n"),
        ("gateway", ("--user", "alice"), 7, "beside 0\n"),  # a service that submits for alice
        ("bob", (), 2, "who alone may use ytf exec; you are bob"),
        ("bob", ("--user", "alice"), 3, "bob"),
    ],
)
def test_owner_alone_runs_commands_beside_a_task(clients, shared, user, words, code, text):
    """Neither a viewer nor an administrator of YARN may, who can open every page of the job."""
    command = [*YTF, "exec", *words, shared.application_id, "worker:0", "--", "bash", "-c"]
    done = subprocess.run(
        [*command, "echo beside $DTF_TASK_INDEX; exit 7"],
        env=clients[user], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code and text in done.stdout + done.stderr, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(("user", "status"), [("alice", 200), ("bob", 403), ("yarn", 403)])
def test_key_of_a_job_is_closed_to_its_viewers(secure_cluster, clients, shared, user, status):
    folder = f"/user/alice/.skein/{shared.application_id}"
    url = f"{secure_cluster.namenode_url}/webhdfs/v1{folder}?op=LISTSTATUS"
    assert ask(secure_cluster, clients[user], url)[0] == status


@pytest.mark.parametrize("route", ["", "overview", "kv"])
def test_pages_of_skein_show_nothing_of_the_job(secure_cluster, clients, private, route):
    status, text = ask(secure_cluster, clients["bob"], f"{private.url}/{route}")
    assert status == 200 and 'url=pages/ytf/"' in text and NAME not in text and "alice" not in text


def test_writing_requests_are_refused_with_405(secure_cluster, clients, private):
    put = ("--request", "PUT", "--data", "x")
    assert ask(secure_cluster, clients["alice"], f"{private.url}/pages/ytf/status.json", *put)[0] == 405
    assert ask(secure_cluster, clients["bob"], f"{private.url}/pages/ytf/status.json", *put)[0] == 403


def test_pages_of_a_job_of_skeins_client_admit_named_users(secure_cluster, clients, tmp_path):
    """Skein's driver does not put our pages before Skein's own, which know no groups."""
    with running(secure_cluster, clients["alice"], tmp_path, "--submit_with", "skein") as job:
        for user, status in (("alice", 200), ("yarn", 200), ("bob", 403)):
            for route in ("overview", "kv", "pages/ytf/status.json"):
                assert ask(secure_cluster, clients[user], f"{job.url}/{route}")[0] == status, (user, route)

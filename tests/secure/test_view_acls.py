"""Who may open the pages of a job on a secured cluster: its owner, the viewers that the job names, administrators."""

import base64
import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from support.events import SCALAR, event_file
from support.forged import check_verdict, forged
from support.found_secrets import SECRETS
from support.programs import SUBMIT, YTF
from support.secure import ask, ask_all
from support.secure_clients import clients_of
from support.waiting import until
from tf_yarn_ops.runtime.tensorboard.page_script import CONTENT_TYPE

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
#: The events that TensorBoard shows.
EVENTS = "/tmp/charts/train/events.out.tfevents.1.host"


class Started(NamedTuple):
    application_id: str
    url: str


@pytest.fixture(scope="module")
def clients(secure_cluster, tmp_path_factory):
    users = ("alice", "bob", "gateway", "hdfs", "yarn")
    with clients_of(secure_cluster, tmp_path_factory.mktemp("clients"), users) as made:
        made.flag = made.folder / "go on"
        yield made


def run_job(clients, name, site=None, **fields):
    """Submit a job of alice; return it when its pages answer her."""
    document = {
        "name": NAME,
        "environment": f"venv://{sys.prefix}",
        "command": f'echo "I am worker $DTF_TASK_INDEX"; until [ -e "{clients.flag}" ]; do sleep 0.1; done',
        "output": "hdfs:///tmp/charts",
        "tasks": {"worker": {"memory": 256}},
        "am_memory": 512,
        **fields,
    }
    (clients.folder / f"{name}.yaml").write_text(json.dumps(document))
    clients.start(name, "alice", *SUBMIT, "-v", "--wait", "--json", "--spec", f"{name}.yaml", site=site)
    found = clients.submitted(name)
    job = Started(found, f"{clients.cluster.resourcemanager_url}/proxy/{found}")

    def answers():
        _, text = ask(clients.cluster, clients.tickets["alice"], f"{job.url}/pages/ytf/status.json")
        tasks = json.loads(text)["tasks"] if text.startswith("{") else []
        return tasks and {task["state"] for task in tasks} == {"running"}

    until(answers, 120)
    return job


@pytest.fixture(scope="module")
def private(clients):
    """Return a job without ``acls``, and without TensorBoard."""
    return run_job(clients, "private")


@pytest.fixture(scope="module")
def shared(clients):
    """Return a job with TensorBoard that names bob, and the group of hdfs and yarn."""
    alice = clients.tickets["alice"]
    clients.write("alice", EVENTS, event_file(2), "PUT", "CREATE")
    job = run_job(
        clients,
        "shared",
        clients.site(clients.folder / "exec.yaml", allow_exec=True),
        command="sleep 600",
        acls={"view_users": ["bob"], "view_groups": ["hadoop"]},
        tensorboard={"memory": "1g", "args": "--reload_interval=1"},
    )

    def show():
        logs = clients.ytf("logs of shared", "alice", "logs", job.application_id)
        return f"an answer of TensorBoard\n{ask(clients.cluster, alice, f'{job.url}/pages/ytf/status.json')}\n{logs}"

    until(lambda: ask(clients.cluster, alice, f"{job.url}/pages/tensorboard/data/runs")[0] == 200, 120, what=show)
    return job


def statuses(cluster, environ, job, folder):
    answers = ask_all(cluster, environ, [f"{job.url}/{route}" for route in ROUTES], folder)
    return dict(zip(ROUTES, (status for status, _ in answers), strict=True))


def served(status, tensorboard=200):
    return {
        route: 404 if "no-such-page" in route else tensorboard if "tensorboard" in route else status for route in ROUTES
    }


@pytest.mark.parametrize("user", ["alice", "yarn"])
def test_owner_and_administrator_open_every_page(secure_cluster, clients, private, tmp_path, user):
    assert statuses(secure_cluster, clients.tickets[user], private, tmp_path) == served(200, tensorboard=404)


@pytest.mark.parametrize(
    ("user", "job", "tensorboard"), [("bob", "private", 404), ("hdfs", "private", 404), ("gateway", "shared", 403)]
)
def test_other_users_are_refused_on_every_route(secure_cluster, clients, request, tmp_path, user, job, tensorboard):
    expected = {route: tensorboard if "tensorboard" in route else 403 for route in ROUTES}
    assert statuses(secure_cluster, clients.tickets[user], request.getfixturevalue(job), tmp_path) == expected


@pytest.mark.parametrize(
    ("user", "job", "route", "viewers"),
    [
        ("bob", "private", "pages/ytf/status.json", "alice, yarn"),
        ("gateway", "shared", "pages/tensorboard/", "alice, bob, yarn, members of hadoop"),
    ],
)
def test_refusal_names_user_viewers_and_option(secure_cluster, clients, request, user, job, route, viewers):
    job = request.getfixturevalue(job)
    assert ask(secure_cluster, clients.tickets[user], f"{job.url}/{route}")[1] == (
        f"{user} may not view {job.application_id}: only {viewers} may. acls.view_users and acls.view_groups of the job name "
        "further viewers.\n"
    )


@pytest.mark.parametrize("route", ["", "overview", "kv"])
def test_pages_of_skein_show_nothing_of_the_job(secure_cluster, clients, private, route):
    status, text = ask(secure_cluster, clients.tickets["bob"], f"{private.url}/{route}")
    assert status == 200 and 'url=pages/ytf/"' in text and NAME not in text and "alice" not in text


def test_writing_requests_are_refused_with_405(secure_cluster, clients, private):
    put = ("--request", "PUT", "--data", "x")
    assert ask(secure_cluster, clients.tickets["alice"], f"{private.url}/pages/ytf/status.json", *put)[0] == 405
    assert ask(secure_cluster, clients.tickets["bob"], f"{private.url}/pages/ytf/status.json", *put)[0] == 403


@pytest.mark.door
def test_a_job_of_alice_runs_only_she_ends_it_and_its_logs_stay(secure_cluster, clients, private):
    """While its token lasts: YARN stores the logs in HDFS by it."""
    page = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{private.application_id}"

    def look(user="alice"):
        return json.loads(ask(secure_cluster, clients.tickets[user], page)[1])["app"]

    assert (look()["state"], look()["user"]) == ("RUNNING", "alice")
    # The NodeManager serves logs of running containers, to those who may see the application.
    container = look()["amContainerLogs"].split("/containerlogs/")[1].split("/")[0]
    log = f"{secure_cluster.settings.web_address('nm')}/ws/v1/node/containerlogs/{container}/application.master.log"
    assert ask(secure_cluster, clients.tickets["alice"], log)[0] == 200
    assert "amContainerLogs" not in look("bob")
    body = json.dumps({"state": "KILLED", "diagnostics": f"bye\n{forged(private.application_id)}"})
    kill = ("--request", "PUT", "--header", "Content-Type: application/json", "--data", body)
    status, said = ask(secure_cluster, clients.tickets["bob"], f"{page}/state", *kill)
    assert status == 403, said
    clients.flag.touch()
    code, report = clients.report("private")
    assert (code, report["reason"]) == (0, "SUCCEEDED"), report
    assert look()["state"] == "FINISHED"
    check_verdict(look(), "bob")
    until(lambda: look()["logAggregationStatus"] == "SUCCEEDED", 60)
    assert "\nI am worker 0\n" in clients.ytf("logs", "alice", "logs", private.application_id)[1]


def test_tensorboard_shows_curves_that_grow_in_a_secured_hdfs(secure_cluster, clients, shared):
    """While its token lasts: TensorBoard reads HDFS by it."""
    _, out, err = clients.ytf("look", "alice", "status", shared.application_id, "--json")
    assert out, err
    # What the browser asks for when it draws a chart, as the script in TensorBoard's page sends it.
    form = f'--x\r\nContent-Disposition: form-data; name="requests"\r\n\r\n{json.dumps([{"plugin": "scalars", "tag": SCALAR}])}\r\n--x--\r\n'
    asked = json.dumps({"type": "multipart/form-data; boundary=x", "body": base64.b64encode(form.encode()).decode()})
    series = f"{json.loads(out)['tensorboard_url']}data/plugin/timeseries/timeSeries"
    put = ("-X", "PUT", "-d", asked, "-H", f"Content-Type: {CONTENT_TYPE}")

    def steps():
        status, text = ask(secure_cluster, clients.tickets["alice"], series, *put)
        return status == 200 and [point["step"] for point in json.loads(text)[0]["runToSeries"].get("train", [])]

    until(lambda: steps() == [0, 1], 120, 0.5)
    clients.write("alice", EVENTS, event_file(1, first=2), "POST", "APPEND")
    until(lambda: steps() == [0, 1, 2], 120, 0.5)


@pytest.mark.parametrize("user", ["alice", "bob", "hdfs", "yarn"])
def test_named_users_and_groups_open_every_page(secure_cluster, clients, shared, tmp_path, user):
    assert statuses(secure_cluster, clients.tickets[user], shared, tmp_path) == served(200)


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
        env=clients.tickets[user], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code and text in done.stdout + done.stderr, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(("user", "status"), [("alice", 200), ("bob", 403), ("yarn", 403)])
def test_key_of_a_job_is_closed_to_its_viewers(secure_cluster, clients, shared, user, status):
    folder = f"/user/alice/.skein/{shared.application_id}"
    url = f"{secure_cluster.namenode_url}/webhdfs/v1{folder}?op=LISTSTATUS"
    assert ask(secure_cluster, clients.tickets[user], url)[0] == status


def test_job_that_its_user_kills_leaves_no_directory(clients, shared):
    code, _, err = clients.ytf("kill", "alice", "kill", shared.application_id, "-v")
    assert code == 0, err
    code, report = clients.report("shared")
    assert report["reason"] == "KILLED", (code, report)
    assert clients.is_deleted("alice", shared.application_id)
    assert not {name: match[0] for name, text in clients.texts().items() if (match := SECRETS.search(text))}

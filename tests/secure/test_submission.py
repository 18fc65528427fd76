"""Jobs on a real secured cluster, submitted over HTTP by clients that have neither Java nor Hadoop.

All jobs start at once; the tests look at their ends. The last test looks for secrets in all that the others left.
"""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.events import SCALAR, event_file
from support.programs import ROOT, SUBMIT, YTF
from support.secure import ask, get_environment
from support.waiting import until
from tf_yarn_ops.runtime.tensorboard.page_script import CONTENT_TYPE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

OWN_PYTHON = f"venv://{sys.prefix}"
SMALL = ["--am_memory", "512", "-m", "256", "--environment", OWN_PYTHON, "-r", "worker:1"]
#: A program that lists the user's home directory in HDFS with the token that its container has, and prints the
#: services of all tokens of HDFS.
LIST_HOME = """
import json, os, ssl, sys, urllib.request
from tf_yarn_ops.runtime.common.tokens import HDFS_KIND, encode_token, read_credentials
with open(os.environ["HADOOP_TOKEN_FILE_LOCATION"], "rb") as file:
    tokens = [token for token in read_credentials(file.read()) if token.kind == HDFS_KIND]
url = f"{sys.argv[1]}/webhdfs/v1/user/alice?op=LISTSTATUS&delegation={encode_token(tokens[0])}"
handlers = [urllib.request.ProxyHandler({})]
if sys.argv[2:]:
    handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sys.argv[2])))
found = json.load(urllib.request.build_opener(*handlers).open(url))["FileStatuses"]["FileStatus"]
print("tokens for", sorted(token.service for token in tokens), "home has", [item["pathSuffix"] for item in found], flush=True)
"""
#: The events that TensorBoard shows.
EVENTS = "/tmp/charts/train/events.out.tfevents.1.host"
#: A program that prints all files of HDFS that its user may read.
READ_ALL = """
from tf_yarn_ops.errors import SubmissionRejected
from tf_yarn_ops.hadoop.cluster import discover
files = discover().open_filesystem()
def walk(path):
    try:
        for item in files.list(path):
            if item.is_directory:
                walk(f"{path}{item.name}/")
            elif item.length < 2_000_000:
                print(f"{path}{item.name}", (files.read(f"{path}{item.name}") or b"").decode("latin-1"))
    except SubmissionRejected:
        pass
walk("/")
"""
#: A token's text has its kind in base64, at one of three alignments.
TOKEN_TEXT = re.compile(
    "|".join(
        base64.b64encode(b"x" * shift + kind)[4 if shift else 0 : -4].decode()
        for kind in (b"HDFS_DELEGATION_TOKEN", b"RM_DELEGATION_TOKEN", b"WEBHDFS delegation")
        for shift in range(3)
    )
)
SECRETS = re.compile(rf"{TOKEN_TEXT.pattern}|PRIVATE KEY-----|hadoop\.auth=[^;(]", re.MULTILINE)


class Clients:
    """Programs of users of the secured cluster, whose environment names the cluster and a ticket and nothing else."""

    def __init__(self, cluster, folder, tickets):
        self.cluster, self.folder, self.tickets = cluster, folder, tickets
        self.running, self.said = {}, {}
        self.ca_file = str(getattr(cluster, "ca_file", None) or "")
        self.site(folder / "site.yaml")

    def site(self, path, **settings):
        known = {"resourcemanager": self.cluster.resourcemanager_url}
        if self.ca_file:
            known["ca_file"] = self.ca_file
        path.write_text(yaml.safe_dump(known | settings))
        return path

    def environ(self, user, site=None):
        kept = ("KRB5_CONFIG", "KRB5CCNAME", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
        own = {name: value for name, value in self.tickets[user].items() if name in kept}
        return {**own, "PATH": "/nowhere", "YTF_SITE": str(site or self.folder / "site.yaml")}

    def start(self, name, user, *words, site=None, **variables):
        """Start a client; what it says is kept under its name."""
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            self.running[name] = subprocess.Popen(
                words,
                env=self.environ(user, site) | variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.folder,
            )

    def submit(self, name, user, command, *words, **more):
        self.start(name, user, *SUBMIT, "-v", "--submit_with", "rest", "--json", *SMALL, *words, command, **more)

    def end(self, name, seconds=150):
        """Wait for a client; return its exit code, stdout and stderr."""
        code = self.running[name].wait(seconds)
        out, err = ((self.folder / f"{name}.{end}").read_text() for end in ("out", "err"))
        assert "Traceback" not in err, err
        return code, out, err

    def report(self, name):
        code, out, err = self.end(name)
        assert out, (code, err)
        print(f"{name}:", err)  # shown when the test fails
        return code, json.loads(out)

    def run(self, name, user, *words):
        self.start(name, user, *words)
        return self.end(name)

    def status_of(self, user, path):
        """Return the HTTP status of a user's request to WebHDFS."""
        return ask(self.cluster, self.tickets[user], f"{self.cluster.namenode_url}/webhdfs/v1{path}")[0]

    def write(self, user, path, content, method, operation):
        """Create a file of a user, or append to it."""
        (self.folder / "content").write_bytes(content)
        url = f"{self.cluster.namenode_url}/webhdfs/v1{path}?op={operation}"
        status, text = ask(self.cluster, self.tickets[user], url, "-X", method, "-T", str(self.folder / "content"))
        assert status in (200, 201), text

    def is_deleted(self, user, application):
        """Return whether the application's directory, which held the job's key, is gone."""
        return self.status_of(user, f"/user/{user}/.skein/{application}?op=GETFILESTATUS") == 404

    def submitted(self, name):
        """Return the id that a client tells in its log, once it is there."""

        def told():
            ended, text = self.running[name].poll() is not None, (self.folder / f"{name}.err").read_text()
            found = re.search(r"submitted (application_\d+_\d+)", text)
            assert found or not ended, text
            return found

        return until(told, 90)[1]


@pytest.fixture(scope="module")
def clients(secure_cluster, tmp_path_factory):
    """Start a client for each row; end what still runs."""
    folder = tmp_path_factory.mktemp("clients")
    made = Clients(
        secure_cluster,
        folder,
        {
            user: get_environment(secure_cluster, tmp_path_factory.mktemp(user), user)
            for user in ("alice", "bob", "gateway")
        },
    )
    (folder / "list_home.py").write_text(LIST_HOME)
    made.flag, namenode = folder / "go on", secure_cluster.namenode_url
    listing = [sys.executable, str(folder / "list_home.py"), namenode, *filter(None, [made.ca_file])]
    made.listed = folder / "listed"
    command = f'PYTHONPATH={ROOT} {shlex.join(listing)}; touch "{made.listed}"; until [ -e "{made.flag}" ]; do sleep 0.2; done'
    # The active NameNode by its own address, which is another file system than the pair.
    other = f"hdfs://localhost:{secure_cluster.settings.ports[secure_cluster.active('nn')]}"
    # Its client has a keytab, and tickets of some seconds.
    short = folder / "krb5.conf"
    short.write_text(
        secure_cluster.krb5_conf.read_text().replace("[libdefaults]", "[libdefaults]\n  ticket_lifetime = 20s")
    )
    site = made.site(folder / "two.yaml", namenodes={other: namenode}, keytab=str(secure_cluster.keytab("alice")))
    made.submit(
        "long", "alice", command, "--wait", "--lease", "120", "--file_system", other, site=site, KRB5_CONFIG=str(short)
    )
    made.submitted("long")  # the others find its files in the cache
    made.submit("failed", "alice", "echo it fails; exit 3", "--wait", "--report_log_tail", "1000")
    bare = folder / "bare"
    bare.mkdir()
    (bare / "python").symlink_to(os.path.realpath(sys.executable))
    for_bob = ["--user", "bob", "--environment", f"python://{bare}/python"]
    made.submit("for bob", "gateway", "sleep 1", "--wait", *for_bob)
    for number in range(2):
        made.submit(f"racer {number}", "alice", "sleep 1", "--wait", "--run_id", "race")
    made.submit(
        "wrong service",
        "alice",
        "true",
        "--wait",
        site=made.site(folder / "service.yaml", resourcemanager_service="nowhere.example:8032"),
    )
    made.submit(
        "wrong renewer", "alice", "true", "--wait", site=made.site(folder / "wrong.yaml", token_renewer="alice")
    )
    made.submit("no python", "alice", "true", "--wait", "--environment", f"python://{bare}/nothing")
    made.write("alice", EVENTS, event_file(2), "PUT", "CREATE")
    made.submit(
        "charts",
        "alice",
        "sleep 600",
        "--wait",
        "-o",
        "hdfs:///tmp/charts",
        "--tensorboard",
        "--tensorboard_memory",
        "1g",
        "--tensorboard_args",
        "--reload_interval=1",
    )
    yield made
    made.flag.touch()
    for process in made.running.values():
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def test_running_job_shows_page_and_logs_and_only_its_user_ends_it(clients):
    application = clients.submitted("long")

    until(clients.listed.exists, 90)
    _, out, err = clients.run("look", "alice", *YTF, "status", application, "--json", "-v")
    assert out, err
    shown = json.loads(out)
    assert [task["state"] for task in shown["tasks"]] == ["running"]
    assert (shown["user"], shown["state"]) == ("alice", "RUNNING")
    code, out, err = clients.run("live log", "alice", *YTF, "logs", application, "--task", "worker:0", "-v")
    # One token for the pair of NameNodes, and one for the address of one of them.
    assert code == 0 and re.search(
        r"^tokens for \['127\.0\.0\.1:\d+', 'ha-hdfs:minicluster'\] home has \['\.skein'.*\]$", out, re.M
    ), (out, err)
    code, _, err = clients.run("kill by bob", "bob", *YTF, "kill", application)
    assert code == 3, err
    code, _, err = clients.run("log by bob", "bob", *YTF, "logs", application, "--task", "master")
    assert (code, "belongs to alice, and YARN shows you none of its logs" in err) == (3, True), err
    for path in (f"/user/alice/.skein/{application}?op=LISTSTATUS", "/user/alice/.skein/cache?op=LISTSTATUS"):
        assert clients.status_of("bob", path) == 403
    for page in (f"ws/v1/cluster/apps/{application}", f"cluster/app/{application}"):
        status, text = ask(clients.cluster, clients.tickets["bob"], f"{clients.cluster.resourcemanager_url}/{page}")
        clients.said[page] = text
        assert status in (200, 403)


def test_tensorboard_shows_curves_that_grow_in_a_secured_hdfs(clients):
    """Until its user kills the job, which leaves no directory."""
    application = clients.submitted("charts")

    page = f"{clients.cluster.resourcemanager_url}/proxy/{application}/pages/ytf/status.json"

    def board():
        _, text = ask(clients.cluster, clients.tickets["alice"], page)
        return text.startswith("{") and json.loads(text)["tensorboard_url"]

    until(board, 180, 1.0)
    _, out, err = clients.run("look at charts", "alice", *YTF, "status", application, "--json")
    assert out, err
    # What the browser asks for when it draws a chart, as the script in TensorBoard's page sends it.
    form = f'--x\r\nContent-Disposition: form-data; name="requests"\r\n\r\n{json.dumps([{"plugin": "scalars", "tag": SCALAR}])}\r\n--x--\r\n'
    asked = json.dumps({"type": "multipart/form-data; boundary=x", "body": base64.b64encode(form.encode()).decode()})
    series = f"{json.loads(out)['tensorboard_url']}data/plugin/timeseries/timeSeries"

    def steps():
        status, text = ask(
            clients.cluster,
            clients.tickets["alice"],
            series,
            "-X",
            "PUT",
            "-d",
            asked,
            "-H",
            f"Content-Type: {CONTENT_TYPE}",
        )
        return status == 200 and [point["step"] for point in json.loads(text)[0]["runToSeries"].get("train", [])]

    until(lambda: steps() == [0, 1], 120, 0.5)
    clients.write("alice", EVENTS, event_file(1, first=2), "POST", "APPEND")
    until(lambda: steps() == [0, 1, 2], 120, 0.5)
    code, _, err = clients.run("kill", "alice", *YTF, "kill", application, "-v")
    assert code == 0, err
    code, report = clients.report("charts")
    assert report["reason"] == "KILLED", (code, report)
    assert clients.is_deleted("alice", application)


def test_a_failed_job_leaves_no_directory(clients):
    code, report = clients.report("failed")
    assert (code, report["reason"]) == (1, "TASK_FAILED")
    assert clients.is_deleted("alice", report["application_id"])
    # No program yarn, and no log server: the whole log comes from HDFS.
    code, out, err = clients.run("log after the end", "alice", *YTF, "logs", report["application_id"], "-v")
    assert code == 0 and "it fails\n" in out and "only the end" not in out, (out, err)
    # Coordinators write the records with their jobs' tokens; a client writes one that took more than a second.
    code, out, err = clients.run("history", "alice", *YTF, "history", "--json", "-v")
    records = {job["application_id"]: job for job in json.loads(out)}
    assert (code, records[report["application_id"]]["reason"]) == (0, "TASK_FAILED"), err
    assert "coordinator" in {record["written_by"] for record in records.values()}, err


def test_a_gateway_submits_for_bob_and_follows_as_bob(clients):
    """On a Python without packages."""
    code, report = clients.report("for bob")
    assert (code, report["user"], report["reason"]) == (0, "bob", "SUCCEEDED"), report
    assert clients.is_deleted("bob", report["application_id"])
    code, out, _ = clients.run(
        "status for bob", "gateway", *YTF, "status", report["application_id"], "--user", "bob", "--json"
    )
    assert (code, json.loads(out)["reason"]) == (0, "SUCCEEDED")
    code, out, err = clients.run(
        "log for bob", "gateway", *YTF, "logs", report["application_id"], "--user", "bob", "-v"
    )
    assert code == 0 and "the command ended with exit code 0" in out, (out, err)


def test_racing_clients_have_one_application(clients):
    ends = [clients.report(f"racer {number}") for number in range(2)]
    assert [code for code, _ in ends] == [0, 0]
    assert len({report["application_id"] for _, report in ends}) == 1
    assert clients.is_deleted("alice", ends[0][1]["application_id"])


def test_token_that_yarn_cannot_renew_is_reported_with_advice(clients):
    code, report = clients.report("wrong renewer")
    assert (code, report["reason"]) == (3, "SUBMISSION_REJECTED")
    assert re.search(r"Failed to renew token.*set token_renewer in site\.yaml", report["message"])
    assert clients.is_deleted("alice", report["application_id"])


def test_token_of_another_service_is_reported_with_advice(clients):
    """YARN starts the application master, which asks for itself in vain: Hadoop finds no token for its ResourceManager."""
    code, report = clients.report("wrong service")
    assert (code, report["reason"]) == (3, "SUBMISSION_REJECTED"), report
    assert re.search(
        r"Client cannot authenticate.*has no token for the address.*resourcemanager_service", report["message"]
    ), report
    assert clients.is_deleted("alice", report["application_id"])


def test_coordinator_without_interpreter_ends_the_job_by_its_token(clients):
    """Another Python of the node kills the application over REST, with the reason."""
    code, report = clients.report("no python")
    assert (code, report["reason"]) == (2, "ENVIRONMENT_INVALID"), report
    assert "there is no Python" in report["message"]
    assert clients.is_deleted("alice", report["application_id"])


def test_a_job_outlives_its_tokens_and_its_client_its_tickets(clients, secure_cluster):
    """The tokens were renewed, and then ended for good; the client's tickets and cookies ended several times.

    The client has moved its lease all the time.
    """
    application = clients.submitted("long")
    page = f"{secure_cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"

    def age():
        return json.loads(ask(secure_cluster, clients.tickets["alice"], page)[1])["app"]["elapsedTime"]

    def lease_ends():
        [limit] = json.loads(ask(secure_cluster, clients.tickets["alice"], page)[1])["app"]["timeouts"]["timeout"]
        return limit["expiryTime"]

    first = lease_ends()
    most = int(secure_cluster.settings.properties["yarn.resourcemanager.delegation.token.max-lifetime"])
    until(lambda: age() > 1.1 * most, 180, 3.0)
    until(lambda: lease_ends() > first, 120, 3.0)
    clients.flag.touch()
    code, report = clients.report("long")
    assert (code, report["reason"]) == (0, "SUCCEEDED"), report
    assert clients.is_deleted("alice", application)
    assert "ticket" not in clients.end("long")[2]  # no word about those that have ended


def test_no_secret_is_where_others_may_read(clients, secure_cluster):
    """Poll for tokens, private keys and cookies in what clients, containers and daemons have written."""
    clients.flag.touch()  # run alone, this test is the first one that waits for "long", and ends "charts"
    if clients.running["charts"].poll() is None:
        clients.run("kill", "alice", *YTF, "kill", clients.submitted("charts"))
    for name in list(clients.running):
        clients.end(name)
    code, out, err = clients.run("files for bob", "bob", sys.executable, "-c", READ_ALL)
    assert code == 0 and "/user/bob/.skein/cache" in out, err
    texts = {str(path): path.read_text(errors="replace") for path in clients.folder.glob("*.*")} | clients.said
    logs = [path for path in Path(secure_cluster.directory, "logs").rglob("*") if path.is_file()]
    assert len(logs) > 5
    texts |= {str(path): path.read_text(errors="replace") for path in logs}
    assert not {name: match[0] for name, text in texts.items() if (match := SECRETS.search(text))}
    _, answer = ask(
        secure_cluster,
        clients.tickets["alice"],
        f"{secure_cluster.namenode_url}/webhdfs/v1/?op=GETDELEGATIONTOKEN&renewer=alice",
    )
    assert SECRETS.search(answer), ("a token is found where there is one", answer)

"""The rig of the rows on several hosts: clients on ``edge``, by ``ytf-submit`` in a process of its own."""

import contextlib
import functools
import json
import re
import sys
import time
import urllib.error
import urllib.request

from support.faults import Outcome, Rig, processes_of
from support.forks import forking
from support.hadoop.hosts import full_name, network_of
from support.programs import ROOT, SUBMIT, YTF
from support.secure import get_environment
from support.waiting import PATIENCE, until
from tf_yarn_ops.hadoop.resourcemanager import ENDED
from tf_yarn_ops.minicluster import health
from tf_yarn_ops.runtime.common.reasons import Reason

FOREVER = "exec tail -f /dev/null"
#: Seconds until a coordinator takes an agent for lost; below the node's expiry.
HEARTBEAT = "--heartbeat_timeout", f"{10 * PATIENCE:g}"
#: Writes into the output.
WRITE = """python3 -c '
import fsspec, os
with fsspec.open(os.environ["DTF_OUTPUT_PATH"] + "/file", "wb") as file:
    file.write(b"the output")
'"""
#: Ends when the file exists that `release` makes.
UNTIL_RELEASED = "echo step 1; until [ -e $RELEASED ]; do sleep 0.2; done"
#: Writes the time five times a second, for each application into a file of its own.
BEATS = "until [ -e $RELEASED ]; do cut -d' ' -f1 /proc/uptime >> $RELEASED.$YTF_APPLICATION_ID; sleep 0.2; done"
#: The ports of the ResourceManager, and those to which answers to it go.
RESOURCEMANAGER = "{ 8030-8033, 8088, 32768-60999 }"


class EdgeClient:
    """One call of ``ytf-submit --wait --json`` on edge.

    Parameters
    ----------
    rig : HostsRig
    number : int
        Of the call.
    words : sequence of str
        Options and the command.
    """

    def __init__(self, rig, number, words):
        self.rig = rig
        self.log = rig.cluster.directory / "edge" / f"client-{number}.log"
        # No two tasks fit on one node, which each may share with the application master.
        memory = rig.cluster.settings.memory // 2 + 1
        words = ["--wait", "--json", "-m", memory, "--environment", f"venv://{sys.prefix}", "--stop_grace", "2", *words]
        with self.log.open("w") as log:
            self.process = rig.popen(*SUBMIT, *map(str, words), stderr=log)

    @property
    def application(self):
        """Its application id, once there is one."""
        return until(lambda: re.search(r"application_\d+_\d+", self.lines()), 60, what=self.lines)[0]

    def lines(self):
        """Return what it has logged."""
        return self.log.read_text()

    def report(self):
        """Return what ``ytf status`` says."""
        ran = self.rig.run(*YTF, "status", "--json", self.application)
        return json.loads(ran.stdout) if ran.stdout.strip() else {}

    def running(self, tasks):
        """Wait until so many tasks run; return their hosts, such as ``n1``, by task.

        The client's own lines say when it is worth half a second of CPU to look at the report.
        """

        def begun():
            assert self.process.poll() is None, self.lines()
            return " running: " in self.lines()

        def found():
            assert self.process.poll() is None, self.lines()
            report = self.report()
            hosts = {task["task"]: task["host"] for task in report.get("tasks") or () if task["state"] == "running"}
            return len(hosts) == tasks and hosts

        until(begun, 120, what=self.lines)
        return {task: host.partition(".")[0] for task, host in until(found, 120, 1, self.lines).items()}

    def master(self):
        """Return the host of the application master."""

        def found():
            known = [item for item in self.rig.applications() if item["id"] == self.application]
            return known and known[0].get("amHostHttpAddress", "").partition(".")[0]

        return until(found)

    def wait(self):
        """Wait for the end; return the report."""
        out, _ = self.process.communicate(timeout=280 * PATIENCE)
        assert "Traceback" not in self.lines(), self.lines()
        assert out.strip(), self.lines()
        return json.loads(out)

    def end(self, since, expect=None):
        """Wait for the end; return the outcome and hold the report to `expect`."""
        report = self.wait()
        seen = self.rig.clock()
        message = f"{report['message']} {self.lines()}"
        if expect:
            expect(report)
        application = report["application_id"]
        return Outcome(Reason(report["reason"]), seen - since, (application,), self.rig.left(application), message)


class HostsRig(Rig):
    """A cluster of several hosts, and hands to strike at its network.

    Parameters
    ----------
    cluster : HostsCluster
    user : str, optional
        Whose ticket the clients have, on a secured cluster. Default: none.
    """

    def __init__(self, cluster, user=None):
        self.cluster, self.clients, self.clock = cluster, [], time.monotonic
        self.user = user or cluster.settings.user
        with network_of(cluster.pid("edge")):
            environ = get_environment(cluster, cluster.directory / "edge", user)
        self.environ = {**environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        self.folder, self.stack = cluster.directory / "edge", contextlib.ExitStack()

    def popen(self, *words, **options):
        """Start a program on edge; its output is text."""
        return self.cluster.start("edge", words, env=self.environ, **options)

    @functools.cached_property
    def _fork(self):
        outputs = self.folder / f"forks-{self.user}"
        outputs.mkdir(exist_ok=True)
        start = functools.partial(self.cluster.start, "edge", env=self.environ)
        return self.stack.enter_context(forking(outputs, start))

    def run(self, *words):
        """Run a program on edge to its end; those of Python's ``-c`` share a process that has imported the package."""
        if words[:2] == (sys.executable, "-c"):
            return self._fork(words[2], words[3:], {**self.environ, "HOME": str(self.folder)}, self.folder)
        return self.cluster.run("edge", words, timeout=120 * PATIENCE, env=self.environ)

    def fetch(self, url):
        """Return what edge reads at a URL."""
        code = "import sys, urllib.request as r; print(r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=30).read())"
        return self.run(sys.executable, "-c", code, url).stdout

    def evidence(self, text):
        """Return the last client's lines, and report and logs of all applications that they, or a text, name."""
        text += self.clients[-1].lines() if self.clients else ""
        found = [text]
        for application in sorted({*re.findall(r"application_\d+_\d+", text)}):
            for words in (["status", "--json"], ["logs"], ["logs", "--task", "master"]):
                ran = self.run(*YTF, *words, application)
                found.append(f"--- {' '.join(words)} {application}\n{ran.stdout[-20_000:]}{ran.stderr[-2000:]}")
        return "\n".join(found)

    def submit(self, *words):
        """Return a client that submits and waits."""
        self.clients.append(EdgeClient(self, len(self.clients), words))
        return self.clients[-1]

    def play(self, *words, expect=None):
        """Return the outcome of a whole job."""
        began = self.clock()
        return self.submit(*words).end(began, expect)

    def applications(self):
        """Return all that YARN knows."""
        settings = self.cluster.settings
        url = f"{settings.active_page(settings.resourcemanagers)}/ws/v1/cluster/apps"
        found = health.get_json(settings, url) or {}
        return (found.get("apps") or {}).get("app", [])

    def has_all_copies(self):
        """Return whether each block of HDFS has all its copies, as the NameNode counts them."""
        found = health.query_namenode(self.cluster.settings, "nn", "FSNamesystem")
        return [bean["LowRedundancyBlocks"] + bean["PendingReconstructionBlocks"] for bean in found] == [0]

    def live_datanodes(self):
        """Return how many DataNodes the NameNode takes for alive."""
        found = health.query_namenode(self.cluster.settings, "nn", "FSNamesystemState")
        return sum(bean["NumLiveDataNodes"] for bean in found)

    def query_path(self, path):
        """Return what the active NameNode says of a path; raise its error."""
        settings = self.cluster.settings
        url = f"{settings.active_page(settings.namenodes)}/webhdfs/v1{path}"
        with health.open_page(settings, f"{url}?op=GETFILESTATUS&user.name={settings.superuser}", 10) as answer:
            return json.load(answer)["FileStatus"]

    def restore(self):
        """Undo all that was done to the network, and wait until all nodes are back."""
        settings = self.cluster.settings
        for host in settings.hosts:
            self.cluster.plug(host)
            self.cluster.unblock(host)
            self.cluster.set_names(host, {})
            self.cluster.set_own_name(host, full_name(host))
        until(lambda: health.count_active_nodes(settings) == settings.nodes, 90, what="all nodes are active")

    def close(self):
        """End all processes of the rig."""
        self.end_clients()
        self.stack.close()
        self.__dict__.pop("_fork", None)

    def end_clients(self):
        """End the clients that still run, which kill their jobs."""
        for client in self.clients:
            if client.process.poll() is None:
                client.process.terminate()
                client.process.communicate(timeout=120)

    def _found(self, application):
        state = next((item["state"] for item in self.applications() if item["id"] == application), ENDED[0])
        found = [] if state in ENDED else [f"{application} is {state}"]
        found += [f"process {pid}: {words}" for pid, words in processes_of(application)]
        try:
            self.query_path(f"/user/{self.user}/.skein/{application}")
            found.append(f"the directory of {application}")
        except urllib.error.HTTPError:
            pass
        return found


def restoring(play):
    """Return a row that restores the network behind it."""

    @functools.wraps(play)
    def row(rig):
        rig.end_clients()  # a failed row may have left a job that occupies the nodes
        try:
            return play(rig)
        finally:
            rig.restore()

    return row


def trained_once(report):
    assert len(report["rounds"]) == 1 and all(task["starts"] == 1 for task in report["tasks"]), report


def second_trains_alone(rig, client, name, began):
    """End a job that writes `BEATS` and had a predecessor; hold that the predecessor had ended before."""
    client.running(1)
    release(rig, name)
    outcome = client.end(began, trained_once)
    (_, ended), (begun, _) = (beats for _, beats in sorted(beating(rig, name).items()))
    assert ended < begun, (ended, begun, outcome)
    return outcome


def beating(rig, name):
    """Return the first and the last time at which each application has trained."""
    found = {file.suffix: file.read_text().split() for file in rig.cluster.directory.glob(f"{name}.released.*")}
    return {application: (float(times[0]), float(times[-1])) for application, times in found.items()}


def pass_time(rig, seconds):
    """Wait while a fault lasts."""
    began = rig.clock()
    until(lambda: rig.clock() > began + seconds, seconds + 60)


def releasable(rig, name):
    """Return the options of a job that ends after `release`; all hosts see the file."""
    return ["--env", f"RELEASED={rig.cluster.directory / name}.released"]


def release(rig, name, text=""):
    (rig.cluster.directory / f"{name}.released").write_text(text)


def worker_away_from_master(client):
    """Wait until both workers run; return the host of one that is not on the application master's."""
    hosts = client.running(2)
    return next(host for host in hosts.values() if host != client.master())


def cut_off_until_silent(client, host):
    """Cut the node of a worker off from all others until the status reports its silence."""
    cluster = client.rig.cluster
    cluster.unplug(host)
    silent = until(lambda: [one for one in client.report().get("alerts") or () if one["code"] == "contact"], 60, 2)
    assert re.search(r"silent for \d+ s", silent[0]["text"]), silent
    cluster.plug(host)


def cut_off_until_waiting(client):
    """Cut the client off from all others until it has logged that it waits."""
    cluster, known = client.rig.cluster, client.lines()
    cluster.unplug("edge")
    until(lambda: "still waiting" in client.lines()[len(known) :], 60, what=client.lines)
    cluster.plug("edge")

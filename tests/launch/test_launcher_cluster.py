"""The launcher on real daemons: both ways of submitting, every ending, what is left behind."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urljoin

import pytest

from support.cluster_jobs import job, until_it_runs
from support.hostile import HOSTILE
from support.waiting import until
from support.wire_proxy import Proxy
from tf_yarn_ops.errors import ClusterUnreachable, ResourcesImpossible, SpecInvalid, SubmissionRejected
from tf_yarn_ops.follow.watch import watcher_for
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.job.parts import Acls, Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import MAX_TAGS_USER, JobSpec, TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]


def launcher_on(hadoop, user=None, site=None, **options):
    cluster = discover(hadoop.resourcemanager_url, os.environ, user, site or Site())
    return Launcher(cluster, environ={**os.environ, **hadoop.environ}, **options)


@pytest.fixture
def launcher(minicluster):
    made = launcher_on(minicluster)
    yield made
    made.close()


def directories(launcher):
    files = launcher.session.staging(launcher.cluster.user).filesystem
    return [status.name for status in files.list(launcher.cluster.staging) if status.name.startswith("application_")]


def gone(launcher, application_id):
    """Wait for the directory's end; Skein's own hook may still be at work on it."""
    until(lambda: application_id not in directories(launcher))


@contextlib.contextmanager
def leaving_nothing(launcher):
    before = set(directories(launcher))
    yield
    assert set(directories(launcher)) <= before


@pytest.fixture(scope="module", params=["rest", "skein"])
def way(request):
    return request.param


@pytest.fixture(scope="module")
def by_skein(minicluster):
    """Return a launcher that submits by Skein's Java client."""
    with contextlib.closing(launcher_on(minicluster, submit_with="skein")) as made:
        yield made


@pytest.fixture(scope="module")
def by_rest(minicluster):
    with contextlib.closing(launcher_on(minicluster, submit_with="rest")) as made:
        yield made


@pytest.fixture(scope="module")
def by_way(by_rest, by_skein, way):
    """Return the launcher that submits in one of the two ways."""
    return {"rest": by_rest, "skein": by_skein}[way]


def until_exists(gate):
    """Return a command that goes on until the test lets it end."""
    return f"until [ -e {gate} ]; do sleep 0.1; done"


#: Prints what has arrived in the container, then many lines.
ARRIVED = """\
echo to the error stream >&2
package/tool; python3 train.py
for file in words.txt near/inner.txt far/inner.txt; do echo "$file: $(cat $file)"; done
grep -q fs.defaultFS conf.xml && echo 'conf.xml: by HTTP'
for i in $(seq 5000); do echo line $i; done
"""


@pytest.fixture(scope="module")
def elsewhere(minicluster, by_rest, tmp_path_factory):
    """Return ``files`` and ``archives`` of a job in HDFS and behind HTTP."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "content").mkdir()
    (folder / "content" / "inner.txt").write_text("of an archive")
    packed = Path(shutil.make_archive(str(folder / "zip"), "zip", folder / "content"))
    files = by_rest.session.staging(by_rest.cluster.user).filesystem
    files.makedirs("/data", 0o755)
    files.create("/data/words.txt", b"hello words", 0o644)
    files.create("/data/inner.zip", packed.read_bytes(), 0o644)
    in_hdfs = f"{by_rest.cluster.storage.default}/data"
    return {
        "archives": {"far": f"{in_hdfs}/inner.zip"},
        "files": {"words.txt": f"{in_hdfs}/words.txt", "conf.xml": f"{minicluster.namenode_url}/conf"},
    }


def localised(elsewhere, folder):
    """Return the ``files`` and ``archives`` of a job: local, in HDFS and behind HTTP."""
    (folder / "package").mkdir()
    (folder / "package" / "tool").write_text("#!/bin/sh\necho 'from the tool'\n")
    (folder / "package" / "tool").chmod(0o755)
    (folder / "train #1?.py").write_text("print('train')")
    (folder / "content").mkdir()
    (folder / "content" / "inner.txt").write_text("of an archive")
    local = shutil.make_archive(str(folder / "gztar"), "gztar", folder / "content")
    return {
        "archives": {"near": local} | elsewhere["archives"],
        "files": {"package": str(folder / "package"), "train.py": str(folder / "train #1?.py")} | elsewhere["files"],
    }


async def watch(launcher, good, bad, states):
    """Return what a watcher sees of a job that succeeds, of one that fails and of one that is not there."""
    watcher = watcher_for(launcher.cluster, interval=0.2)
    waits = [watcher.wait(name) for name in [bad, "application_1_0001"]]
    return await asyncio.gather(watcher.wait(good, on_change=lambda report: states.append(report.state)), *waits)


def files_below(files, directory):
    """Yield the path and the permission of each file."""
    for status in files.list(directory):
        path = f"{directory}/{status.name}"
        if status.is_directory:
            yield from files_below(files, path)
        else:
            yield path, status.permission


def yarns_page(log_url):
    """Return the page of a NodeManager with the whole log of a task, to which its list of files leads."""
    with urllib.request.urlopen(log_url, timeout=60) as answer:
        links = re.findall(r'href="([^"]*/worker\.log/)\?start=', answer.read().decode())
    with urllib.request.urlopen(f"{urljoin(log_url, links[0])}?start=0", timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def without_files(minicluster):
    """Return a proxy of the ResourceManager that takes the files from the first application."""

    def edit(method, path, body):
        if (method, path) != ("POST", "/ws/v1/cluster/apps"):
            return body
        proxy.edit = None
        document = json.loads(body)
        document["am-container-spec"]["local-resources"] = {"entry": []}
        return json.dumps(document).encode()

    with Proxy(minicluster.resourcemanager_url) as proxy:
        proxy.edit = edit
        yield proxy


COLD = """\
import json, resource, sys, time
started = time.time()
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.job.spec import JobSpec
spec = JobSpec.from_dict(json.loads(sys.argv[2]))
application_id = Launcher(discover(sys.argv[1])).submit(spec)
seconds = time.time() - started
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"id": application_id, "seconds": seconds, "mib": int(status["VmHWM"].split()[0]) / 1024,
                  "children": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}))
"""


def creates(hadoop, start):
    log = (hadoop.directory / "logs" / "hdfs-audit.log").read_text()
    return [line for line in log.splitlines() if "cmd=create" in line and f"src={start}" in line]


def submit_cold(minicluster, launcher, spec, folder):
    """Submit a job, kill it, and submit it again in a new process; return what was seen of the two."""
    environ = {"PATH": "/nowhere", "HOME": str(folder), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    cache, known = f"{launcher.cluster.staging}/cache", []
    warm = launcher.submit(replace(spec, queue="full"), known.append)
    launcher.kill(warm, "the cache is warm")
    uploaded = len(creates(minicluster, cache))
    ran = subprocess.run(
        [sys.executable, "-c", COLD, minicluster.resourcemanager_url, json.dumps(spec.to_dict())],
        env=environ,
        timeout=60,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    measured = json.loads(ran.stdout)
    return SimpleNamespace(
        warm=warm,
        known=known,
        measured=measured,
        uploaded=uploaded,
        uploaded_then=len(creates(minicluster, cache)),
        own=creates(minicluster, f"{launcher.cluster.staging}/{measured['id']}"),
    )


@pytest.fixture(scope="module")
def ended(minicluster, by_rest, elsewhere, without_files, tmp_path_factory):
    """Run a job that succeeds beside one of another user that fails, whose first application gets no files.

    A process without Java submits the first. Return what was seen of them, by a wait, a watcher and the logs.
    """
    folder = tmp_path_factory.mktemp("ended")
    launcher, seen = launcher_on(minicluster), SimpleNamespace(states=[], watched_states=[], ids=[])
    environ = {**os.environ, "HADOOP_USER_NAME": "ann"}
    by_ann = Launcher(discover(without_files.url, environ, site=Site(staging="/tmp/{user}/.skein")))
    seen.by_ann = by_ann
    command = f"{ARRIVED}{until_exists(folder / 'go')}; echo the end"
    spec = job(command, instances=2, name="digits", tags=["Mine"], priority=2, **localised(elsewhere, folder))
    seen.cold = submit_cold(minicluster, by_rest, spec, folder)
    seen.good = good = seen.cold.measured["id"]

    def submitted_again():
        return {*seen.ids[1:]} & {item["id"] for item in launcher.session.resourcemanager.find()}

    try:
        seen.application = launcher.session.resourcemanager.get(good)
        failing = job(f"{until_exists(folder / 'go')}; echo something is wrong >&2; exit 3")
        with ThreadPoolExecutor(3) as pool:
            try:
                running = pool.submit(by_ann.run, failing, on_reserved=seen.ids.append, timeout=180)
                (seen.bad,) = until(submitted_again, 120, what="a second application")
                waiting = pool.submit(
                    by_rest.wait, good, timeout=120, on_change=lambda report: seen.states.append(report.state)
                )
                watching = pool.submit(asyncio.run, watch(launcher, good, seen.bad, seen.watched_states))
                until_it_runs(launcher, good)
                seen.live = until(lambda: "line 5000" in (text := "".join(launcher.log(good))) and text)
                seen.page = yarns_page(launcher.report(good).tasks[0].log_url)
                seen.live_coordinator = "".join(launcher.log(good, "coordinator"))
                specs = [(launcher, good), (by_ann, seen.bad)]
                seen.specs = [until(lambda one=one, name=name: one.cluster_spec(name), 120) for one, name in specs]
                seen.users = [launcher.session.resourcemanager.get(name)["user"] for name in (good, seen.bad)]
                files = launcher.session.staging(launcher.cluster.user).filesystem
                directory = f"{launcher.cluster.staging}/{good}"
                seen.permission = files.status(directory).permission
                seen.inner = dict(files_below(files, directory))
                until(
                    lambda: "RUNNING" in seen.states and "RUNNING" in seen.watched_states,
                    what="a look at the running job",
                )
            finally:
                (folder / "go").touch()
            seen.report, seen.watched = waiting.result(), watching.result()
            seen.failure = running.result()
        seen.unfit = by_ann.report(seen.ids[0])
        seen.tags = launcher.session.resourcemanager.get(good)["applicationTags"].split(",")
        yield seen
    finally:
        by_ann.close()
        launcher.close()


def check_application(application):
    """Check what YARN knows of a job with a priority."""
    assert int(application["priority"]) == 2
    limit = application["timeouts"]["timeout"]
    assert [(item["type"], item["expiryTime"] != "UNLIMITED") for item in limit] == [("LIFETIME", True)]


def test_a_job_succeeds_is_watched_and_leaves_nothing(by_rest, ended):
    check_application(ended.application)
    report = ended.report
    assert (report.reason, report.final_status, report.exit_code) == (Reason.SUCCEEDED, "SUCCEEDED", 0)
    assert (ended.states[-1], report.name, report.queue) == ("FINISHED", "digits", "default")
    assert "RUNNING" in ended.states
    assert [task.state for task in report.tasks] == ["succeeded", "succeeded"]
    assert 0 <= report.queue_seconds < 240 and report.submitted_at <= report.started_at <= report.finished_at
    # One tag marks a job of ours, and one its verdict.
    assert sorted(tag.partition("-")[0] for tag in ended.tags) == ["mine", "tfy", "tfyv"]
    assert "tfy-job" in ended.tags
    gone(by_rest, ended.good)


def test_a_failure_has_its_reason_and_leaves_nothing(ended):
    report = ended.failure
    assert (report.reason, report.first_failure, report.tasks[0].exit_code) == (Reason.TASK_FAILED, "worker:0", 3)
    assert "something is wrong" in report.tasks[0].log_tail
    gone(ended.by_ann, ended.bad)


def test_a_watcher_sees_jobs_end_and_one_that_is_not_there(by_rest, ended):
    assert [report.reason for report in ended.watched] == [Reason.SUCCEEDED, Reason.TASK_FAILED, Reason.LOST]
    assert "RUNNING" in ended.watched_states and ended.watched_states[-1] == "FINISHED"
    gone(by_rest, ended.good)
    gone(ended.by_ann, ended.bad)


def test_logs_live_and_after_the_end(by_rest, ended):
    live = ended.live
    assert "line 1\n" in live and "LogContents" not in live and "End of LogType" not in live
    assert "the end" not in live
    assert "Listening on port" in ended.live_coordinator
    after = "".join(by_rest.log(ended.good, "worker:0"))
    assert "line 4999\nline 5000\nthe end\n" in after and "LogContents" not in after
    assert "skein" in "".join(by_rest.log(ended.good, "master"))
    with pytest.raises(
        SpecInvalid, match=r"no task 'wroker:0' \(did you mean 'worker:0'\?\); it has worker:0, worker:1, coord"
    ):
        "".join(by_rest.log(ended.good, "wroker:0"))


def test_yarns_web_pages_show_stdout_and_stderr_of_a_task(ended):
    assert "line 1\n" in ended.page and "to the error stream\n" in ended.page


def test_what_is_shared_is_public_and_what_is_secret_is_not(minicluster, ended):
    assert ended.permission == 0o700
    assert set(ended.inner.values()) == {0o600}, ended.inner
    shared = [path for path in minicluster.directory.rglob("skein.jar") if "filecache" in path.parts]
    assert shared and all("usercache" not in path.parts for path in shared)


def test_folders_archives_and_files_in_hdfs_arrive(by_rest, ended):
    for task in ("worker:0", "worker:1"):
        log = "".join(by_rest.log(ended.good, task))
        assert (
            "from the tool\ntrain\nwords.txt: hello words\n"
            "near/inner.txt: of an archive\nfar/inner.txt: of an archive\n"
        ) in log
    gone(by_rest, ended.good)


def test_file_that_hdfs_lacks_is_refused(by_way, way):
    refusal = {
        "rest": (SpecInvalid, "there is no such file on hdfs://"),
        "skein": (SubmissionRejected, "File does not exist: hdfs://"),
    }[way]
    with leaving_nothing(by_way), pytest.raises(refusal[0], match=refusal[1]):
        by_way.submit(job(files={"x": f"{by_way.cluster.storage.default}/data/none"}))


def test_a_file_behind_http_is_localised(by_rest, ended):
    for task in ("worker:0", "worker:1"):
        assert "\nconf.xml: by HTTP\n" in "".join(by_rest.log(ended.good, task))


#: Compares what a task has with what it should have; it runs no shell.
COMPARE = """\
import json, os
files, texts, variables, archives = json.load(open("expected.json"))
found = {name: open(os.path.join(name, "x") if os.path.isdir(name) else name).read() for name in files if os.path.exists(name)}
assert found == files, sorted(set(files.items()) ^ set(found.items()))
left = [name for name in os.listdir() if name not in [*files, *archives] and ("pwned" in name or name.startswith(".ytf.link"))]
assert not left, left
found = [os.environ.get("T%d" % number) for number in range(len(texts))]
assert found == texts, (found, texts)
assert {os.environ.get(name) for name in variables} == {"set"}, variables
assert "fs.defaultFS" in open("conf.xml").read()
broken = [name for name in archives if not os.path.exists(os.path.join(name, "inner.txt"))]
assert not broken, broken
"""


def taken(make):
    """Return the texts of the table that a field takes; each other one is refused before anything is submitted."""
    found = []
    for text in HOSTILE:
        try:
            make(text)
            found.append(text)
        except SpecInvalid as error:
            assert error.faults, text
    return found


def test_no_shell_reads_a_text_of_the_user(by_way, way, elsewhere, tmp_path, monkeypatch):
    """The name of a file was run on the node by YARN's script, or ended as CONTAINER_LOST."""
    monkeypatch.chdir(tmp_path)
    expected = {name: f"content of {number}" for number, name in enumerate(HOSTILE)}
    expected["train $(touch pwned)_00:15.py"] = COMPARE
    for name, content in expected.items():
        Path(name).write_text(content, newline="")
    folders = {f"h:{text}": "in a folder" for text in ("$(touch pwned)", '"', "{{(touch pwned)}}")}
    for name, content in folders.items():
        Path(name).mkdir()
        Path(name, "x").write_text(content)
    for name in ("equal", "same"):  # files of one name and content
        Path(name).mkdir()
        Path(name, "data").write_text(name[:0])
        expected[name] = ""
    expected["words.txt"] = "hello words"
    with tarfile.open("pack.tgz", "w:gz") as pack:
        pack.add("equal/data", "inner.txt")
    archives = [f"z{text}" for text in taken(lambda text: job(archives={f"z{text}": "/x.tgz"}))]
    variables = taken(lambda text: job(env={text: "set"}))
    users, groups = taken(lambda text: Acls(view_users=[text])), taken(lambda text: Acls(view_groups=[text]))
    assert len(archives) > 60 < len(users) == len(groups) and all(text.isidentifier() for text in variables)
    Path("expected.json").write_text(json.dumps([expected | folders, HOSTILE, variables, [*archives, "far"]]))
    run_by_shell = f"$(touch {tmp_path}/pwned) `touch {tmp_path}/pwned` {{{{(touch {tmp_path}/pwned)}}}} \" ' "
    names = [*HOSTILE, *folders, "expected.json"]
    files = {name: f"./{name}" for name in names} | {name: f"./{name}/data" for name in ("equal", "same")}
    spec = job(
        'python "$DTF_TASK_SCRIPT"',
        name=run_by_shell,
        tags=["$(touch pwned)", "`touch pwned`", '"', "{{(touch pwned)}}"],
        script="train $(touch pwned)_00:15.py",
        priority=2,
        files=files | elsewhere["files"],
        archives=dict.fromkeys(archives, "./pack.tgz") | elsewhere["archives"],
        env={**{f"T{number}": text for number, text in enumerate(HOSTILE)}, **dict.fromkeys(variables, "set")},
        input=run_by_shell,
        output=f"/none/{run_by_shell}",
        acls=Acls(view_users=users, view_groups=groups, modify_users=users, modify_groups=groups),
    )
    application_id = by_way.submit(spec)
    application = by_way.session.resourcemanager.get(application_id)
    report = by_way.wait(application_id, timeout=180)
    assert report.reason is Reason.SUCCEEDED, report
    assert report.name == run_by_shell and not Path("pwned").exists()
    check_application(application)
    # Skein's first tag is unique: it finds the application, should the client end first.
    assert ("tfy-job" in application["applicationTags"].split(",")) is (way == "rest")
    gone(by_way, application_id)


def test_hostile_queue_label_tag_and_image_are_refused(launcher):
    """YARN refuses queue and label, with any tag; no image of the table but a plain name is taken."""
    tags = taken(lambda text: job(tags=[text]))
    for number, text in enumerate(HOSTILE):
        tagged = {"tags": tags[number : number + MAX_TAGS_USER]}
        for field in ({"queue": text, **tagged}, {"node_label": text, **tagged}):
            with pytest.raises(SubmissionRejected):
                launcher.submit(job(**field))
    images = taken(lambda text: JobSpec(command="true", tasks={"worker": 1}, environment=f"docker://{text}"))
    assert all(re.fullmatch(r"[a-z0-9:]+", image) for image in images), images


@pytest.fixture(scope="module")
def killed(by_rest, by_skein):
    """Fill the cluster with a job of Skein's that has ACLs, let two jobs wait, and kill; return what was seen of the three."""
    seen = SimpleNamespace()
    filling, waiting = (Identity(f"{name} {time.time()}") for name in ("filling", "waiting"))
    spec = job(
        "sleep 600",
        am_memory=12000,
        am_vcores=2,
        tasks={"worker": TaskSpec(memory=320, vcores=3)},
        acls=Acls(view_users=["bob"], modify_users=["eve"]),
    )
    seen.late = late = by_skein.ensure(spec, filling).application_id
    try:
        until_it_runs(by_rest, late)
        seen.running = by_rest.report(late)
        seen.in_yarn = by_rest.session.resourcemanager.get(late)
        seen.impatient = by_rest.submit(job("true", am_memory=12000, deadlines=Deadlines(queue=3)))
        seen.queue_deadline = by_rest.wait(seen.impatient, timeout=60)
        seen.early = by_rest.ensure(job("sleep 600", am_memory=12000), waiting).application_id
        seen.attached = {
            name: [one.ensure(job("sleep 600"), identity).application_id for one in (by_skein, by_rest)]
            for name, identity in (("by Skein", filling), ("by REST", waiting))
        }
        seen.accepted = by_rest.session.resourcemanager.get(seen.early)["state"]
        seen.kill_accepted = by_rest.kill(seen.early, "not wanted")
        seen.cluster_spec = by_skein.cluster_spec(late)
        seen.kill_running = by_skein.kill(late, "not wanted either")
        seen.kill_again = by_skein.kill(late, "again")
        yield seen
    finally:
        if by_rest.report(late).reason is None:
            by_rest.kill(late, "the tests are over")


def test_a_job_with_acls_is_taken_and_runs(killed):
    """By REST: test_no_shell_reads_a_text_of_the_user."""
    assert [task.state for task in killed.running.tasks] == ["running"]


def test_skein_requests_the_resources_of_master_and_tasks(killed):
    """By REST: test_jobs_cluster.py."""
    assert (killed.in_yarn["allocatedMB"], killed.in_yarn["allocatedVCores"]) == (12032 + 320, 2 + 3)


def test_killed_while_accepted_and_killed_while_running_leave_nothing(by_rest, killed):
    report = killed.kill_accepted
    assert killed.accepted == "ACCEPTED"
    assert (report.state, report.reason, report.message) == ("KILLED", Reason.KILLED, "not wanted")
    assert killed.cluster_spec["worker"]
    report = killed.kill_running
    assert (report.reason, report.message, report.tasks[0].task) == (Reason.KILLED, "not wanted either", "worker:0")
    assert killed.kill_again.message == "not wanted either"
    for application_id in (killed.early, killed.late):
        gone(by_rest, application_id)


def test_the_queue_deadline_on_a_full_cluster(by_skein, killed):
    report = killed.queue_deadline
    assert report.reason is Reason.QUEUE_TIMEOUT
    assert "longer than the 3 s of the queue deadline" in report.message
    for application_id in (killed.late, killed.impatient):
        gone(by_skein, application_id)


def test_an_identity_submitted_with_skein_is_attached_by_its_tags(by_rest, killed):
    """One submitted by REST is, too; each by both ways."""
    assert killed.attached == {"by Skein": [killed.late] * 2, "by REST": [killed.early] * 2}
    gone(by_rest, killed.late)


def test_a_queue_that_is_not_there_is_refused(by_way, way):
    with leaving_nothing(by_way), pytest.raises(SubmissionRejected, match="nope") as raised:
        by_way.submit(job(queue="nope"))
    if way == "rest":
        assert "the cluster has default, full, low" in str(raised.value)


def test_master_that_yarn_starts_without_its_files_is_submitted_again(ended):
    assert (ended.unfit.reason, len(ended.ids), ended.failure.reason) == (Reason.AM_FAILED, 2, Reason.TASK_FAILED)
    assert ended.unfit.message == (
        "YARN started the application master without its files, so nothing has run (exitCode: 86 of its container)."
    )


def test_more_than_the_maximum_is_refused_before_submission(launcher):
    with leaving_nothing(launcher), pytest.raises(ResourcesImpossible, match="worker asks for 999999 MiB"):
        launcher.submit(job(tasks={"worker": TaskSpec(memory=999999)}))
    # Until scheduling-wait-ms after its start a ResourceManager names 2^63-1 GPUs: a warning, and the job waits.
    until(lambda: launcher.session.resourcemanager.new_application()[1].gpus == 2, 60, 0.1)
    with leaving_nothing(launcher), pytest.raises(ResourcesImpossible, match="3 GPUs"):
        launcher.submit(job(tasks={"worker": TaskSpec(memory=256, gpus=3)}))


def test_user_without_a_home_gets_advice(minicluster):
    hadoop = launcher_on(minicluster)
    cluster = discover(minicluster.resourcemanager_url, {**os.environ, "HADOOP_USER_NAME": "nobody_here"})
    message = r"Permission denied.*staging directory.*ask the administrator"
    with leaving_nothing(hadoop), pytest.raises(SubmissionRejected, match=message):
        Launcher(cluster).submit(job())


def test_somebody_elses_name_is_not_taken_without_proxyuser_settings(minicluster):
    with pytest.raises(SubmissionRejected, match=r"not allowed to impersonate|takes us for"):
        launcher_on(minicluster, user="bob").submit(job())


def test_unsubmitted_id_is_killed_and_unknown_id_is_lost(launcher):
    application_id, _ = launcher.session.resourcemanager.new_application()
    assert launcher.kill(application_id, "no more").reason is Reason.KILLED
    assert launcher.report(application_id).reason is Reason.LOST
    assert launcher.wait("application_1_0001", poll_interval=0.1).reason is Reason.LOST


def test_namenode_is_refused_as_a_resourcemanager(minicluster):
    with pytest.raises(ClusterUnreachable, match="is no YARN ResourceManager"):
        discover(minicluster.namenode_url)


def test_a_cold_process_needs_no_java_no_hadoop_and_little_memory(ended):
    measured = ended.cold.measured
    assert measured["mib"] <= 80 and measured["children"] == 0, measured
    assert ended.report.reason is Reason.SUCCEEDED


def test_a_second_submission_uploads_no_cached_file(ended):
    assert ended.cold.uploaded_then == ended.cold.uploaded >= 3
    assert ended.cold.known == [ended.cold.warm] and ended.cold.own
    assert ended.report.reason is Reason.SUCCEEDED


def test_webhdfs_never_overwrites(minicluster, launcher):
    cluster = launcher.cluster
    files = WebHdfs(cluster.storage.webhdfs, cluster.authentication, 10.0)
    files.makedirs("/tmp/once", 0o700)
    assert files.create("/tmp/once/a", b"1", 0o600) and not files.create("/tmp/once/a", b"2", 0o600)
    assert files.create("/tmp/once/b", b"3", 0o600) and not files.rename("/tmp/once/b", "/tmp/once/a")
    assert files.read("/tmp/once/a") == b"1"
    assert files.rename("/tmp/once/b", "/tmp/once/c") and files.read("/tmp/once/b") is None
    assert sorted(status.name for status in files.list("/tmp/once")) == ["a", "c"]
    assert files.delete("/tmp/once") and not files.delete("/tmp/once")


def test_jobs_of_two_users_run_at_the_same_time(ended):
    """Neither ports nor folders are fixed: every task of both jobs has an address of its own."""
    addresses = [address for found in ended.specs for hosts in found.values() for address in hosts]
    assert len(set(addresses)) == 3 and ended.users == [ended.report.user, "ann"] and ended.report.user != "ann"
    assert (ended.report.reason, ended.failure.reason) == (Reason.SUCCEEDED, Reason.TASK_FAILED)


@pytest.fixture(scope="module")
def halves(minicluster, tmp_path_factory):
    """Run two jobs that each need 60 percent of the cluster; return their reports, and what a waiting one has reported."""
    ids, gate, seen = [], tmp_path_factory.mktemp("halves") / "go", SimpleNamespace()
    spec = job(
        until_exists(gate),
        tasks={"worker": TaskSpec(instances=2, memory=4500)},
        deadlines=Deadlines(allocation=8, stop_grace=1),  # a report names what is missing after 5 s
        restart=RestartPolicy(allocation_retries=20),
    )

    def go(number):
        identity = Identity(f"half {number} {time.time()}")
        return launcher_on(minicluster).run(spec, identity, on_reserved=ids.append, timeout=240)

    def waits():
        """Return the message of the later job when it lacks a container."""
        messages = (launcher.report(one).message for one in ids[-2:])
        return next((text for text in messages if "Missing 1 of 2" in text), None)

    with contextlib.closing(launcher_on(minicluster)) as launcher, ThreadPoolExecutor(2) as pool:
        reports = pool.map(go, range(2))
        try:
            seen.waiting = until(waits, 120)
            until(lambda: len(set(ids)) > 2, 120)  # one has given its part back and is queued again
        finally:
            gate.touch()
        seen.reports = list(reports)
    return seen


def test_two_jobs_that_each_need_60_percent_of_the_cluster_both_finish(halves):
    """The later one holds a part and waits for the rest, gives it back, and comes again at another time."""
    assert [report.reason for report in halves.reports] == [Reason.SUCCEEDED] * 2


def test_report_of_a_waiting_job_names_missing_containers(halves):
    found = re.search(
        r"Missing 1 of 2 containers: 1 of 4544 MiB; free in the cluster: (\d+) MiB, on one node at most (\d+) MiB\.$",
        halves.waiting,
    )
    assert found and int(found[1]) < 4500, halves.waiting

"""Every way in which a training of Oozie ends, on a real Oozie 5.2.1 and a real Hadoop: status, outputs, what is left.

The rows run side by side. Behind them servers die, while two of their trainings go on.
"""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import javaproperties
import pytest

from support.airflow_rows import FAILED, KILLED, SUCCEEDED, in_turn, until_there
from support.airflow_site import environments
from support.hadoop import HadoopCluster
from support.oozie_example import retrain_twice
from support.oozie_jobs import CLOSED, PROPERTIES, WORKFLOW, Run, Site, stamp
from support.oozie_site import OozieServer
from support.waiting import until
from support.wire_proxy import Proxy
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, parse_diagnostics

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]
#: Rows at a time.
AT_ONCE = 4


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oozie")
    with (
        HadoopCluster(folder / "hadoop", properties=PROPERTIES) as hadoop,
        OozieServer(folder / "server", hadoop) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("YTF_SITE", "")
        yield Site(server, folder)


def row(body):
    """Make a test of a row that runs beside the others."""

    def test(under_way):
        under_way[body.__name__].result()

    test.__name__, test.__doc__, test.body = body.__name__, body.__doc__, body
    return test


@pytest.fixture(scope="module")
def under_way(request, site):
    """Begin all selected rows, and those whose trainings `held` needs; return the future of each row by name."""
    items = [item for item in request.session.items if item.module is request.module]
    wanted = [item.function for item in items if hasattr(item.function, "body")]
    if any("held" in item.fixturenames for item in items):
        wanted += HELD
    if any("deployed" in item.fixturenames for item in items):
        wanted.append(test_refused_deployment_leaves_a_running_coordinator_alone)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {test.__name__: pool.submit(test.body, site) for test in dict.fromkeys(wanted)}


def console(site, workflow):
    """Return what Oozie's console says of the node that ended a workflow."""
    return site.server.action(workflow, "failed")["errorMessage"]


@row
def test_late_start_is_found_and_its_repetition_refused(site):
    """Oozie begins the workflow, and answers later than the client waits. Its training is `held`."""
    folder = site.packed("again", {"command": until_there(site.folder / "end")})
    with Proxy(site.server.url) as slow:
        slow.stop_at = lambda when, method, path, said: (when, said.get("action")) == ("after", "start")
        workflow, lines = site.ytf("run", "app", "--oozie", f"{slow.url}/oozie", folder=folder)
    assert f"Oozie has not answered the start of again, and has started it: {workflow}\n" in lines, lines
    assert slow.held.is_set() and "no Oozie server answers" not in lines, lines
    # The start that never arrived: tests/oozie/test_commands.py holds what follows from this answer.
    assert site.server.ask("GET", "jobs", params={"jobtype": "wf", "external-id": "nobody"}) == {"id": ""}
    assert f"{workflow} runs this application" in site.ytf("run", "app", folder=folder, code=2)[1]
    run = Run(site, "again", workflow)
    run.training()
    return run


@row
def test_console_says_why_when_the_node_has_no_interpreter(site):
    folder = site.packed("bare", {"command": "true"}, "--python", "/nowhere/python")
    workflow = site.ytf("run", "app", folder=folder)[0]
    Run(site, "bare", workflow).wait("KILLED")
    assert "has no interpreter '/nowhere/python'" in console(site, workflow)


@row
def test_kill_between_tries_of_retry_max_ends_what_waits_in_a_queue(site):
    """Oozie then has the outputs of the first try where it expects ids of child applications."""
    run = site.run("queued", queue=CLOSED, retry=' retry-max="1" retry-interval="0"')
    first = queued(site, run)
    site.yarn.kill(first)
    second = queued(site, run, first)
    assert run.action()["userRetryCount"] == 1
    run.kill()
    run.wait("KILLED")
    killed(site, run, first, second)


@row
def test_example_retrains_the_earlier_model_and_promotes_by_metric(site):
    """Packed by one command; the launcher's interpreter has no package, so the PEX file brings it."""
    retrain_twice(site.server, site.folder / "example")


@row
def test_listed_jobs_train_for_a_nominal_time_and_only_failed_ones_again(site):
    """In their order. Another coordinator waits for what the last of them commits, reads it whole, and runs again."""
    over, slow, end, order, reads = (
        site.folder / f"nightly-{name}" for name in ("over", "slow-trains", "end", "order", "reads")
    )
    time_of_run = time.gmtime(site.began)
    when, data = (time.strftime(form, time_of_run) for form in ("%Y%m%d%H%M", "/data/nightly/%Y-%m-%d-%H-%M"))
    times = ("--frequency", "1m", "--start", stamp(site.began), "--end", stamp(site.began + 60))
    models = f"{site.filesystem}/models/whole-"

    def trains(name, needs=(), first="true", **job):
        once = in_turn(site.folder / f"nightly-{name}", first, "true")
        command = f"{once} && echo {name} ${{nominalStamp}} ${{clicks}} >> {order}"
        return {"name": name, "job": {"command": command, **job}, "needs": [*needs]}

    writes = f'cd "$DTF_OUTPUT_PATH"; echo half > one; {until_there(end)}; echo $YTF_APPLICATION_ID > two'
    output = {"output": f"{models}${{nominalStamp}}", "commit": "new", "mirror": "all"}
    nightly = site.packed("nightly", [
        trains("features"),
        trains("wide", ["features"], f"{until_there(over)}; exit 3"),
        trains("slow", ["features"], f"touch {slow}; {until_there(site.folder / 'never')}"),
        trains("pick", ["wide", "slow"], writes, **output)],
        *times, "--data", "clicks=/data/nightly/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}")  # fmt: skip
    second = {"command": f'echo read >> {reads}; cd "$DTF_INPUT_PATH"; '
              'echo "{\\"made_by\\": \\"$(cat two)\\", \\"files\\": \\"$(echo *)\\"}" > $YTF_RESULT_FILE',
              "input": "${dataIn}", "mirror_input": "1 MiB"}  # fmt: skip
    waits = site.packed(
        "second",
        second,
        *times,
        "--sla-end",
        "3h",
        "--data",
        models + "${YEAR}${MONTH}${DAY}${HOUR}${MINUTE}",
        "--output-data",
        "/models/second-${YEAR}${MONTH}${DAY}${HOUR}${MINUTE}",
    )
    site.write(f"{data}/_SUCCESS", "")
    waiting, coordinator = (site.ytf("run", "app", folder=folder)[0] for folder in (waits, nightly))

    def workflow(of):
        return next((one["externalId"] for one in site.server.info(of)["actions"]), None)

    run = Run(site, "nightly", until(lambda: workflow(coordinator), WORKFLOW, 0.5))
    until(lambda: slow.exists() and len(site.yarn.ids(run)) == 3, WORKFLOW, 0.5)
    over.touch()
    run.wait("KILLED")
    until(lambda: not site.yarn.live(run) and not alive(run), WORKFLOW)
    [failed] = [one for one in site.yarn.ids(run) if site.yarn.ending(one) == FAILED]
    assert [run.action(name)["status"] for name in ("features", "wide", "slow")] == ["OK", "ERROR", "KILLED"]
    why, wide = console(site, run.workflow), run.action("wide")
    assert why.startswith(f"wide: TASK_FAILED {failed} worker:0 "), why
    assert why.endswith(f"; yarn logs -applicationId {wide['externalId']}"), why
    assert wide["transition"] == "failed"
    site.server.change(run.workflow, "rerun", properties={"oozie.wf.rerun.failnodes": "true"})

    whole = f"/models/whole-{when}"

    def working():
        return [one.name for one in site.files.list("/models") if one.name.startswith(f"_{whole[8:]}.work-")]

    def status():
        return [(one["status"], one["missingDependencies"]) for one in site.server.info(waiting)["actions"]]

    until(lambda: working() and site.files.list(f"/models/{working()[0]}"), WORKFLOW, 0.5)
    until(status, WORKFLOW, 0.5)
    assert status() == [("WAITING", f"{site.filesystem}{whole}/_SUCCESS")] and not site.files.status(whole)
    end.touch()
    run.wait("SUCCEEDED")
    features, *again, pick = order.read_text().splitlines()
    trained = [f"{name} {when} {site.filesystem}{data}" for name in ("features", "slow", "wide", "pick")]
    assert [features, *sorted(again), pick] == trained
    assert sorted(site.yarn.ending(one) for one in site.yarn.ids(run)) == [FAILED, *[SUCCEEDED] * 4, KILLED]

    site.server.wait(waiting, "SUCCEEDED", seconds=WORKFLOW)
    made, read = run.outputs("pick"), Run(site, "second", workflow(waiting)).outputs()
    assert (made["output_path"], made["reason"]) == (f"{site.filesystem}{whole}", "SUCCEEDED")
    assert (read["metric.made_by"], read["metric.files"]) == (made["application_id"], "_SUCCESS one two")
    asked = {"timezone": "GMT", "filter": f"parent_id={waiting}"}
    until(
        lambda: [one["slaStatus"] for one in site.server.ask("GET", "sla", params=asked)["slaSummaryList"]] == ["MET"],
        WORKFLOW,
        1,
    )

    def rerun(nocleanup):
        options = {"type": "action", "scope": "1", "refresh": "true", "nocleanup": nocleanup}
        site.server.change(waiting, "coord-rerun", **options)

    # A rerun deletes the output data first, unless it runs with -nocleanup.
    kept = f"/models/second-{when}/model"
    site.write(kept, "")
    rerun("true")
    until(lambda: reads.read_text() == "read\n" * 2, WORKFLOW, 0.5)
    site.server.wait(waiting, "SUCCEEDED", seconds=WORKFLOW)
    assert site.files.status(kept)
    site.files.delete(f"{whole}/_SUCCESS")  # so that nothing trains
    rerun("false")
    until(lambda: not site.files.status(kept), WORKFLOW, 0.5)
    site.server.change(waiting, "kill")
    site.yarn.settled(Run(site, "second", waiting), SUCCEEDED, SUCCEEDED)


ODD = 'it\'s "5" = a:b\nnext \\u00zz ${wf:id()} <tag> & \\'
DEPLOYED = """<workflow-app xmlns="uri:oozie:workflow:1.0" name="deployed">
  <start to="train"/>
  <action name="train"><shell xmlns="uri:oozie:shell-action:1.0"/><ok to="judge"/><error to="judge"/></action>
  <decision name="judge"><switch>
    <case to="told">${wf:actionData('train')['status'] eq 'FAILED' and wf:actionData('train')['reason'] eq 'TASK_FAILED'}</case>
    <case to="promote">${wf:actionData('train')['metric.accuracy'] ge 0.9}</case>
    <default to="failed"/>
  </switch></decision>
  <action name="told"><fs><mkdir path="FILESYSTEM/told"/></fs><ok to="end"/><error to="failed"/></action>
  <action name="promote"><fs>
    <mkdir path="FILESYSTEM/models/${wf:actionData('train')['metric.accuracy']}/${wf:actionData('train')['application_id']}"/>
  </fs><ok to="end"/><error to="failed"/></action>
  <kill name="failed"><message>it failed</message></kill>
  <end name="end"/>
</workflow-app>"""


@row
def test_refused_deployment_leaves_a_running_coordinator_alone(site):
    """Another coordinator of the application trains for the same time. The training that begins first fails."""
    options = (
        "--frequency",
        "1m",
        "--start",
        stamp(site.began),
        "--end",
        stamp(site.began + 60),
        "--app-path",
        "/apps/deployed",
        "--data",
        "/data/deployed/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}",
    )
    flow = DEPLOYED.replace("FILESYSTEM", site.filesystem)
    (site.folder / "result").write_text(json.dumps({"accuracy": 0.93, "odd": ODD, "large": "x" * 3000}))
    command = f"mkdir {site.folder}/began && exit 3; cp {site.folder}/result $YTF_RESULT_FILE"
    folder = site.packed("deployed", {"command": command}, *options, flow=flow)
    with ThreadPoolExecutor(2) as pair:
        started = pair.map(lambda _: site.ytf("run", "app", folder=folder, code=None)[0], range(2))
        (coordinator,) = filter(None, started)
    before = site.listing("/apps/deployed")
    bad = site.packed("faulty", {"command": "true"}, *options, flow=flow.replace("it failed", "${nowhere}"))
    refused = site.ytf("run", "app", folder=bad, code=3)[1]
    assert "E0803: IO error, variable [nowhere] cannot be resolved" in refused and "queue" not in refused
    assert (
        "no Oozie server answers"
        in site.ytf("run", "app", "--oozie", "http://127.0.0.1:1/oozie", folder=bad, code=4)[1]
    )
    assert (
        f"{coordinator} is a coordinator 'deployed' for the same time"
        in site.ytf("run", "app", folder=folder, code=2)[1]
    )
    assert site.listing("/apps/deployed") == before
    other, _ = site.ytf("run", "app", "--again", folder=folder)
    site.write(time.strftime("/data/deployed/%Y-%m-%d-%H-%M/_SUCCESS", time.gmtime(site.began)), "")
    ended = [site.server.wait(one, "SUCCEEDED", seconds=WORKFLOW)["actions"][0] for one in (coordinator, other)]
    trained = site.yarn.gone(Run(site, "deployed", coordinator))
    assert sorted((one["state"], one["finalStatus"]) for one in trained) == [FAILED, SUCCEEDED]
    runs = [Run(site, "deployed", action["externalId"]) for action in ended]
    assert sorted(run.outputs()["application_id"] for run in runs) == [one["id"] for one in trained]
    return sorted(runs, key=lambda run: run.action()["status"])


@pytest.fixture
def deployed(under_way):
    """Return the run of the deployed application whose training has failed, and that of the other one."""
    return under_way[test_refused_deployment_leaves_a_running_coordinator_alone.__name__].result()


@pytest.mark.door
def test_next_action_reads_the_outputs_and_a_branch_the_metric(site, deployed):
    """A decision reads those of what has failed, too."""
    failed, run = deployed
    outputs = failed.outputs()
    assert (outputs["exit_code"], outputs["hadoopJobs"]) == ("1", outputs["application_id"])
    assert site.files.status("/told")
    outputs = run.outputs()
    assert javaproperties.loads(run.action()["data"]) == {
        name: value for name, value in outputs.items() if name != "hadoopJobs"
    }
    assert (outputs["status"], outputs["reason"]) == ("SUCCEEDED", "SUCCEEDED")
    assert outputs["metric.odd"] == 'it\'s "5" = a:b next _u00zz _{wf:id()} _tag_ _ _'
    assert outputs["metric.accuracy"] == "0.93" and outputs["left_out"] == "1"
    assert site.files.status(f"/models/0.93/{outputs['application_id']}"), run.log()
    report = JobReport.from_dict(json.loads(site.files.read(outputs["report_path"].removeprefix(site.filesystem))))
    assert report.metrics["odd"] == ODD and len(report.metrics["large"]) == 3000


@row
def test_a_kill_ends_what_is_being_submitted(site):
    run = site.run("submitting", until_there(site.folder / "never"))
    run.action_process()
    run.kill()
    run.wait("KILLED")
    until(lambda: not site.yarn.live(run) and not alive(run), WORKFLOW)
    assert len(site.yarn.applications(run)) <= 1


@row
def test_killing_the_launchers_application_ends_what_waits(site):
    run = site.run("launcher", queue=CLOSED)
    training = queued(site, run)
    site.yarn.kill(run.action()["externalId"])
    run.wait("KILLED")
    killed(site, run, training)


def kill_jvm(run, attempt=1):
    """Send SIGKILL to the launcher's JVM alone, as a node's OOM killer does. YARN then sends SIGTERM to the action."""
    run.launcher_processes(attempt)[0].kill()


def kill_jvm_and_action(run, attempt=1):
    jvm, action = run.launcher_processes(attempt)
    jvm.suspend()  # It must not see the end of the action, nor the action that of the JVM.
    action.kill()
    jvm.kill()


@row
def test_rerun_supersedes_the_orphan_and_its_next_attempts_attach(site):
    """After a kill of the launcher's JVM alone, and of the JVM and the action. What trains last is `held`."""
    site.give_home("alice")
    marker, never, over = (site.folder / name for name in ("attached", "never", "over"))
    run = site.run("attached", in_turn(marker, until_there(never), until_there(over)), user="alice", attempts=1)
    orphan = run.training()
    kill_jvm_and_action(run)
    run.wait("KILLED")
    assert site.yarn.live(run) == [orphan]
    run.rerun(attempts=4)
    until(lambda: site.yarn.ending(orphan) == KILLED, WORKFLOW, 0.5)
    assert parse_diagnostics(site.yarn.report(orphan)["diagnostics"], orphan)[0].reason is Reason.SUPERSEDED
    training = run.training()
    for attempt, lose in (1, kill_jvm), (2, kill_jvm_and_action):
        lose(run, attempt)
        run.follows(attempt + 1, training)
    return run


#: The rows whose trainings go on behind them.
HELD = (
    test_rerun_supersedes_the_orphan_and_its_next_attempts_attach,
    test_late_start_is_found_and_its_repetition_refused,
)


@pytest.fixture(scope="module")
def held(site, under_way):
    """Return two runs whose last trainings go on until a file is there; the other rows are over."""
    for future in under_way.values():
        future.exception()
    runs = SimpleNamespace(over=site.folder / "over", end=site.folder / "end")
    runs.one, runs.other = (under_way[test.__name__].result() for test in HELD)
    return runs


@pytest.fixture(scope="module")
def restarted(site, held):
    """Stop Oozie, let one training end, restart the ResourceManager, start Oozie, and let the other training end."""
    launcher = held.other.action()["externalId"]
    site.server.stop()
    held.end.touch()
    until(lambda: site.yarn.report(launcher)["state"] == "FINISHED", WORKFLOW, 0.5)
    site.hadoop.stop_daemon("rm", signal.SIGKILL)
    site.hadoop.start_daemon("rm")
    site.server.start()
    held.over.touch()
    return held


def test_a_restart_of_yarn_and_of_oozie_is_survived(site, restarted):
    """By a training of the workflow's user."""
    restarted.one.wait("SUCCEEDED")
    _, training = site.yarn.settled(restarted.one, KILLED, SUCCEEDED)
    outputs = restarted.one.outputs()
    assert outputs["application_id"] == training
    report = site.files.status(outputs["report_path"].removeprefix(site.filesystem))
    assert (site.yarn.report(training)["user"], report.owner) == ("alice", "alice")


def test_end_while_oozie_is_down_is_reported_when_it_is_back(site, restarted):
    restarted.other.wait("SUCCEEDED")
    (training,) = site.yarn.settled(restarted.other, SUCCEEDED)
    assert restarted.other.outputs()["application_id"] == training


def queued(site, run, *before):
    """Wait until the action's training waits in its queue, behind those of earlier tries; return its application.

    It costs no JVM, and is killed as one that trains.
    """

    def accepted():
        return [item["id"] for item in site.yarn.applications(run) if item["state"] == "ACCEPTED"]

    return until(lambda: [*filter(lambda found: found not in before, accepted())], WORKFLOW, 0.5)[0]


def killed(site, run, *applications):
    """Assert that these were killed. The next submission deletes their directories: the action had no time for that."""
    until(lambda: not site.yarn.live(run) and not alive(run), WORKFLOW)
    assert [(one["id"], one["state"], one["finalStatus"]) for one in site.yarn.applications(run)] == [
        (one, *KILLED) for one in applications
    ]


def alive(run):
    """Return the pids of the programs of the action."""
    wanted = f"YTF_OOZIE_workflowId={run.workflow}".encode()
    return [pid for pid, variables in environments() if wanted in variables]

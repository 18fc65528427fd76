"""status.json of a job as real processes: the timeline through a restart, usage, metrics, the end of a log."""

import asyncio
import json
import os
import re
import urllib.request
from pathlib import Path

import jsonschema
import pytest

from support.appmaster import AppMaster
from support.fake_yarn import application, verdict_text
from support.runtime_jobs import job, task
from support.waiting import until
from support.wire import Wire, coordinator_of, exited, registration, sample
from support.wire import job as wire_job
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, yarn_times
from tf_yarn_ops.runtime.master.containers import ContainerEnd, LostContainer
from tf_yarn_ops.runtime.master.lifecycle import Verdict
from tf_yarn_ops.runtime.page.page import render_page
from tf_yarn_ops.submit.application import build_runtime_job

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "status.schema.json").read_text())
#: Writes a metric, and fails once as worker 1.
TRAIN = """\
echo '{"step": 1, "loss": 0.5}' >> $YTF_METRICS_FILE
echo "the token is $API_TOKEN"
[ -e again ] || [ $TASK_INDEX = 0 ] || { touch again; exit 3; }
until [ -e go ]; do sleep 0.05; done
printf '{"step": 2, "loss": 0.25}' >> $YTF_METRICS_FILE"""


def ask(am, name):
    with urllib.request.urlopen(f"{am.pages['ytf']}/{name}", timeout=60) as answer:
        return answer.read().decode()


def test_page_shows_restart_usage_metrics_and_log_of_a_job(tmp_path, browsing):
    spec = job(
        TRAIN,
        ps=False,
        restart=RestartPolicy("task", backoff=0),
        env={"API_TOKEN": "letmein-1234"},
        name="<script>alert(1)</script>",
        tasks={"worker": TaskSpec(instances=2, memory=2048, vcores=2)},
    )
    with AppMaster(tmp_path / "job", spec) as am:
        until(lambda: "ytf" in am.pages, 60)
        document = until(
            lambda: (
                (found := json.loads(ask(am, "status.json")))
                and len(found["series"]) == 2
                and found["tasks"][1]["starts"] == 2
                and found
            ),
            60,
            what="the sample of both tasks",
        )
        jsonschema.validate(document, SCHEMA)
        assert document["waiting"] is None and document["sentence"] == "The job trains: 2 of 2 tasks run."
        events = document["tasks"][1]["events"]
        assert [event["kind"] for event in events] == [
            "requested",
            "allocated",
            "registered",
            "running",
            "failed",
            "running",
        ]
        assert events[4]["exit_code"] == 3 and "failed with exit code 3" in events[5]["cause"]
        assert [event["at"] for event in events] == sorted(event["at"] for event in events)
        worker = document["tasks"][0]
        assert worker["given"] == {"memory_mib": 2048, "vcores": 2, "gpus": 0} and worker["usage"]["memory_mib"] > 0
        usage = JobReport.from_dict(document).usage
        assert usage and usage.memory_mib >= worker["usage"]["memory_mib"] and usage.fullest.startswith("worker:")
        assert usage.given_memory_mib == 4096 or document["tasks"][1]["usage"] is None
        assert document["metrics"] == {"step": 1, "loss": 0.5}
        alone = json.loads(ask(am, "status.json?only=report"))
        told = JobReport.from_dict(alone)
        assert (told.usage and told.usage.fullest, told.metrics) == (usage.fullest, document["metrics"])
        assert [task.starts for task in told.tasks] == [1, 2] and "options" not in alone
        assert "letmein" not in json.dumps(document) and document["options"]["env"] == {"API_TOKEN": "***"}
        log = ask(am, "log.txt?task=worker%3A0")
        assert "the token is ***" in log and "letmein" not in log
        with browsing(width=900) as page:
            page.goto(am.pages["ytf"] + "/")
            assert page.inner_text("h1").startswith("<script>alert(1)</script>")
            page.hover(".row[data-task='worker:1'] rect.mark.failed")
            assert re.match(r"worker:1 failed: exit code 3 on 127.0.0.1, round 1\n", page.inner_text("#tip"))
            page.click("button[data-log='worker:1']")
            until(lambda: "the token is ***" in page.inner_text("#log"), 60)
        for name in ("worker_0", "worker_1"):
            (am.container(name).folder / "go").touch()
        report = am.wait()
    assert report.reason is Reason.SUCCEEDED
    assert report.metrics == {"step": 2, "loss": 0.25}, "a line without an end counts when the program has ended"
    assert task(report, "worker:1").starts == 2


def test_missing_tasks_are_shown_before_the_cluster_spec_is_published():
    coordinator = coordinator_of(wire_job())
    document = coordinator.status()
    assert document["waiting"]["tasks"] == [f"{name} (container running)" for name in ("ps:0", "worker:0", "worker:1")]
    assert document["sentence"].startswith("The job waits for ps:0 (container running), worker:0 (container running)")
    jsonschema.validate(document, SCHEMA)


async def running(spec=None):
    """Return a coordinator whose tasks run, with the wire of worker:0."""
    coordinator, wires = coordinator_of(spec or wire_job()), {}
    for container in ("ps_0", "worker_0", "worker_1"):
        wires[container] = Wire()
        peer = await coordinator.agents.on_connect(wires[container], registration(container))
        wires[container].peer = peer
    for wire in wires.values():
        coordinator.agents.on_message(wire.peer, wire, {"type": "running", "round": 1, "start": 1})
    return coordinator, wires["worker_0"]


@pytest.mark.parametrize(
    "peak, reason", [(8000.0, Reason.OUT_OF_MEMORY), (120.0, Reason.CONTAINER_LOST), (None, Reason.CONTAINER_LOST)]
)
def test_a_sigkill_of_a_full_container_is_out_of_memory(peak, reason):
    async def killed():
        coordinator, wire = await running(wire_job(restart=RestartPolicy(max_container_losses=0)))
        if peak:
            coordinator.agents.on_message(wire.peer, wire, sample(peak_memory_mib=peak))
        end = ContainerEnd("Exception from container-launch. Exit code: 137 Exception message: Killed", exit_code=137)
        lost = LostContainer("worker_0", Reason.CONTAINER_LOST, "Container failed", end=end)
        coordinator.state.on_lost(lost, 0.0)
        return coordinator.state.lifecycle

    state = asyncio.run(killed())
    assert (state.verdict.reason, state.verdict.task) == (reason, TaskId("worker", 0))
    assert "exit code 137" in state.verdict.message


def test_a_sample_is_answered_and_a_late_one_changes_nothing():
    async def late():
        coordinator, wire = await running()
        coordinator.agents.on_message(wire.peer, wire, sample(metrics={"loss": [[1.0, 0.5]]}))
        assert wire.last()[0] == "pong"
        first = coordinator.status()
        coordinator.agents.on_message(wire.peer, wire, exited(code=0))
        coordinator.agents.on_message(wire.peer, wire, sample(metrics={"loss": [[2.0, 9.0]]}))
        return first, coordinator.status()

    first, then = asyncio.run(late())
    assert first["tasks"][1]["usage"]["memory_mib"] == 100.0
    assert first["series"] == then["series"] and then["metrics"] == {"step": 1, "loss": 0.5}


def test_a_log_is_asked_of_its_agent_and_only_its_answer_counts():
    async def ask_agent():
        coordinator, wire = await running()
        asked = asyncio.ensure_future(coordinator.agents.tail("worker:0"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert wire.said[-1] == {"type": "tail", "id": 1}
        other = coordinator.state.registry.peers["worker_1"]
        coordinator.agents.on_message(other, other.connection, {"type": "log", "id": 1, "text": "a lie"})
        coordinator.agents.on_message(wire.peer, wire, {"type": "log", "id": 1, "text": "the truth"})
        return await asked, await coordinator.agents.tail("worker:7")

    assert asyncio.run(ask_agent()) == ("the truth", None)


def test_stacks_are_requested_by_their_own_message():
    async def ask_agent():
        coordinator, wire = await running()
        asked = asyncio.ensure_future(coordinator.agents.tail("worker:0", "stack"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        coordinator.agents.on_message(wire.peer, wire, {"type": "log", "id": 1, "text": "File"})
        return wire.said[-1], await asked

    assert asyncio.run(ask_agent()) == ({"type": "stack", "id": 1}, "File")


def test_live_job_has_the_queue_time_and_start_of_yarn():
    coordinator = coordinator_of(wire_job())
    coordinator.state.times = yarn_times({"startedTime": 1_700_000_000_000, "launchTime": 1_700_000_000_040}, None)
    for document in (coordinator.status(), coordinator.live_report()):
        assert (document["queue_seconds"], document["started_at"]) == (0.04, 1_700_000_000.04)
    coordinator.state.times = {}
    assert coordinator.status()["queue_seconds"] is None


@pytest.mark.slow
def test_silence_and_gpus_of_a_task_are_measured(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'GPU-a, 80, 1000, 16000'\necho 'GPU-b, 40, 3000, 16000'\necho 'GPU-c, [N/A], [N/A], 16000'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    spec = job(
        "echo begun; exec tail -f /dev/null",
        ps=False,
        tasks={"worker": TaskSpec(instances=1, memory=512, gpus=2), "other": TaskSpec(memory=512)},
    )
    with AppMaster(tmp_path / "job", spec) as am:
        until(lambda: "ytf" in am.pages, 60)
        usage = until(
            lambda: (found := json.loads(ask(am, "status.json"))["tasks"][0]["usage"]) and found["gpus"] and found,
            60,
            what="the answer of nvidia-smi",
        )
        assert (usage["gpus"], usage["gpu_percent"], usage["gpu_memory_mib"], usage["gpu_given_mib"]) == (
            2,
            60.0,
            4000.0,
            32000.0,
        )
        assert usage["gpu_uuids"] == "GPU-a, GPU-b"

        def idle():
            return [task["usage"]["idle_seconds"] for task in json.loads(ask(am, "status.json"))["tasks"]]

        until(lambda: (found := idle())[1] > 4 and found[0] == 0, 60, what="silence of the task without GPUs alone")
        assert "<td title='GPU-a, GPU-b'>60 % of 2, 4000 of 32000 MiB</td>" in ask(am, "")
        assert json.loads(ask(am, "status.json"))["tasks"][1]["usage"]["gpus"] is None, "of a task without GPUs"


def test_ended_job_leads_to_its_page_at_the_site():
    spec = JobSpec(command="x", tasks={"ps": TaskSpec(), "worker": TaskSpec(instances=2)})
    coordinator = coordinator_of(build_runtime_job(spec)._replace(user="u", ui_url="https://ytf.example.com/"))
    page = "https://ytf.example.com/jobs/application_1_1"
    assert coordinator.report().tracking_url is None
    assert f'data-home="{page}"' in render_page(coordinator.status(), live=True)
    coordinator.apply(Verdict(Reason.TOTAL_TIMEOUT, "too long"))
    diagnostics = verdict_text(coordinator.report())
    assert diagnostics.splitlines()[1] == f"Its page: {page}"
    yarn = application(
        1,
        "FINISHED",
        id="application_1_1",
        finalStatus="FAILED",
        diagnostics=diagnostics,
        trackingUrl="http://rm:8088/cluster/app/x",
    )
    assert read_yarn_report(yarn).tracking_url == page
    assert read_yarn_report({**yarn, "diagnostics": "killed"}).tracking_url == "http://rm:8088/cluster/app/x"

"""What deserves a look at a running job, by its status document."""

import pytest

from tf_yarn_ops.runtime.common.alerts import find_alerts
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Given, Series, Usage, Waiting, build_status

APP = "application_1700000000000_0042"
NOW = 1_700_000_000.0


def status(tasks=("worker:0", "worker:1", "worker:2"), starts=1, reason=None, ran=3000.0, **facts):
    reports = tuple(TaskReport(name, "running", host="n1", starts=starts, started_at=NOW - ran) for name in tasks)
    return build_status(
        JobReport(APP, state="RUNNING", started_at=NOW - 3600, tasks=reports, reason=reason), NOW, **facts
    )


def usage(memory=100.0, idle=0.0, gpus=None):
    return Usage(NOW, 1.0, memory, 1.0, memory, 60.0, idle, gpus)


def series(task, step, *, at=NOW, name="loss", value=0.5, since=None):
    return Series(task, name, [[step, value]], step, value, at, since)


@pytest.mark.parametrize(
    "facts, expected",
    [
        (
            {"usage": {"worker:1": usage(idle=1440), "worker:0": usage(), "worker:2": usage()}},
            [
                (
                    "worker:1: no CPU, no output and no metrics for 24 min 0 s, while 2 other tasks go on. The program may "
                    "hang; ytf stack shows where.",
                    ["worker:1"],
                )
            ],
        ),
        (
            {"usage": dict.fromkeys(("worker:0", "worker:1", "worker:2"), usage(idle=400))},
            [
                (
                    "worker:0, worker:1, worker:2: no CPU, no output and no metrics for 6 min 40 s. The program may hang; ytf stack shows where.",
                    ["worker:0", "worker:1", "worker:2"],
                )
            ],
        ),
        ({"tasks": ("worker:0", "ps:0"), "usage": {"ps:0": usage(idle=9999), "worker:0": usage(idle=299)}}, []),
        (
            {
                "usage": {"worker:0": usage(930.0), "worker:1": usage(899.0)},
                "given": {"worker:0": Given(1000, 1), "worker:1": Given(1000, 1)},
            },
            [
                (
                    "worker:0: 93 % of the memory is in use, and YARN kills at 100 %. Raise --task_memory worker:... for the next run.",
                    ["worker:0"],
                )
            ],
        ),
        (
            {
                "usage": dict.fromkeys(("worker:0", "worker:1", "worker:2"), usage(gpus=2)),
                "given": {"worker:0": Given(1000, 1, 1), "worker:1": Given(1000, 1, 2), "worker:2": Given(1000, 1)},
            },
            [
                (
                    "worker:0: nvidia-smi shows more GPUs than YARN allocated; the node does not isolate them. Select each program's "
                    "by CUDA_VISIBLE_DEVICES.",
                    ["worker:0"],
                )
            ],
        ),
        (
            {"series": [series("worker:0", 400), series("worker:1", 410), series("worker:2", 120)]},
            [("worker:2: at step 120, where the median task is at 400.", ["worker:2"])],
        ),
        ({"ran": 5.0, "series": [series("worker:0", 4), series("worker:1", 4), series("worker:2", 1)]}, []),
        (  # after a replacement: worker:0 and worker:1 have not written since the new round began
            {
                "ran": 90.0,
                "series": [
                    series("worker:0", 54, at=NOW - 95),
                    series("worker:1", 55, at=NOW - 95),
                    series("worker:2", 1),
                ],
            },
            [],
        ),
        (
            {
                "silent": {"worker:2": 40.0},
                "series": [series("worker:0", 400), series("worker:1", 410), series("worker:2", 120)],
                "usage": {"worker:2": usage(930.0, idle=400)},
                "given": {"worker:2": Given(1000, 1)},
            },
            [
                (
                    "worker:2: silent for 40 s; the node may be cut off. After --heartbeat_timeout the task counts as lost.",
                    ["worker:2"],
                )
            ],
        ),
        (
            {"waiting": Waiting(("worker:1 (container requested)",), NOW - 190)},
            [("1 of 3 tasks are missing for 3 min 10 s: worker:1 (container requested).", ["worker:1"])],
        ),
        ({"waiting": Waiting(("worker:1 (container requested)",), NOW - 5)}, []),
        (
            {"deadlines": {"total": (NOW - 9500, NOW + 500), "execution": (NOW - 100, NOW + 900)}},
            [("The deadline --total_timeout ends the job in 8 min 20 s, at 22:21:40 UTC.", [])],
        ),
        ({"series": [series("worker:0", 4, at=NOW - 720)]}, [("No metrics since 22:01:20 UTC (12 min 0 s).", [])]),
        ({"starts": 2, "restarts_left": 1}, [("The job has started again after a failure; 1 restart left.", [])]),
        ({"starts": 2, "restarts_left": 0}, [("The job has started again after a failure; no restarts left.", [])]),
        ({"restarts_left": 3}, []),
        ({}, []),
    ],
)
def test_alerts_of_a_running_job(facts, expected):
    assert [(one["text"], one["tasks"]) for one in status(**facts)["alerts"]] == expected


PARAMETER_SERVER = ("chief:0", "worker:0", "worker:1", "ps:0")


def after_chief(idle, chief="succeeded"):
    document = status(PARAMETER_SERVER, usage={name: usage(idle=idle) for name in PARAMETER_SERVER[1:]})
    document["tasks"][0]["state"] = chief
    return find_alerts(document)


@pytest.mark.parametrize("idle", [20.0, 4000.0])
def test_tasks_that_only_serve_after_the_chief_are_named(idle):
    (alert,) = after_chief(idle)
    assert alert.text == (
        "chief:0 has succeeded; the job waits for worker:0, worker:1, without any use of CPU. If it only waits for "
        "servers, give --success chief."
    )
    assert alert.tasks == ("worker:0", "worker:1")


def test_tasks_that_train_after_the_chief_raise_no_alert():
    assert after_chief(19.0) == after_chief(40.0, "running") == []


@pytest.mark.parametrize(
    ("idle", "sentence"),
    [
        ((20, 300), "The job is idle: 2 of 2 tasks run, and none uses CPU."),
        ((20, 0), "The job trains: 2 of 2 tasks run."),
        ((20, None), "The job trains: 2 of 2 tasks run."),
    ],
)
def test_job_trains_only_while_a_task_uses_cpu_or_writes(idle, sentence):
    names = ("worker:0", "worker:1")
    measured = {name: usage(idle=seconds) for name, seconds in zip(names, idle, strict=True) if seconds is not None}
    assert status(names, usage=measured)["sentence"] == sentence


def test_ended_job_and_poor_document_raise_no_alert():
    silent = {"usage": {"worker:0": usage(idle=1440)}}
    assert find_alerts({**status(**silent), "reason": "TASK_FAILED"}) == find_alerts({"schema": 1}) == []


@pytest.mark.parametrize(
    "value, since, expected",
    [
        (1000.0, (100.0, NOW - 200), "step 300 of 1000, about 11 min 40 s left"),
        (1000.0, None, "step 300 of 1000"),
        (200.0, (100.0, NOW - 200), ""),
        (float("nan"), (100.0, NOW - 200), ""),
    ],
)
def test_estimate_comes_from_the_pace_since_the_start(value, since, expected):
    assert status(series=[series("worker:0", 300.0, name="steps", value=value, since=since)])["progress"] == expected


def test_report_brings_alerts_to_clients():
    document = status(usage={"worker:1": usage(idle=1440)})
    assert JobReport.from_dict(document).alerts[0].tasks == ("worker:1",)
    assert JobReport.from_dict(JobReport.from_dict(document).to_dict()).alerts == JobReport.from_dict(document).alerts

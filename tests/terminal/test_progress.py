"""The lines about a running job: what is new, silence, metrics, usage."""

from dataclasses import replace

from support.job_reports import APP, FAILED, task
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, JobUsage, Round, TaskReport
from tf_yarn_ops.terminal.progress import Lines
from tf_yarn_ops.terminal.summary import describe, describe_usage


def test_lines_say_only_what_is_new():
    lines = Lines()
    job = JobReport(APP, queue="low", state="ACCEPTED")
    assert lines.changes(job, 0.0) == [f"{APP} ACCEPTED in queue low"]
    assert lines.changes(job, 1.0) == []
    tasks = tuple(TaskReport(f"worker:{index}") for index in range(12))
    running = JobReport(APP, state="RUNNING", tracking_url="http://rm/proxy", tasks=tasks)
    assert lines.changes(running, 40.0) == [
        f"{APP} RUNNING, http://rm/proxy",
        "0 of 12 tasks have registered. Waiting for worker:0, worker:1, worker:2, worker:3, worker:4, worker:5, "
        "worker:6, worker:7 and 4 more.",
    ]  # fmt: skip
    started = tuple(task(f"worker:{index}", "running") for index in range(2))
    again = JobReport(APP, state="RUNNING", tracking_url="http://rm/proxy", tasks=started, tensorboard_url="http://n:1",
                      rounds=(Round(1, 0.0, "start"), Round(2, 5.0, "worker:1 failed")))  # fmt: skip
    assert lines.changes(again, 41.0) == [
        "round 2: worker:1 failed", "running: worker:0, worker:1", "TensorBoard at http://n:1"]  # fmt: skip
    assert lines.changes(FAILED, 42.0) == [
        f"{APP} FINISHED: TASK_FAILED", "failed with exit 3: worker:1", "stopped: ps:0"]  # fmt: skip


def test_no_line_comes_twice():
    lines = Lines()
    rounds = (Round(1, 0.0, "start"), Round(2, 5.0, "worker:1 was lost"))
    running = JobReport(APP, state="RUNNING", tasks=(TaskReport("worker:0", "running"),), rounds=rounds)
    assert lines.changes(running, 0.0) == [f"{APP} RUNNING", "round 2: worker:1 was lost", "running: worker:0"]
    started = replace(running, tasks=(TaskReport("worker:0", "running", starts=1),))
    assert lines.changes(started, 1.0) == []
    assert lines.changes(JobReport(APP, state="RUNNING"), 2.0) == [], "the coordinator did not answer this time"
    ended = JobReport(APP, state="FINISHED", reason=Reason.SUCCEEDED, tasks=(TaskReport("worker:0", "succeeded"),),
                      rounds=rounds)  # fmt: skip
    assert lines.changes(ended, 3.0) == [f"{APP} FINISHED", "succeeded: worker:0"]
    other = replace(running, application_id="application_1_0002")
    assert lines.changes(other, 4.0) == [
        "application_1_0002 RUNNING",
        "round 2: worker:1 was lost",
        "running: worker:0",
    ]


def test_lines_show_yarns_reason_and_break_a_silence():
    lines = Lines()
    full = ("[Sun Nov 22 12:00:0{0} +0000 2026] Application is added to the scheduler and is not yet activated. Queue's AM "
            "resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; Queue AM Resource Usage = {0}")  # fmt: skip
    cause = "Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded."
    queued = [JobReport(APP, queue="low", state="ACCEPTED", message=full.format(number)) for number in range(3)]
    assert lines.changes(queued[0], 100.0) == [f"{APP} ACCEPTED in queue low"]
    assert lines.changes(queued[0], 101.0) == [], "a job that starts at once has reasons, too"
    assert lines.changes(queued[1], 106.0) == [f"waiting: {cause}"]
    assert lines.changes(queued[2], 107.0) == [], "only the numbers have changed"
    assert lines.changes(queued[2], 166.0) == [f"still ACCEPTED in queue low: {cause}, followed for 1 min 6 s"]
    running = JobReport(APP, state="RUNNING", tasks=(task("ps:0", "running"), task("worker:0", "running")))
    assert lines.changes(running, 170.0) == [f"{APP} RUNNING", "running: ps:0, worker:0"]
    assert lines.changes(running, 229.0) == []
    assert lines.changes(running, 230.0) == ["still RUNNING, 2 running, followed for 2 min 10 s"]


def test_lines_show_metrics_but_not_at_each_step():
    lines = Lines()

    def at(step):
        return JobReport(APP, state="RUNNING", metrics={"step": step, "loss": 1 / 3})

    assert lines.changes(at(1), 0.0) == [f"{APP} RUNNING", "metrics: step 1, loss 0.3333"]
    assert lines.changes(at(2), 29.0) == []
    assert lines.changes(at(3), 30.0) == ["metrics: step 3, loss 0.3333"]
    assert lines.changes(at(3), 65.0) == [], "nothing new"


def test_a_line_a_minute_has_states_metrics_cpu_and_memory():
    lines = Lines()
    usage = JobUsage(3.42, 5222.0, 8192, "worker:3", 0.923)

    def at(step, **fields):
        return JobReport(
            APP,
            state="RUNNING",
            metrics={"step": step},
            **fields,
            tasks=(task("ps:0", "running"), task("worker:3", "running")),
        )

    lines.changes(at(1), 0.0)
    using = "2 running, cpu 3.4 cores, memory 5.1 of 8.0 GiB, most used: worker:3 92 %"
    assert lines.changes(at(2, usage=usage), 30.0) == [f"metrics: step 2 ({using})"]
    assert lines.changes(at(2, usage=replace(usage, cpu_cores=3.0)), 40.0) == [], "usage alone is nothing new"
    assert lines.changes(at(2, usage=usage), 90.0) == [
        f"still RUNNING, {using}, followed for 1 min 30 s; metrics: step 2"]  # fmt: skip
    assert describe_usage(at(2, usage=JobUsage(0.5, 512.0))) == "cpu 0.5 cores, memory 512 MiB"
    assert describe_usage(at(2, usage=JobUsage(0.0, 9.6, 128))) == "cpu 0.0 cores, memory 10 of 128 MiB"
    assert "  usage         cpu 3.4 cores" in "\n".join(describe(at(2, usage=usage), 0.0))
    ended = replace(FAILED, usage=usage)
    assert not any("cores" in line for line in (*lines.changes(ended, 200.0), *describe(ended, 200.0)))

"""More memory for the next submission of a job that ran out of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_yarn import amount, verdict_text
from support.own_applications import ME, mine, number
from support.place import job, read_proto
from tf_yarn_ops.errors import ResourcesImpossible, SubmissionRejected
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.job.parts import Resources, RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.growth import check_growth, outgrew_memory, with_more_memory
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.submit.rest import RestSubmitter

WORKERS, SERVERS = TaskSpec(instances=2, memory=2000), TaskSpec(memory=1000)


def outgrown(task="worker:1", reason=Reason.OUT_OF_MEMORY, **memory):
    return JobReport(number(1), reason=reason, first_failure=task, memory_mib={"worker": 2000, "ps": 1000, **memory})


def sizes(spec):
    return {name: [task.resources_of(n).memory for n in range(task.instances)] for name, task in spec.tasks.items()}


@pytest.mark.parametrize(
    "ended, most, worker, ps",
    [
        ([], 9000, 2000, 1000),
        ([outgrown()], 9000, 3000, 1000),
        ([outgrown("ps:0")], 9000, 2000, 1500),
        ([outgrown(), outgrown("ps:0")], 9000, 3000, 1500),
        ([outgrown(), outgrown(worker=3000)], 9000, 4500, 1000),
        ([outgrown(worker=3000), outgrown()], 9000, 4500, 1000),
        ([outgrown()], 2400, 2400, 1000),
        ([outgrown(worker=9000)], 9000, 9000, 1000),
        ([outgrown(worker=1000)], 9000, 2000, 1000),  # the request has more by now
        ([outgrown(worker=2001)], 9000, 3002, 1000),
        ([outgrown(reason=Reason.NODE_LOST, worker=8000)], 9000, 2000, 1000),
        ([outgrown(None), outgrown("tensorboard:0"), outgrown("other:0")], 9000, 2000, 1000),
    ],
)
def test_type_that_ran_out_of_memory_gets_more(ended, most, worker, ps):
    spec = job(tasks={"worker": WORKERS, "ps": SERVERS}, restart=RestartPolicy(memory_growth=1.5))
    assert sizes(with_more_memory(spec, ended, most)) == {"worker": [worker, worker], "ps": [ps]}


def test_single_tasks_of_the_type_grow_in_proportion():
    task = TaskSpec(instances=3, memory=1000, indices={0: Resources(3000), 2: Resources(10)})
    spec = job(tasks={"worker": task}, restart=RestartPolicy(memory_growth=1.5))
    assert sizes(with_more_memory(spec, [outgrown(worker=3000)], 9000)) == {"worker": [4500, 1500, 15]}
    assert sizes(with_more_memory(spec, [outgrown(worker=3000)], 4000)) == {"worker": [4000, 1334, 14]}


def grew(spec, ended):
    try:
        check_growth(spec, ended)
    except ResourcesImpossible:
        return False
    return True


@given(st.integers(1, 9000), st.floats(1.1, 10), st.integers(9000, 20000), st.integers(1, 60))
def test_growth_ends_at_the_maximum_and_each_step_is_larger(memory, factor, most, steps):
    spec, ended = job(tasks={"worker": TaskSpec(memory=memory)}, restart=RestartPolicy(memory_growth=factor)), []
    for _ in range(steps):
        before = sizes(spec)["worker"][0]
        ended.append(outgrown("worker:0", worker=before))
        spec = with_more_memory(spec, ended, most)
        assert spec == with_more_memory(spec, ended, most)
        assert before < sizes(spec)["worker"][0] <= most or (before == most and not grew(spec, ended[-1]))


@pytest.mark.parametrize(
    "ended, expected",
    [
        (outgrown(), True),
        (outgrown(reason=Reason.TASK_FAILED), False),
        (outgrown(None), False),
        (JobReport(number(1), reason=Reason.OUT_OF_MEMORY, first_failure="worker:0"), False),
    ],
)
def test_only_reports_of_jobs_with_growth_ask_for_more(ended, expected):
    assert outgrew_memory(ended) is expected
    assert grew(job(), ended) is not expected


GROWING = job(restart=RestartPolicy(memory_growth=1.5))  # of two workers with 512 MiB


def run_out_of_memory(place, *reasons):
    """End each application in turn with a reason, once it is asked for again; return the MiB of their workers."""
    left, memory = list(reasons), {}

    def fault(method, path):
        name = path.rsplit("/", 1)[-1]
        app = place.yarn.apps.get(name)
        if method != "GET" or not app or app["state"] not in LIVE:
            return
        if name not in memory:
            memory[name] = read_proto(place, name).services["worker"].resources.memory
        elif left:
            reason = left.pop(0)
            had = {"worker": memory[name]}
            report = JobReport(name, reason=reason, first_failure="worker:1", message="x", memory_mib=had)
            final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
            place.yarn.end(name, verdict_text(report), "FINISHED", final)

    place.yarn.faults.append(fault)
    return memory


OUT, DONE = Reason.OUT_OF_MEMORY, Reason.SUCCEEDED


@pytest.mark.parametrize("identity", [None, ME])
def test_job_is_submitted_again_with_more_memory_until_it_fits(place, caplog, identity):
    caplog.set_level("INFO", "tf_yarn_ops")
    memory = run_out_of_memory(place, OUT, OUT, DONE)
    report = place.launcher().run(GROWING, identity, poll_interval=0.01)
    assert (report.reason, [*memory.values()]) == (DONE, [512, 768, 1152])
    assert report.memory_mib == {"worker": 1152}
    assert f"worker gets 768 instead of 512 MiB of memory, because tasks ran out of it in {number(1)}" in caplog.text


@pytest.mark.parametrize("identity", [None, ME])
def test_job_at_the_maximum_is_not_submitted_again(place, caplog, identity):
    caplog.set_level("INFO", "tf_yarn_ops")
    place.yarn.maximum = amount(1024, 32, 0)
    spec = job(restart=RestartPolicy(memory_growth=1.5), am_memory=512)
    memory = run_out_of_memory(place, OUT, OUT, OUT, OUT)
    report = place.launcher().run(spec, identity, poll_interval=0.01)
    assert (report.reason, [*memory.values()]) == (OUT, [512, 768, 1024])
    assert f"{number(3)}: not submitted again: the largest task of worker had 1024 MiB of memory" in caplog.text


@pytest.mark.parametrize("identity", [None, ME])
def test_scheduler_without_a_maximum_does_not_stop_the_growth(place, monkeypatch, identity):
    monkeypatch.setattr("tf_yarn_ops.launch.growth.maximum_of", lambda scheduler: None)
    memory = run_out_of_memory(place, OUT, OUT, DONE)
    assert place.launcher().run(GROWING, identity, poll_interval=0.01).reason is DONE
    assert [*memory.values()] == [512, 768, 1152]


@pytest.mark.parametrize("identity", [None, ME])
@pytest.mark.parametrize("refusal", [ResourcesImpossible, SubmissionRejected])
def test_refusal_of_the_larger_job_leaves_the_report_of_the_smaller(place, monkeypatch, caplog, identity, refusal):
    caplog.set_level("INFO", "tf_yarn_ops")
    memory = run_out_of_memory(place, OUT)
    launcher = place.launcher()
    reserve = RestSubmitter.reserve

    def refuse(submission, spec, *words):
        if memory:
            raise refusal("no node holds 768 MiB")
        return reserve(submission, spec, *words)

    monkeypatch.setattr(RestSubmitter, "reserve", refuse)
    report = launcher.run(GROWING, identity, poll_interval=0.01)
    assert (report.reason, report.memory_mib) == (OUT, {"worker": 512})
    assert f"{number(1)}: not submitted again: the largest task of worker had 512 MiB of memory: no node" in caplog.text


def test_job_without_growth_ends_out_of_memory(place):
    memory = run_out_of_memory(place, OUT)
    assert place.launcher().run(job(), ME, poll_interval=0.01).reason is OUT and len(memory) == 1


@pytest.mark.parametrize("attempt", [ME.attempt, ME.attempt + 1])
def test_client_after_one_that_died_between_the_submissions_grows_too(place, attempt):
    failed = JobReport(number(7), reason=OUT, first_failure="worker:1", message="x", memory_mib={"worker": 512})
    place.yarn.add(mine(7, "FINISHED", finalStatus="FAILED", diagnostics=verdict_text(failed)))
    memory = run_out_of_memory(place)
    later = Identity(ME.key, ME.generation, attempt, ME.deployment)
    grown = [place.launcher().ensure(GROWING, later).application_id for _ in range(2)]
    assert grown == [number(1), number(1)], "the second call attaches"
    assert memory == {number(1): 768}


def test_newer_generation_begins_with_the_memory_of_the_request(place):
    memory = run_out_of_memory(place, OUT, DONE, DONE)
    newer = Identity(ME.key, ME.generation + 1, 0, ME.deployment)
    for identity in (ME, newer):
        assert place.launcher().run(GROWING, identity, poll_interval=0.01).reason is DONE
    assert [*memory.values()] == [512, 768, 512]

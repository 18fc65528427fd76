"""The trigger on a fake ResourceManager: one poll for all, deadlines, kills, and its arguments in the database."""

import asyncio
import json
import logging
import signal
import socket
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from airflow.configuration import conf
from airflow.models.trigger import Trigger
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetTaskStates, TaskStatesResult
from airflow.sdk.serde import deserialize, serialize

from support.airflow_task import serving_site
from support.fake_yarn import application, slowly, verdict_text
from support.waiting import until, until_async
from tf_yarn_ops.airflow import TensorFlowYarnTrigger, task_instance
from tf_yarn_ops.airflow import following as progress
from tf_yarn_ops.airflow import pauses as pauses_module
from tf_yarn_ops.airflow import trigger as trigger_module
from tf_yarn_ops.airflow.fast_kill import KILL_LIMIT
from tf_yarn_ops.airflow.following import cluster_from_dict, cluster_to_dict
from tf_yarn_ops.airflow.pauses import Pauses
from tf_yarn_ops.follow import watch
from tf_yarn_ops.hadoop.cluster import Cluster, SecurityFacts, StorageFacts, current_user, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import (
    Alert,
    JobReport,
    JobUsage,
    Round,
    TaskReport,
    parse_diagnostics,
)
from tf_yarn_ops.terminal import progress as lines_module

pytestmark = pytest.mark.slow

USER = current_user({})
APPS = "/ws/v1/cluster/apps"
KEY = '["airflow", "dag", "run", "train", -1]'


class Place:
    """A fake YARN, and triggers for its applications."""

    def __init__(self, yarn, url):
        self.yarn, self.url = yarn, url
        self.cluster = discover(
            url, {"HOME": "/nowhere", "HADOOP_USER_NAME": USER}, site=Site(request_timeout=2, unreachable_timeout=2)
        )

    def add(self, number, task="train", state="RUNNING"):
        identity = Identity(task, 0, 1, "here")
        return self.yarn.add(application(number, state, user=USER, applicationTags=",".join(identity.tags)))

    def trigger(self, name, task="train", **values):
        """Return a trigger as a triggerer makes it: with a number."""
        arguments = {
            "cluster": cluster_to_dict(self.cluster),
            "identity": asdict(Identity(task, 0, 1, "here")),
            "poll_interval": 0.1,
        }
        trigger = TensorFlowYarnTrigger(name, **arguments | values)
        trigger.trigger_id = 1
        return trigger

    def end(self, name, reason=Reason.SUCCEEDED, **values):
        final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
        report = JobReport(name, reason=reason, message="it ended", **values)
        self.yarn.apps[name].update(state="FINISHED", finalStatus=final, diagnostics=verdict_text(report))

    def show_page(self, name, **fields):
        """Let the coordinator of a running job answer through YARN's proxy."""
        self.yarn.apps[name]["trackingUrl"] = f"{self.url}/proxy/{name}/"
        report = JobReport(name, state="RUNNING", **fields)
        self.yarn.pages[f"/proxy/{name}/pages/ytf/status.json"] = "application/json", json.dumps(report.to_dict())

    def kills(self):
        return [path.split("/")[-2] for method, path, *_ in self.yarn.requests if method == "PUT"]


@pytest.fixture
def place(tmp_path):
    with serving_site(tmp_path, Place) as made:
        yield made


async def fire(trigger):
    """Run a trigger as the triggerer does. Return the payload of its event."""
    async for event in trigger.run():
        return event.payload


def number_of_lists(yarn):
    return sum(method == "GET" and path == APPS for method, path, *_ in yarn.requests)


def test_the_arguments_survive_airflows_database(place):
    trigger = place.trigger(
        place.add(1),
        deadline=1700000000.5,
        queue_timeout=60.0,
        on_kill="leave",
        lease={"seconds": 900.0, "lifetime": 691500.0},
    )
    classpath, kwargs = trigger.serialize()
    assert kwargs == json.loads(json.dumps(kwargs)) == deserialize(serialize(kwargs))
    assert Trigger._decrypt_kwargs(Trigger.encrypt_kwargs(serialize(kwargs))) == kwargs
    again = TensorFlowYarnTrigger(**kwargs)
    assert again.serialize() == (classpath, kwargs)
    assert len(json.dumps(kwargs)) < 2048


def test_the_cluster_is_known_again_without_asking(place):
    shown = cluster_from_dict(json.loads(json.dumps(cluster_to_dict(place.cluster))))
    for name in ("resourcemanagers", "user", "login", "storage", "security", "proxies", "version", "site"):
        assert getattr(shown, name) == getattr(place.cluster, name)
    other = Cluster(
        ("http://a:1", "http://b:1"),
        "ann",
        "airflow",
        StorageFacts("hdfs://x", "hdfs://y", "/s/{user}", webhdfs=("http://nn:1",)),
        site=Site(ca_file="/ca.pem", webhdfs=["http://nn:1"]),
        security=SecurityFacts(kerberos=True, negotiates=False),
    )
    assert cluster_from_dict(json.loads(json.dumps(cluster_to_dict(other)))) == other


def test_the_event_has_nothing_of_the_program(place):
    name = place.add(1)

    async def main():
        task = asyncio.create_task(fire(place.trigger(name)))
        await until_async(lambda: number_of_lists(place.yarn))
        place.end(name, metrics={"accuracy": 0.9})
        return await task

    assert asyncio.run(main()) == {"application_id": name, "ended": name, "reason": "SUCCEEDED"}


def test_fifty_triggers_share_one_poll(place):
    place.cluster = replace(place.cluster, site=Site(request_timeout=60))  # no request is repeated
    names = [place.add(number, f"task{number}") for number in range(1, 51)]

    async def main():
        began, asked = time.monotonic(), len(place.yarn.requests)
        tasks = [
            asyncio.create_task(fire(place.trigger(name, f"task{number}"))) for number, name in enumerate(names, 1)
        ]
        await until_async(lambda: number_of_lists(place.yarn) >= 10)
        looked = number_of_lists(place.yarn)
        assert len(place.yarn.requests) - asked == looked <= (time.monotonic() - began) / 0.1 + 2
        for name in names:
            place.end(name)
        events = await asyncio.gather(*tasks)
        return events

    events = asyncio.run(main())
    assert [event["ended"] for event in events] == names
    singles = [path for method, path, *_ in place.yarn.requests if method == "GET" and path.startswith(f"{APPS}/")]
    assert sorted(singles) == sorted(f"{APPS}/{name}" for name in names)  # one look at each end


def test_at_the_deadline_the_application_is_killed_and_the_event_says_why(place):
    name = place.add(1)
    event = asyncio.run(fire(place.trigger(name, deadline=time.time() + 0.5)))
    assert (event["reason"], place.yarn.apps[name]["state"]) == ("EXECUTION_TIMEOUT", "KILLED")


def test_a_deadline_that_passed_while_no_triggerer_ran_counts_at_once(place):
    name = place.add(1)
    event = asyncio.run(fire(place.trigger(name, deadline=time.time() - 3600)))
    assert event["reason"] == "EXECUTION_TIMEOUT" and place.kills() == [name]


def test_what_ended_before_its_deadline_was_noticed_keeps_its_own_end(place):
    name = place.add(1)
    place.end(name, metrics={"a": 1})
    event = asyncio.run(fire(place.trigger(name, deadline=time.time() - 1)))
    assert event["reason"] == "SUCCEEDED"


def test_at_the_deadline_it_is_left_where_it_is_to_be_left(place):
    name = place.add(1)
    event = asyncio.run(fire(place.trigger(name, deadline=time.time() + 0.2, on_kill="leave")))
    assert event["reason"] == "EXECUTION_TIMEOUT"
    assert place.yarn.apps[name]["state"] == "RUNNING" and not place.kills()


def test_kill_at_the_deadline_is_repeated_as_long_as_the_site_waits(place):
    name = place.add(1)
    place.yarn.faults.append(lambda method, path: (503, {}, "away") if path.endswith("/state") else None)
    began = time.monotonic()
    event = asyncio.run(fire(place.trigger(name, deadline=time.time())))
    assert event["reason"] == "EXECUTION_TIMEOUT"
    assert time.monotonic() - began > 2


def test_application_forgotten_at_the_deadline_does_not_count_as_killed(place):
    name = place.add(1)
    del place.yarn.apps[name]
    event = asyncio.run(fire(place.trigger(name, deadline=time.time() - 1)))
    assert event["reason"] == "EXECUTION_TIMEOUT"


def test_the_trigger_moves_the_lease_of_its_application(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.follow.wait.PART", 0.001)
    name = place.add(1)
    trigger = place.trigger(name, lease={"seconds": 900.0, "lifetime": None})
    assert trigger.serialize()[1]["lease"] == {"seconds": 900.0, "lifetime": None}

    def moves():
        return [body["timeout"]["expiryTime"] for method, path, *_, body in place.yarn.requests
                if method == "PUT" and path.endswith("/timeout")]  # fmt: skip

    async def main():
        event = asyncio.create_task(fire(trigger))
        await until_async(lambda: len(moves()) >= 2)
        place.end(name)
        return await event

    assert asyncio.run(main())["reason"] == "SUCCEEDED"
    assert all(".777" in text for text in moves())


def test_the_queue_deadline_is_the_jobs(place):
    name = place.add(1, state="ACCEPTED")
    place.yarn.apps[name]["elapsedTime"] = 61_000
    event = asyncio.run(fire(place.trigger(name, queue_timeout=60)))
    assert (event["reason"], place.yarn.apps[name]["state"]) == ("QUEUE_TIMEOUT", "KILLED")


def test_on_kill_kills_and_deletes_the_directory(place, tmp_path):
    name = place.add(1)
    directory = tmp_path / "user" / USER / ".skein" / name
    directory.mkdir(parents=True)
    asyncio.run(place.trigger(name).on_kill())
    assert place.yarn.apps[name]["state"] == "KILLED" and not directory.exists()
    assert parse_diagnostics(place.yarn.apps[name]["diagnostics"], name)[0].killed_by_attempt == 1


def test_on_kill_waits_for_the_end_and_deletes_the_directory(place, tmp_path):
    """A DAG run of fifty tasks is marked as failed: YARN takes all kills at once, and needs a while for them."""
    name = place.add(1)
    directory = tmp_path / "user" / USER / ".skein" / name
    directory.mkdir(parents=True)
    ends = []

    def dying(method, path):
        if path.endswith("/state"):
            ends.append(time.monotonic() + KILL_LIMIT + 1)
            if time.monotonic() < ends[0]:
                return 202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}'
            place.end(name)
        return None

    place.yarn.faults.append(dying)
    asyncio.run(place.trigger(name).on_kill())
    assert not directory.exists()


def test_a_hundred_kills_at_once_reach_all(place):
    """A DAG run marked as failed; each kill takes the ResourceManager a while."""
    names = [place.add(number) for number in range(1, 101)]
    place.yarn.faults.append(slowly(0.6, "PUT"))

    async def main():
        await asyncio.gather(*(place.trigger(name).on_kill() for name in names))

    asyncio.run(main())
    assert {place.yarn.apps[name]["state"] for name in names} == {"KILLED"}


def test_kills_that_have_to_queue_are_not_taken_back(place, monkeypatch):
    monkeypatch.setattr(trigger_module, "_KILLED", 0.3)
    names = [place.add(number) for number in range(1, 41)]  # there are 32 threads
    place.yarn.faults.append(slowly(1, "PUT"))

    async def main():
        await asyncio.gather(*(place.trigger(name).on_kill() for name in names))
        await until_async(lambda: {place.yarn.apps[name]["state"] for name in names} == {"KILLED"})

    asyncio.run(main())


def test_on_kill_leaves_what_is_to_be_left(place):
    name = place.add(1)
    asyncio.run(place.trigger(name, on_kill="leave").on_kill())
    assert place.yarn.apps[name]["state"] == "RUNNING"


@pytest.mark.parametrize("fault", ["hangs", "refuses"])
def test_on_kill_ends_within_five_seconds_at_any_resourcemanager(place, fault):
    name = place.add(1)
    place.yarn.faults.append(slowly(120, "PUT") if fault == "hangs" else lambda method, path: (503, {}, "away"))

    async def main():
        began = time.monotonic()
        await place.trigger(name).on_kill()
        return time.monotonic() - began

    assert KILL_LIMIT < 5 and asyncio.run(main()) < 60


class Supervisor:
    """Airflow's process beside a triggerer, at the place of its end of the connection."""

    def __init__(self):
        self.running, self.answers, self.requests = asyncio.Event(), threading.Event(), []
        self.running.set()

    async def asend(self, message):
        await self.running.wait()

    def send(self, message):
        self.requests.append(type(message))
        assert self.answers.wait(60)
        return TaskStatesResult(task_states={"run": {"train": "deferred"}})


async def kill_of(place, supervisor, act=None):
    """Run a trigger, act, cancel it as a triggerer does, and kill."""
    name = place.add(1)
    trigger = place.trigger(name, identity=asdict(Identity(KEY, 0, 1, "here")))
    task = asyncio.create_task(fire(trigger))
    await until_async(lambda: number_of_lists(place.yarn))
    if act is not None:
        await act()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kill = asyncio.create_task(trigger.on_kill())
    await until_async(lambda: kill.done() or GetTaskStates in supervisor.requests)
    supervisor.answers.set()
    await kill
    return place.yarn.apps[name]["state"]


def test_first_kill_requests_no_state_of_the_task(place, monkeypatch):
    async def main():
        supervisor = Supervisor()
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", supervisor, raising=False)
        return await kill_of(place, supervisor), supervisor.requests

    assert asyncio.run(main()) == ("KILLED", [])


def pausing(monkeypatch):
    """Return the clock of a triggerer, and its pauses."""
    clock = [0.0]
    pauses = Pauses(0.3, lambda: clock[0])
    monkeypatch.setattr(pauses_module, "pauses", lambda: pauses)
    return clock, pauses


def test_triggerer_needs_less_for_answer_and_kill_than_airflow_waits():
    limit = conf.getfloat("triggerer", "on_kill_timeout")
    assert trigger_module._ANSWERED + KILL_LIMIT < trigger_module._KILLED < limit


@pytest.mark.parametrize("answer", ["failed", "deferred", None])
def test_answer_after_a_pause_holds_up_no_triggerer(place, monkeypatch, answer, capsys):
    """The kill follows the answer; without one in time, the training is left, also when the answer comes later."""
    clock, _ = pausing(monkeypatch)
    name = place.add(1)
    monkeypatch.setattr(trigger_module, "_KILLED", 0.2)
    asked, answers, answered = threading.Event(), threading.Event(), threading.Event()

    def state_by_key(key):
        asked.set()
        assert answers.wait(60)
        answered.set()
        return answer or "failed"

    monkeypatch.setattr(task_instance, "state_by_key", state_by_key)
    if not answer:
        monkeypatch.setattr(trigger_module, "_ANSWERED", 0.3)

    async def main():
        clock[0] += 10
        trigger = place.trigger(name, identity=asdict(Identity(KEY, 0, 1, "here")))
        trigger.trigger_id = 1
        began = time.monotonic()
        await trigger.on_kill()
        seconds = time.monotonic() - began
        logged = ""
        assert asked.wait(60) and place.yarn.apps[name]["state"] == "RUNNING"
        if answer:
            answers.set()
        ends = {"failed": "", "deferred": "is left to the triggerer", None: "Airflow does not answer whether"}[answer]

        def ended():
            nonlocal logged
            logged += capsys.readouterr().out
            return ends in logged if ends else place.yarn.apps[name]["state"] == "KILLED"

        await until_async(ended)
        answers.set()
        await until_async(answered.is_set)
        return seconds

    assert asyncio.run(main()) < 20 < conf.getfloat("triggerer", "on_kill_timeout")
    assert place.yarn.apps[name]["state"] == ("KILLED" if answer == "failed" else "RUNNING")


@pytest.mark.parametrize("over", [False, True])
def test_kill_after_a_pause_of_the_heartbeat_requests_the_state(place, monkeypatch, over):
    """Another triggerer may have taken over, while the pause lasts and after it."""
    clock, pauses = pausing(monkeypatch)

    async def main():
        supervisor = Supervisor()
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", supervisor, raising=False)

        async def pause():
            supervisor.running.clear()
            clock[0] += 10
            if over:
                supervisor.running.set()
                await until_async(lambda: pauses._answered == clock[0])

        return await kill_of(place, supervisor, pause), supervisor.requests

    assert asyncio.run(main()) == ("RUNNING", [GetTaskStates])


def test_a_triggerer_that_goes_kills_nothing(place):
    name = place.add(1)

    async def main():
        task = asyncio.create_task(fire(place.trigger(name)))
        await until_async(lambda: number_of_lists(place.yarn))
        task.cancel("EOF - shutting down")
        with pytest.raises(asyncio.CancelledError):
            await task
        await place.trigger(name).cleanup()

    asyncio.run(main())
    assert not place.kills()


@pytest.mark.parametrize(("policy", "state"), [("kill", "KILLED"), ("leave", "RUNNING")])
def test_ctrl_c_of_a_trigger_without_a_triggerer_does_as_a_kill(place, policy, state):
    """``airflow dags test`` and ``tasks test`` run it in their own process, and give it no number."""
    name = place.add(1)
    trigger = place.trigger(name, on_kill=policy)
    trigger.trigger_id = None

    async def main():
        asyncio.get_running_loop().create_task(press())
        return await anext(trigger.run(), None)

    async def press():
        await until_async(lambda: number_of_lists(place.yarn))
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert place.yarn.apps[name]["state"] == state


def test_a_trigger_that_goes_leaves_no_coroutine_behind(place):
    name = place.add(1)

    async def main():
        task = asyncio.create_task(fire(place.trigger(name)))
        await until_async(lambda: number_of_lists(place.yarn))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_async(lambda: asyncio.all_tasks() == {asyncio.current_task()})

    asyncio.run(main())


def test_on_kill_follows_where_the_training_has_moved_to(place):
    name, other = place.add(1), place.add(2)
    trigger = place.trigger(name)

    async def main():
        task = asyncio.create_task(fire(trigger))
        await until_async(lambda: number_of_lists(place.yarn))
        place.yarn.apps[name].update(state="KILLED", finalStatus="KILLED", diagnostics="")
        await until_async(lambda: trigger._followed_id == other)
        task.cancel()
        await trigger.on_kill()

    asyncio.run(main())
    assert place.yarn.apps[other]["state"] == "KILLED"


def test_a_resourcemanager_that_is_away_is_waited_for(place):
    name = place.add(1)

    async def main():
        away = [True]
        place.yarn.faults.append(lambda method, path: (503, {}, "away") if away else None)
        task = asyncio.create_task(fire(place.trigger(name)))
        await until_async(lambda: len(place.yarn.requests) > 5)
        away.clear()
        place.end(name)
        return await task

    assert asyncio.run(main())["reason"] == "SUCCEEDED"


def lines_of_log(trigger):
    """Return the lines that a trigger writes into its task's log, a list that grows."""
    lines = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    trigger._log = logging.Logger("of the task")
    trigger._log.addHandler(Lines())
    return lines


def test_running_tasks_are_logged_without_texts_of_the_program(place, monkeypatch):
    monkeypatch.setattr(progress, "SILENCE_SECONDS", 0.4)
    monkeypatch.setattr(lines_module, "REMINDER_SECONDS", 0.0)
    monkeypatch.setattr(watch, "STARTING_SECONDS", 0.1)
    name = place.add(1)
    trigger = place.trigger(name)
    lines = lines_of_log(trigger)

    async def main():
        place.show_page(
            name,
            usage=JobUsage(3.4, 5222.0, 8192, "worker:3", 0.92),
            metrics={"step": 200, "loss": 0.25},
            tasks=(TaskReport("ps:0", "running", starts=1), TaskReport("worker:0")),
        )
        task = asyncio.create_task(fire(trigger))
        await until_async(lambda: "1 of 2 tasks have registered. Waiting for worker:0." in lines)
        using = "1 running, 1 pending, cpu 3.4 cores, memory 5.1 of 8.0 GiB, most used: worker:3 92 %"
        assert f"metrics: step 200, loss 0.25 ({using})" in lines
        place.show_page(
            name,
            tasks=(
                TaskReport("ps:0", "running", starts=1),
                TaskReport("worker:0", "failed", exit_code=3, starts=1, log_tail="hush"),
            ),
            rounds=(Round(1, 1.0, ""), Round(2, 2.0, "worker:0 failed with exit code 3: hush")),
            metrics={"loss": 0.5},
            alerts=(Alert("chief", "chief:0 has succeeded; the job waits.", ("worker:0",)),),
        )
        await until_async(lambda: "alert: chief:0 has succeeded; the job waits." in lines)
        place.end(name)
        return await task

    asyncio.run(main())
    assert {"running: ps:0", "round 2: worker:0 failed with exit code 3", "failed with exit 3: worker:0"} <= {*lines}
    assert lines.count("running: ps:0") == 1 and "hush" not in "".join(lines)


def test_a_silence_is_broken_once_a_minute_and_not_with_each_look(place, monkeypatch):
    monkeypatch.setattr(progress, "SILENCE_SECONDS", 1.0)
    monkeypatch.setattr(lines_module, "SILENCE_SECONDS", 1.0)
    monkeypatch.setattr(lines_module, "SETTLED_SECONDS", 0.0)
    name = place.add(1, state="ACCEPTED")
    place.yarn.apps[name]["diagnostics"] = "waiting for a container"
    trigger = place.trigger(name)
    lines = lines_of_log(trigger)

    async def main():
        task = asyncio.create_task(fire(trigger))
        await until_async(lambda: len(lines) >= 3 and number_of_lists(place.yarn) > 10)
        assert len(lines) < number_of_lists(place.yarn)
        place.yarn.apps[name].update(state="RUNNING", diagnostics="")
        await until_async(lambda: len(lines) >= 5)
        place.end(name)
        return await task

    asyncio.run(main())
    told = [line.partition(", followed for")[0] for line in lines]
    assert told[:3] == [
        f"{name} ACCEPTED in queue default",
        "waiting: waiting for a container",
        "still ACCEPTED in queue default: waiting for a container",
    ]
    assert told[-1] == f"{name} FINISHED" and f"{name} RUNNING" in told


def test_the_first_import_does_not_hold_up_the_other_triggers(place):
    """In a process of its own: the libraries are imported in a thread."""
    import subprocess
    import sys

    name = place.add(1)
    place.end(name)
    script = (
        "import asyncio, json, sys, time\n"
        "from tf_yarn_ops.airflow.trigger import TensorFlowYarnTrigger\n"
        "assert 'tf_yarn_ops.launch.launcher' not in sys.modules\n"
        "async def main():\n"
        "    trigger = TensorFlowYarnTrigger(**json.loads(sys.argv[1]))\n"
        "    async def fire():\n"
        "        async for event in trigger.run():\n"
        "            return event\n"
        "    task = asyncio.create_task(fire())\n"
        "    beats = 0\n"
        "    while not task.done():\n"
        "        await asyncio.sleep(0.01)\n"
        "        beats += 1\n"
        "    print(json.dumps([(await task).payload['reason'], beats]))\n"
        "asyncio.run(main())\n"
    )
    arguments = json.dumps(place.trigger(name).serialize()[1])
    done = subprocess.run(
        [sys.executable, "-c", script, arguments], capture_output=True, text=True, timeout=100, check=True
    )
    reason, beats = json.loads(done.stdout.splitlines()[-1])
    assert reason == "SUCCEEDED" and beats > 3


def test_two_hundred_trainings_keep_few_files_open(place):
    """In a process of its own: their lists and pages share the connections of one client, and the pages take turns."""
    import os
    import subprocess
    import sys

    names = [place.add(number, f"task{number}") for number in range(1, 201)]
    for name in names:
        place.show_page(name)
    script = (
        "import asyncio, json, sys\n"
        "from tf_yarn_ops.airflow import TensorFlowYarnTrigger, following\n"
        "following.PAGES = 20\n"
        "async def fire(number, arguments):\n"
        "    trigger = TensorFlowYarnTrigger(**arguments)\n"
        "    trigger.trigger_id = number\n"
        "    return [event async for event in trigger.run()]\n"
        "async def main():\n"
        "    await asyncio.gather(*(fire(*each) for each in enumerate(json.load(sys.stdin))))\n"
        "asyncio.run(main())\n"
    )
    arguments = json.dumps([place.trigger(name, f"task{number}", poll_interval=1.0).serialize()[1]
                            for number, name in enumerate(names, 1)])  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        process.stdin.write(arguments)
        process.stdin.close()
        files, times = [], []

        def pages():
            files.append(len(os.listdir(f"/proc/{process.pid}/fd")))
            found = [path for _, path, *_ in place.yarn.requests if path.startswith("/proxy/")]
            times.extend([time.monotonic()] * bool(found))
            return found if len(found) >= 100 else None

        found = until(pages, 120)
    finally:
        process.kill()
        process.wait(30)
    assert max(files) < 50
    assert len(set(found)) == len(found) <= 20 * (times[-1] - times[0] + 2)


def test_bytes_that_another_process_has_not_read_are_seen(monkeypatch):
    def fail(path):
        raise FileNotFoundError(path)

    one, other = socket.socketpair()
    with one, other:
        assert not trigger_module._has_unread_bytes()
        one.send(b"the last line")
        assert trigger_module._has_unread_bytes()
        other.recv(100)
        assert not trigger_module._has_unread_bytes()
        one.send(b"x")
        monkeypatch.setattr(Path, "read_text", fail)
        assert not trigger_module._has_unread_bytes(), "not every system has these lists"

"""The events of a task for the timeline of the job's page."""

from support.wire import job as wire_job
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.master.timeline import FIRST, LAST, Timeline


def test_end_by_a_late_clock_of_a_node_is_not_before_the_start():
    timeline, name = Timeline(wire_job(), 100.0), TaskId("worker", 1)
    timeline.note(name, "running", at=200.0)
    timeline.note(name, "failed", at=199.5)
    timeline.note(name, "running", at=201.0)
    assert [event.at for event in timeline.events["worker:1"]] == [100.0, 200.0, 200.0, 201.0]


def test_events_of_a_task_are_bounded_and_the_first_stay():
    timeline, name = Timeline(wire_job(), 100.0), TaskId("worker", 1)
    for _ in range(200):
        timeline.started(name, "h", 1)
    events = timeline.events["worker:1"]
    assert len(events) == FIRST + LAST and events[0].kind == "requested"

"""Which training a start of the action asks for."""

import pytest

from support.fake_yarn import SECRET, verdict_text
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.launch.identity import Action, SubmissionDecision, decide_submission
from tf_yarn_ops.oozie.launched import Launched
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, verdict_tag

COORDINATOR, WORKFLOW, AGAIN = (
    "0000001-261122180532001-oozie-o-C@7",
    "0000004-261122180532001-oozie-o-W",
    "0000009-261122190000001-oozie-o-W",
)
USER = "ann"


@pytest.fixture
def start(tmp_path):
    """Return a function that reads a start of the action."""

    def read(workflow=WORKFLOW, run=0, launcher=5, attempt=1, coordinator=COORDINATOR, action="train"):
        path = tmp_path / "action.xml"
        values = {
            "oozie.job.id": workflow,
            "oozie.action.id": f"{workflow}@{action}",
            "oozie.child.mapreduce.job.tags": "oozie-12ab",
        }
        path.write_text(
            "<configuration>"
            + "".join(
                f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items()
            )
            + "</configuration>"
        )
        return Launched.read(
            {
                "OOZIE_ACTION_CONF_XML": str(path),
                "YTF_OOZIE_workflowRun": str(run),
                "CONTAINER_ID": f"container_e02_1795370720127_{launcher:04}_{attempt:02}_000001",
                **({"YTF_OOZIE_actionId": coordinator} if coordinator else {}),
            }
        )

    return read


class Yarn:
    """The applications of a training, as YARN would list them."""

    def __init__(self):
        self.listed = []

    def decide(self, launched):
        identity = self.identify(launched)
        return decide_submission([app for app in self.listed if identity.tag in app["applicationTags"]], identity, USER)

    def identify(self, launched):
        return launched.identify([app for app in self.listed if launched.request_tag in app["applicationTags"]])

    def submit(self, launched, state="RUNNING", **report):
        tags = (*self.identify(launched).tags, *launched.tags)
        application = {
            "id": f"application_1_{len(self.listed) + 1:04}",
            "user": USER,
            "state": state,
            "finalStatus": "UNDEFINED",
            "applicationTags": ",".join([*tags, verdict_tag(SECRET)]),
            "diagnostics": "",
        }
        self.listed.append(application)
        if report:
            self.end(application, **report)
        return application["id"]

    def end(self, application, reason, **fields):
        final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
        application.update(
            state="FINISHED",
            finalStatus=final,
            diagnostics=verdict_text(JobReport(application["id"], final_status=final, reason=reason, **fields)),
        )


@pytest.fixture
def yarn():
    return Yarn()


@pytest.mark.parametrize("coordinator", [COORDINATOR, None])
@pytest.mark.parametrize(
    ("again", "why"),
    [
        ({"attempt": 2}, "a second attempt of the launcher"),
        ({"launcher": 6}, "an attempt of retry-max"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_repetition_goes_on_with_the_training(start, yarn, coordinator, again, why):
    first = yarn.submit(start(coordinator=coordinator))
    assert yarn.decide(start(coordinator=coordinator, **again)) == SubmissionDecision(Action.ATTACH, first)


def test_a_rerun_by_a_person_ends_the_old_training(start, yarn):
    first = yarn.submit(start())
    for rerun in (start(run=1, launcher=8), start(workflow=AGAIN, launcher=9)):
        assert yarn.decide(rerun) == SubmissionDecision(Action.KILL, kill=(first,))


def test_a_rerun_by_a_person_trains_again_after_a_success(start, yarn):
    yarn.submit(start(), reason=Reason.SUCCEEDED)
    assert yarn.decide(start(launcher=6)).action is Action.REPORT
    assert yarn.decide(start(run=1, launcher=8)).action is Action.SUBMIT
    assert yarn.decide(start(workflow=AGAIN, launcher=9)).action is Action.SUBMIT


def test_the_launcher_of_an_older_request_gives_way(start, yarn):
    newer = yarn.submit(start(workflow=AGAIN, launcher=9))
    assert yarn.decide(start(attempt=2)) == SubmissionDecision(Action.SUPERSEDED, newer)


def test_a_second_attempt_reports_a_failure_and_retry_max_trains_again(start, yarn):
    first = yarn.submit(start(), reason=Reason.TASK_FAILED)
    assert yarn.decide(start(attempt=2)) == SubmissionDecision(Action.REPORT, first)
    assert yarn.decide(start(launcher=6)).action is Action.SUBMIT


def test_a_second_attempt_trains_again_after_yarn_has_ended_the_first_one(start, yarn):
    yarn.submit(start(), reason=Reason.KILLED, killed_by_attempt=start().number)
    assert yarn.decide(start(attempt=2)).action is Action.SUBMIT


def test_trainings_of_two_nominal_times_workflows_and_actions_are_apart(start):
    starts = [
        start(),
        start(coordinator="0000001-261122180532001-oozie-o-C@8"),
        start(coordinator=None),
        start(coordinator=None, workflow=AGAIN),
        start(action="other"),
    ]
    assert len({launched.key for launched in starts}) == len(starts)


def test_the_tag_of_oozie_is_on_the_application(start):
    assert start().tags == (start().request_tag, "oozie-12ab")


def test_outside_of_oozie_the_action_says_so():
    with pytest.raises(SpecInvalid, match="only Oozie starts this program"):
        Launched.read({})

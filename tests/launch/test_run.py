"""The run that all doors share: its outcome, its lines, the ids that it announces."""

import pytest

from support.place import ID, job
from tf_yarn_ops.errors import Cancelled, ClusterUnreachable, SubmissionRejected
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.run import EngineRun, RunOutcome, dry_run_text
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    "error, state, left",
    [
        (ClusterUnreachable("no answer"), "", ID),
        (SubmissionRejected("no such queue"), "FAILED", ""),
        (Cancelled("enough"), "KILLED", ""),
    ],
)
def test_settle_names_an_application_that_may_still_run(error, state, left):
    outcome = EngineRun(print, print, application_ids=["application_1_0001", ID]).settle(raising(error))
    assert (outcome.report.application_id, outcome.report.state, outcome.left) == (ID, state, left)
    lines = outcome.lines("a retry goes on with it", " --user ann")
    assert lines[:2] == [str(error), error.hint]
    assert lines[2:] == (
        [f"{ID} may still run: a retry goes on with it", f"next: ytf kill {ID} --user ann"] if left else []
    )


def test_settle_leaves_faults_of_the_program_alone():
    with pytest.raises(ZeroDivisionError):
        EngineRun(print, print).settle(raising(ZeroDivisionError()))


def test_an_outcome_without_error_is_described_by_its_report():
    report = JobReport(ID, state="FINISHED", final_status="SUCCEEDED", reason=Reason.SUCCEEDED, message="2 tasks")
    assert RunOutcome(report).lines("")[0] == f"{ID} SUCCEEDED: 2 tasks"


def test_train_announces_each_application_once_and_follows_it(place):
    said, announced = [], []
    place.yarn.faults.append(
        lambda method, path: (
            place.yarn.end(ID, "", "FINISHED", "SUCCEEDED")
            if method == "GET" and ID in path and place.yarn.apps.get(ID)
            else None
        )
    )
    run = EngineRun(said.append, announced.append, poll_interval=0.01)
    assert run.train(place.launcher(), job(), None).reason is Reason.SUCCEEDED
    assert announced == run.application_ids == [ID] and said[-1].startswith(f"{ID} FINISHED")


def test_a_dry_run_masks_secrets_and_leaves_the_job_alone():
    spec = JobSpec(
        command="x --password=hush1 https://ann:hush2@host/",
        env={"API_TOKEN": "hush", "STEPS": "3"},
        tasks={"worker": TaskSpec(instances=1, env={"DB_PASSWD": "hush"})},
    )
    job_text, application = dry_run_text(spec).split("---\n# The application, as Skein reads it\n")
    assert "hush" not in job_text + application and "name: " in application
    assert "command: x --password=*** https://ann:***@host/" in job_text and "STEPS: '3'" in job_text
    assert "API_TOKEN: '***'" in job_text and "DB_PASSWD: '***'" in job_text
    assert spec.env["API_TOKEN"] == spec.tasks["worker"].env["DB_PASSWD"] == "hush"

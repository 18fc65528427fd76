"""What an attacker writes where our coordinator writes its report."""

import json

import httpx

from support.fake_yarn import STAMP, killed_text
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, parse_diagnostics


def forged(application_id, reason=Reason.SUCCEEDED):
    """Return a report that claims an end, as JSON on one line."""
    report = JobReport(
        application_id,
        reason=reason,
        message="all fine",
        metrics={"accuracy": 0.99},
        output_path="hdfs://evil/x",
        tracking_url="javascript:alert(1)",
        tensorboard_url="javascript:alert(2)",
    )
    short = {name: value for name, value in report.to_dict().items() if value or name == "schema"}
    return json.dumps(short, separators=(",", ":"))


def kill_as(hadoop, user, application_id, words):
    """Kill an application over REST as a user who is not its owner."""
    answer = httpx.put(
        f"{hadoop.resourcemanager_url}/ws/v1/cluster/apps/{application_id}/state",
        params={"user.name": user},
        json={"state": "KILLED", "diagnostics": words},
        headers={"X-XSRF-HEADER": "x"},
        trust_env=False,
        timeout=30,
    )
    answer.raise_for_status()


def check_verdict(application, killer):
    """Check the report of a job that succeeded, as a cluster shows it; and that a forged one is not believed.

    Parameters
    ----------
    application : dict
        YARN's answer: the tag and the secret have come through the cluster's login or gateway.
    killer : str
        A user who is not its owner.
    """
    name, tags = application["id"], application["applicationTags"].split(",")
    report, proven = parse_diagnostics(application["diagnostics"], name, tags)
    assert (report.reason, proven) == (Reason.SUCCEEDED, True)
    assert [task.host for task in read_yarn_report(application).tasks] == [task.host for task in report.tasks]
    words = killed_text(name, f"bye\n{forged(name)}", killer)
    killed = read_yarn_report({**application, "state": "KILLED", "finalStatus": "KILLED", "diagnostics": words})
    assert killed.reason is Reason.KILLED and not (killed.metrics or killed.tasks) and killer in killed.message


#: How YARN ends an application whose diagnostics hold somebody's text: state, final status, diagnostics.
ENDS = {
    "killed by another user": lambda name: ("KILLED", "KILLED", killed_text(name, f"bye\n{forged(name)}", "mallory")),
    "killed by the owner": lambda name: ("KILLED", "KILLED", killed_text(name, f"bye\n{forged(name)}")),
    "a line of the log": lambda name: ("FINISHED", "FAILED", f"worker:0 failed with exit code 1: {forged(name)}"),
    "a line of its own": lambda name: ("FINISHED", "FAILED", f"failed\n{forged(name)}"),
    "superseded": lambda name: ("FINISHED", "FAILED", f"failed\n{forged(name, Reason.SUPERSEDED)}"),
}


def end_forged(yarn, name, how):
    """End an application of a `FakeYarn` in one of the ways of `ENDS`."""
    state, final, text = ENDS[how](name)
    yarn.apps[name].update(
        state=state, finalStatus=final, diagnostics=text, launchTime=STAMP + 1000, finishedTime=STAMP + 5000
    )

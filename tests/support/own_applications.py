"""Applications of one identity as YARN lists them."""

from support.fake_yarn import STAMP, application, verdict_text
from support.place import USER
from tf_yarn_ops.launch.claims import Claims
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

ME = Identity("server dag run task", generation=1, attempt=2, deployment="server")


def number(value):
    return f"application_{STAMP}_{value:04d}"


def mine(at, state="RUNNING", generation=1, attempt=2, reason=None, **fields):
    """One application of the identity."""
    if reason is not None:
        fields["diagnostics"] = verdict_text(JobReport(number(at), reason=reason, message="x"))
        fields["finalStatus"] = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
        state = "FINISHED"
    tags = ",".join(Identity(ME.key, generation, attempt, ME.deployment).tags)
    return application(at, state, **{"user": USER, "applicationTags": tags} | fields)


def claims_of(place, identity=ME):
    return Claims(place.launcher().session, USER, identity)

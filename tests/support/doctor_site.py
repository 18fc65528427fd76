"""A healthy cluster to examine, and what may be wrong with it."""

from tf_yarn_ops.doctor.examination import CHECKS, Diagnosis, examine
from tf_yarn_ops.doctor.known import Question
from tf_yarn_ops.hadoop.cluster import current_user
from tf_yarn_ops.hadoop.site import Site

USER = current_user({})
INFO, NEW = "/ws/v1/cluster/info", "/ws/v1/cluster/apps/new-application"
REMOTE = '{"RemoteException": {"exception": "ForbiddenException", "message": "App submission via REST is disabled."}}'
HTML = "<html><title>Welcome</title><body>Please log in</body></html>"
LEAF = {
    "type": "capacitySchedulerLeafQueueInfo",
    "queueName": "default",
    "queuePath": "root.default",
    "state": "RUNNING",
    "absoluteCapacity": 80.0,
    "absoluteMaxCapacity": 100.0,
    "numApplications": 3,
    "maxApplications": 8000,
    "maxParallelApps": 2**31 - 1,
    "maxApplicationLifetime": 86400,
}


def question(yarn, site=None, **values):
    environ = {"HOME": "/nowhere", "HADOOP_USER_NAME": USER, "PATH": str(yarn.program.parent)}
    return Question(environ, values.pop("url", yarn.url), site=site or Site(request_timeout=2), **values)


def diagnose(yarn, site=None, checks=CHECKS, **values):
    return examine(question(yarn, site, **values), checks=checks)


def of(diagnosis: Diagnosis, name: str):
    return next(result.finding for result in diagnosis.results if result.check == name)


def outcomes(diagnosis):
    return {result.check: result.finding.outcome.value for result in diagnosis.results}


def answers(path, status, text="", kind="application/json", **headers):
    """Return a change of the fake: requests for a path get this answer."""

    def change(yarn):
        yarn.faults.append(
            lambda method, asked: (status, {"Content-Type": kind, **headers}, text) if asked.startswith(path) else None
        )

    return change


def sets(**values):
    return lambda yarn: [setattr(yarn, name, value) for name, value in values.items()]


def no_directory(yarn):
    (yarn.files / "user").write_text("a file")


def with_java(yarn):
    java = yarn.program.with_name("java")
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)

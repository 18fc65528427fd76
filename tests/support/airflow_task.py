"""An operator on a fake ResourceManager, without a scheduler, and the tools that run it."""

import re
import threading
from contextlib import contextmanager

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType, TaskDeferred
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse, PutVariable, VariableResult

from support import airflow_setup
from support.fake_yarn import STAMP, FakeYarn, serving, verdict_text
from support.waiting import until
from tf_yarn_ops.airflow import TensorFlowYarnOperator, task_instance
from tf_yarn_ops.hadoop.cluster import current_user
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport, parse_diagnostics

ID = f"application_{STAMP}_0001"
SECOND = f"application_{STAMP}_0002"
USER = current_user({})
JOB = {"task_command": "true", "cluster_requirement": "worker:2", "task_memory": 256}


class Site:
    """A fake YARN with a real file system, a connection to it, and operators for it."""

    def __init__(self, yarn, url):
        self.yarn, self.url = yarn, url
        self.connection = {"conn_type": "tf_yarn", "host": url, "extra": {"unreachable_timeout": 1}}

    def operator(self, **arguments):
        return TensorFlowYarnOperator(**{"task_id": "train", "poll_interval": 0.05, **JOB, **arguments})

    def end(self, name, reason=Reason.SUCCEEDED, **values):
        """End an application as its coordinator would."""
        final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
        report = JobReport(name, reason=reason, message=values.pop("message", "it ended"), **values)
        self.yarn.apps[name].update(
            state="FINISHED",
            finalStatus=final,
            diagnostics=verdict_text(report),
            launchTime=STAMP + 1000,
            finishedTime=STAMP + 5000,
        )

    @contextmanager
    def ending(self, name=ID, looks=0, **values):
        """End an application as soon as there is one, and YARN has listed it so many times."""

        def end():
            until(lambda: name in self.yarn.apps)
            before = self.yarn.count("GET", "/ws/v1/cluster/apps")
            until(lambda: self.yarn.count("GET", "/ws/v1/cluster/apps") >= before + looks)
            self.end(name, **values)

        thread = threading.Thread(target=end)
        thread.start()
        yield
        thread.join()

    @contextmanager
    def not_launching(self):
        """Say of the first application that its master could not be launched."""
        words = "Application application_1_0001 failed 1 times due to Error launching appattempt_1_0001_000001. Got exception: java.io.EOFException"
        failed = {"state": "FAILED", "finalStatus": "FAILED", "diagnostics": words}
        thread = threading.Thread(
            target=lambda: (until(lambda: ID in self.yarn.apps), self.yarn.apps[ID].update(failed))
        )
        thread.start()
        yield
        thread.join()

    def killer(self):
        """Return the attempt that has killed the first application, as YARN's diagnostics tell it."""
        return parse_diagnostics(self.yarn.apps[ID]["diagnostics"], ID)[0].killed_by_attempt

    def submissions(self):
        return self.yarn.count("POST", "/ws/v1/cluster/apps") - self.yarn.count("POST", "/ws/v1/cluster/apps/new")


@contextmanager
def serving_site(files, kind=Site):
    """Serve the fake YARN of a `Site`, or of another kind of place, whose file system is this folder."""
    files.mkdir(exist_ok=True)
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "yarn.application.classpath": "/etc/hadoop/conf",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{files}",
    }
    with serving(yarn) as url:
        yield kind(yarn, url)


class VariableServer:
    """Airflow's variables, behind the supervisor of each of its tasks."""

    def __init__(self, monkeypatch, **variables):
        self.variables, self.fault = variables, None
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", self, raising=False)
        monkeypatch.setattr(task_instance, "_SETTLED", 0.01)

    def send(self, message):
        if self.fault:
            raise AirflowRuntimeError(ErrorResponse(error=self.fault))
        if isinstance(message, PutVariable):
            self.variables[message.key] = message.value
            return None
        if message.key not in self.variables:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.VARIABLE_NOT_FOUND))
        return VariableResult(key=message.key, value=self.variables[message.key])


def run(operator, **values):
    """Execute an operator. Return its value, its task instance and its context."""
    ti = airflow_setup.TaskInstance(**values)
    context = airflow_setup.context_of(ti)
    return operator.execute(context), ti, context


def deferral(operator, ti=None):
    context = airflow_setup.context_of(ti or airflow_setup.TaskInstance())
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context)
    return deferred.value, context


def task_log(capsys):
    """Return the messages that the operator and the trigger have logged."""
    logged = re.findall(
        r"\[(?:info|warning|error) *\] (.*?) *\[[\w.]*tf_yarn_ops\.airflow\.[\w.]+\]", capsys.readouterr().out
    )
    return [line for line in logged if "outside of the Task Runner" not in line]


def report_of(reason=Reason.TASK_FAILED, **values):
    task = TaskReport("worker:1", "failed", exit_code=3, host="node1", log_tail="one\ntwo\nthree\n")
    return JobReport(
        ID,
        **{
            "reason": reason,
            "message": "it ended",
            "tasks": (TaskReport("worker:0"), task),
            "first_failure": "worker:1",
        }
        | values,
    )


class Running(threading.Thread):
    """A task in a thread, where a test can call its ``on_kill`` as the signal handler does."""

    def __init__(self, operator, **values):
        super().__init__(daemon=True)
        self.operator, self.ti, self.error = operator, airflow_setup.TaskInstance(**values), None
        self.start()

    def run(self):
        try:
            self.operator.execute(airflow_setup.context_of(self.ti))
        except BaseException as error:
            self.error = error


async def first_event(trigger):
    async for event in trigger.run():
        return event.payload


def resume(operator, error, **values):
    context = airflow_setup.context_of(airflow_setup.TaskInstance(**values))
    return operator.resume_execution("__fail__", {"error": error}, context), context

"""The execution of Azkaban to which a job belongs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from support.azkaban_process import AZKABAN, finish, submitted
from tf_yarn_ops.azkaban.job_execution import JobExecution
from tf_yarn_ops.launch.identity import Run


def test_the_execution_is_read_from_what_nobody_can_override(caplog):
    overridden = {**AZKABAN, "azkaban.flow.execid": "1", "azkaban.flow.nested.path": "other:job"}
    execution = JobExecution.read(overridden)
    assert (execution.execution_id, execution.job) == ("42", "train")
    assert "azkaban.flow.execid is '1', but by azkaban.job.metadata.file this is execution 42" in caplog.text
    assert execution.identity().tag == JobExecution.read(AZKABAN).identity().tag


EXECUTIONS = [
    ({}, ("azkaban.example.org", "42", "train", 0)),
    ({"azkaban.job.attempt": "3", "azkaban.job.metadata.file": "_job.42.3.train.meta"},
     ("azkaban.example.org", "42", "train", 3)),
    ({"azkaban.job.metadata.file": "_job.42.outer._.inner._.train.meta"},
     ("azkaban.example.org", "42", "outer:inner:train", 0)),
    ({"azkaban.job.attempt": "1", "azkaban.job.metadata.file": "_job.42.1.2.train.meta"},
     ("azkaban.example.org", "42", "2.train", 1)),
    ({"azkaban.job.metadata.file": "", "azkaban.job.log.file": "/exec/42/_job.42.train.log", "azkaban.url": "",
      "azkaban.webserverhost": "az"}, ("az", "42", "train", 0)),
    ({"azkaban.url": ""}, ("", "42", "train", 0)),  # not this machine's name: a retry may run on another executor
    ({"azkaban.job.metadata.file": "", "azkaban.job.attempt": ""}, ("azkaban.example.org", "42", "train", 0)),
    ({"azkaban.job.metadata.file": "", "azkaban.job.attempt": "\u00b2"}, ("azkaban.example.org", "42", "train", 0)),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "execution"), EXECUTIONS, ids=range(len(EXECUTIONS)))
def test_executions_of_all_versions(properties, execution):
    found = JobExecution.read({**AZKABAN, **properties})
    assert (found.server, found.execution_id, found.job, found.attempt) == execution


def test_each_job_of_each_server_is_its_own():
    changes = [
        {},
        {"azkaban.url": "http://other"},
        {"azkaban.flow.projectname": "p"},
        {"azkaban.flow.projectid": "8"},
        {"azkaban.flow.flowid": "f"},
        {"azkaban.job.metadata.file": "_job.43.train.meta"},
        {"azkaban.job.metadata.file": "_job.42.sub._.train.meta"},
    ]
    found = [JobExecution.read({**AZKABAN, **change}).identity() for change in changes]
    assert set(Counter((identity.tag, identity.generation) for identity in found).values()) == {1}
    assert (found[0].tag, found[0].generation, found[5].generation) == (found[5].tag, 42, 43)
    assert JobExecution.read({**AZKABAN, "ytf.backfill.date": "2026-11-01"}).identity().tag != found[0].tag


@pytest.mark.parametrize(("attempt", "retries", "left"), [(0, 2, 2), (1, 2, 1), (2, 2, 0), (3, 2, 0)])
@pytest.mark.parametrize("folder", [Path("/exec/42"), Path("/exec/41"), None])
def test_run_has_the_attempts_that_may_follow_and_the_own_folder(attempt, retries, left, folder):
    execution = replace(JobExecution.read(AZKABAN), attempt=attempt, retries=retries, backoff=5.0)
    own = folder if folder == Path("/exec/42") else None
    assert execution.identity(lease=60.0, folder=folder).run == Run(left, 65.0, own)


@pytest.mark.slow
def test_too_many_tags_are_a_fault_unless_tony_would_drop_them(azkaban, yarn):
    job = azkaban({"tf.tags": "a,b,c"}).start()
    assert job.end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: tf.tags: 3 given, at most 2 allowed")
    job = azkaban({"tony.application.tags": "a,b,c"}).start()
    submitted(yarn)
    finish(yarn)
    assert job.end() == 0
    assert any(line.startswith("warning: tony.application.tags: 3 given") for line in job.lines)


@pytest.mark.slow
def test_no_job_passes_for_another_execution(azkaban, yarn):
    stolen = f"{JobExecution.read(AZKABAN).identity().tag.upper()},Azkaban.flow.execid:43"
    job = azkaban({"tf.tags": stolen}).start()
    assert job.end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: tf.tags: 'TFY-")
    assert job.lines[-1].endswith(
        "would look like a tag of Azkaban's or of another training's identity; choose another tag"
    )
    assert yarn.requests == []
    job = azkaban({"tony.application.tags": f"{stolen},mine"}).start()
    tags = submitted(yarn)["body"]["application-tags"]["tag"]
    finish(yarn)
    assert job.end() == 0
    assert "mine" in tags and "azkaban.flow.execid:43" not in tags and len(tags) == len(set(tags)) == 9
    assert any(
        line.startswith("warning: tony.application.tags: 'TFY-") and "; left out: " in line for line in job.lines
    )


@pytest.mark.slow
def test_tags_of_a_specification_are_counted_too(azkaban):
    job = azkaban({"tf.spec": "job.yaml"})
    (job.folder / "job.yaml").write_text("tags: [a, b, c]\n")
    assert job.start().end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: tf.spec: tags: 3 given, at most 2 allowed")

"""Tags of Azkaban's applications."""

import pytest

from support.azkaban_process import AZKABAN, finish, submitted
from tf_yarn_ops.azkaban.job_execution import JobExecution

pytestmark = pytest.mark.slow


def test_too_many_tags_are_a_fault_unless_tony_would_drop_them(azkaban, yarn):
    job = azkaban({"tf.tags": "a,b,c"}).start()
    assert job.end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: tf.tags: 3 given, at most 2 allowed")
    job = azkaban({"tony.application.tags": "a,b,c"}).start()
    submitted(yarn)
    finish(yarn)
    assert job.end() == 0
    assert any(line.startswith("warning: tony.application.tags: 3 given") for line in job.lines)


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


def test_tags_of_a_specification_are_counted_too(azkaban):
    job = azkaban({"tf.spec": "job.yaml"})
    (job.folder / "job.yaml").write_text("tags: [a, b, c]\n")
    assert job.start().end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: tf.spec: tags: 3 given, at most 2 allowed")

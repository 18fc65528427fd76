"""The XML documents of a packed application."""

import os
import re
from pathlib import Path

import javaproperties
import pytest

from support.oozie_package import FLOW, NOW, PLACE
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.oozie.package import documents_of
from tf_yarn_ops.oozie.request import read_oozie_request

GOLDEN = Path(__file__).parent / "golden"
REQUESTS = {
    "plain": {"property": ["rate=0.1 a=b"], "pex": True, "python": "/opt/tf/bin/python"},
    "cron": {"schedule": "0 2 * * MON-FRI", "data": ["hdfs:///clicks/${YEAR}-${MONTH}-${DAY}"], "done_flag": "",
             "data_instances": "-6:0", "retry_max": "2", "retry_interval": "1m", "launcher_memory": "512m"},
    "frequency": {"frequency": "1d", "timezone": "Europe/Berlin", "start": "2026-12-01T02:00+01:00", "end": "2027-01-01",
                  "data": ["clicks=/clicks/dt=${YEAR}${MONTH}${DAY}", "${nameNode}/stock/${YEAR}"],
                  "output_data": ["/models/${YEAR}${MONTH}${DAY}"], "timeout": "-1", "concurrency": "2", "throttle": "3",
                  "execution": "LAST_ONLY", "sla_end": "6h", "sla_start": "30m", "sla_duration": "2h", "sla_contact": "a@b.c"},
    "jobs": {"frequency": "1d", "start": "2026-12-01", "property": ["models=hdfs:///models"], "launcher_memory": "512m"},
    "flow": {"frequency": "12h", "workflow": "flow.xml", "include": ["extra.sh"], "name": "both"},
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_the_documents_are_what_they_were(place, name):
    job = "jobs.yaml" if name == "jobs" else "job.yaml"
    documents = documents_of(read_oozie_request(job, REQUESTS[name], NOW), PLACE)
    text = "".join(f"# {file}\n{text}" for file, text in documents.items() if file != "launch.sh")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("ACCEPT_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text(), "if that is meant, accept it with ACCEPT_GOLDEN=1 and read the diff"
    assert javaproperties.loads(documents["job.properties"])["nameNode"] == "hdfs://nn:8020"


def test_own_workflow_holds_an_action_for_each_listed_job(place):
    (place / "jobs.yaml").write_text("jobs:\n- {name: train, job: job.yaml}\n- {name: judge, job: small.yaml}\n")
    with pytest.raises(SpecInvalid, match="it needs one action 'judge' with an empty shell"):
        read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW)
    (place / "flow.xml").write_text(
        re.sub(
            "<decision.*</decision>",
            """<action name="judge">
        <shell xmlns="uri:oozie:shell-action:1.0"/><ok to="end"/><error to="end"/></action>""",
            FLOW,
            flags=re.DOTALL,
        )
    )
    workflow = documents_of(read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW), PLACE)["workflow.xml"]
    assert "<file>job-train.yaml#job.yaml</file>" in workflow and "<file>job-judge.yaml#job.yaml</file>" in workflow
    (place / "jobs.yaml").write_text(
        "jobs: [{name: train, job: job.yaml, needs: judge}, {name: judge, job: small.yaml}]"
    )
    with pytest.raises(
        SpecInvalid, match=r"train\.needs: the workflow of --workflow says what comes before a training"
    ):
        read_oozie_request("jobs.yaml", {"workflow": "flow.xml"}, NOW)


@pytest.mark.parametrize(("flow", "fault"), [
    (FLOW.replace('name="train"', 'name="fit"'), "workflow: it needs one action 'train' with an empty shell"),
    (FLOW.replace("<shell ", "<shell><exec/></shell><x "), "and has 0; the workflow's own namespace is"),
    (FLOW.replace("</workflow-app>", ""), "workflow: not XML: "),
])  # fmt: skip
def test_a_flow_without_a_place_for_the_training_is_a_fault(place, flow, fault):
    (place / "flow.xml").write_text(flow)
    with pytest.raises(SpecInvalid) as caught:
        read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW)
    assert fault in str(caught.value)


def faults_of_flow(place, *changes):
    text = FLOW
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (place / "flow.xml").write_text(text)
    with pytest.raises(SpecInvalid) as caught:
        documents_of(read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW), PLACE)
    assert {fault.path for fault in caught.value.faults} == {"workflow.xml"}, caught.value
    return [fault.text for fault in caught.value.faults]


def test_flow_that_oozie_would_refuse_is_refused_before_writing(place):
    texts = " ".join(faults_of_flow(place, ('<default to="end"/>', '<default/><otherwise to="0"/>')))
    assert "line 12: " in texts and "The attribute 'to' is required but missing" in texts


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (
            "wf:actionData('train')",
            "wf:actonData('wf:nothing(')",
            "line 11: 'wf:actonData' is not a function of Oozie's workflows (did you mean 'wf:actionData'?)",
        ),
        ("ge 0.9", "ge coord:nominalTime()", "line 11: 'coord:nominalTime' is not a function of Oozie's workflows"),
    ],
)
def test_unknown_function_is_rejected_while_packing(place, before, after, fault):
    assert faults_of_flow(place, (before, after)) == [fault]

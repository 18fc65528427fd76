"""A flow of one's own around the training."""

import pytest

from support.oozie_package import FLOW, NOW, PLACE
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.oozie.package import documents_of
from tf_yarn_ops.oozie.request import read_oozie_request


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
    schema, other, nowhere = faults_of_flow(place, ('<default to="end"/>', '<default/><otherwise to="0"/>'))
    assert "line 12: " in schema + other and "The attribute 'to' is required but missing" in schema + other
    assert "leads to '0', and there is no such node" in nowhere


@pytest.mark.parametrize(("before", "after", "faults"), [
    ('<error to="end"/>', '<error to="ends"/>',
     ["line 7: 'train' leads to 'ends', and there is no such node (did you mean 'end'?); nodes: :start:, train, judge, end"]),
    ('<default to="end"/>', '<default to="train"/>', ["line 4: train -> judge -> train is a loop, and Oozie refuses loops"]),
    ('<ok to="judge"/>', '<ok to="end"/>', ["line 9: nothing leads to 'judge'; lead a transition to it, or delete it"]),
    ('<end name="end"/>', '<kill name="end"><message>x</message></kill><end name="end"/>',
     ["line 15: there are two nodes 'end'; names are unique in a workflow"]),
    ("wf:actionData('train')", "wf:actonData('wf:nothing(')",
     ["line 11: 'wf:actonData' is not a function of Oozie's workflows (did you mean 'wf:actionData'?)"]),
    ("ge 0.9", "ge coord:nominalTime()",
     ["line 11: 'coord:nominalTime' is not a function of Oozie's workflows"]),
], ids=["node", "loop", "unreached", "name", "function", "coordinator"])  # fmt: skip
def test_faulty_flow_is_rejected_while_packing(place, before, after, faults):
    assert faults_of_flow(place, (before, after)) == faults

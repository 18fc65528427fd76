"""The summary of a record, for lists and indexes."""

import json

from support.records import STAMP, add, record
from support.staging_place import USER
from tf_yarn_ops.history.histories import Histories
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.record_summary import summarise


def test_summaries_of_indexes_are_those_of_records(cluster):
    made = [record(number, user=USER, ended=STAMP + float(number)) for number in range(10)]
    for one in made:
        add(cluster, one)
    expected = [summarise(one) for one in reversed(made)]
    assert list(Histories(cluster).find(Query())) == list(Histories(cluster).find(Query())) == expected


def test_a_summary_has_a_short_curve_and_the_last_metrics():
    summary = summarise(record(metrics={"accuracy": 0.9, "note": "text", "good": True}))
    assert summary["metrics"] == {"loss": 0.275, "accuracy": 0.9}
    assert summary["curve"][0] == "loss" and len(summary["curve"][1]) == 24 and summary["curve"][1][-1] == 0.275
    assert len(json.dumps(summary)) < 1200

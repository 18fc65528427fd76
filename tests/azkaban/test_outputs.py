"""Output properties for jobs downstream."""

import json
import re

import pytest

from support.azkaban_process import ID
from tf_yarn_ops.azkaban.outputs import output_properties, write_job_outputs
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.slow


def test_the_program_chooses_neither_keys_nor_expressions(caplog):
    metrics = {"../x": 1, "a b": 2, "a_b": 3, "": 4, "ü" * 300: 5, "e": "$(1+1)", "v": "${azkaban.url}", "$": "$5",
               "list": [1, None], "long": "x" * 2000, "quote\"\n": "\"\n"}  # fmt: skip
    found = output_properties(
        JobReport(ID, final_status="SUCCEEDED", reason=Reason.SUCCEEDED, metrics=metrics, output_path="/x/$(evil)")
    )
    assert all(re.fullmatch(r"tf\.result\.[a-z_]+|tf\.result\.metrics\.[A-Za-z0-9_.]{1,100}", name) for name in found)
    assert all(isinstance(text, str) for text in found.values())
    assert not any("$(" in text or "${" in text for text in found.values())
    own = {name.removeprefix("tf.result.metrics."): text for name, text in found.items() if ".metrics." in name}
    assert own == {
        "_x": "1",
        "a_b_": "2",
        "a_b": "3",
        "_": "4",
        "_" * 100: "5",
        "__": "$5",
        "list": "[1, null]",
        "quote__": '"\n',
    }
    assert "tf.result.output_path is left out: it holds ${ or $(, which Azkaban would evaluate" in caplog.text


def test_a_thousand_metrics_are_a_hundred(caplog):
    report = JobReport(ID, metrics={f"m{number}": number for number in range(1000)})
    assert sum(".metrics." in name for name in output_properties(report)) == 100
    assert "more than 100 metrics" in caplog.text


def test_the_outputs_replace_what_was_there(tmp_path):
    path = tmp_path / "out"
    path.write_text("x" * 1000)
    write_job_outputs(str(path), {"tf.result.a": "ü\n"})
    assert path.read_bytes().isascii() and json.loads(path.read_text()) == {"tf.result.a": "ü\n"}

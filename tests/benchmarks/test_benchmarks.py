"""The benchmarks still run and count right; nothing here looks at a clock."""

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import against, doors, heartbeats, rendezvous
from benchmarks.__main__ import NAMES, main
from benchmarks.samples import Samples, interleave
from support.programs import ROOT
from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.reasons import Reason

#: Beyond three messages an agent: none is needed while all goes well.
SPARE = 4


@pytest.mark.slow
def test_rendezvous_takes_three_messages_for_each_agent(tmp_path):
    size = 20
    told = rendezvous.meet(size, tmp_path / "am", crowds=2)
    assert told["messages"] <= 3 * size + SPARE
    (spec,) = told["specs"]
    assert json.loads(spec) == {"worker": [f"127.0.0.1:{10000 + index}" for index in range(size)]}
    assert told["report"].reason is Reason.SUCCEEDED
    assert len(told["report"].tasks) == size


def test_heartbeats_are_samples_that_a_coordinator_takes():
    protocol.check_message(protocol.decode(heartbeats.sample(1)), protocol.FROM_AGENT["sample"])


def test_cases_take_turns_and_every_other_round_goes_backwards():
    seen = []
    samples = interleave({name: lambda name=name: seen.append(name) or {"s": len(seen)} for name in "ab"}, 3, Samples())
    assert seen == ["a", "b", "b", "a", "a", "b"]
    assert samples.values == {"a": {"s": [1, 4, 5]}, "b": {"s": [2, 3, 6]}}


def test_a_row_has_median_range_and_the_ratio_of_the_medians():
    samples = Samples({"old": {"s": [2.0, 4.0, 3.0]}, "new": {"s": [1.5, 1.0, 9.0]}}, against={"new": "old"})
    old, new = samples.rows()
    assert (old["median"], old["min"], old["max"], old["ratio"]) == (3.0, 2.0, 4.0, None)
    assert new["ratio"] == 0.5
    assert "0.50 x old" in samples.table()


def test_results_are_kept_as_json_with_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "measure", lambda runs, quick: Samples({"a": {"s": [1.0] * runs}}))
    result = CliRunner().invoke(main, ["rendezvous", "--runs", "2", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "rendezvous.json").read_text())
    assert document["rows"][0]["values"] == [1.0, 1.0]
    assert document["machine"]["cores"] >= 1


@pytest.mark.slow
def test_another_commit_is_measured_in_turn_and_compared(tmp_path, monkeypatch):
    for name, place in {".venv": sys.prefix, "benchmarks": ROOT / "benchmarks", "tests": ROOT / "tests"}.items():
        (tmp_path / name).symlink_to(place)
    monkeypatch.setattr(against, "checkout", lambda commit: tmp_path)
    words = ["heartbeats", "--quick", "--runs", "1", "--against", "HEAD~1", "--output", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "heartbeats.json").read_text())["rows"]
    ours, theirs = ([row["figure"] for row in rows if row["case"] == case] for case in ("this checkout", "HEAD~1"))
    assert ours == theirs and "100 agents: its report KiB" in ours
    assert all(row["ratio"] for row in rows if row["case"] == "this checkout")


@pytest.mark.slow
def test_door_is_measured_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(doors, "DOORS", {"help": doors.DOORS["ytf --help"]})
    (values,) = doors.measure(1, True).values.values()
    assert set(values) == {"CPU s", "wall s", "peak MiB"} and values["CPU s"][0] > 0.05


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_its_title(name):
    module = __import__(f"benchmarks.{name}", fromlist=["TITLE"])
    assert module.TITLE and callable(module.measure)


def test_the_page_of_figures_and_the_help_name_every_benchmark():
    page = (Path(__file__).parents[2] / "docs" / "operations" / "performance.md").read_text(encoding="utf-8")
    assert set(NAMES) <= set(re.findall(r"`(\w+)`", page))
    assert tuple(re.findall(r"\w+", re.sub(r"\(.*?\)", "", main.help.partition("NAME: ")[2]))) == NAMES

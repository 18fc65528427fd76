"""Words of the command line to numbers: tables of good and bad input, with the exact messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_yarn_ops.errors import did_you_mean
from tf_yarn_ops.job.requirement import canonical_type, misspelt_type, parse_cluster_requirement, parse_overrides
from tf_yarn_ops.validation import parse_count, parse_memory


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ps:2,worker:4", {"ps": 2, "worker": 4}),
        ("ps:2, worker:4", {"ps": 2, "worker": 4}),
        (" worker : 1 ", {"worker": 1}),
        ("my-job_2:3", {"my-job_2": 3}),
        ("chiefworker:1,worker:2,ps:1", {"chief": 1, "worker": 2, "ps": 1}),
        ("master:1", {"chief": 1}),
        ("chief:1,worker:8,ps:1,evaluator:1", {"chief": 1, "worker": 8, "ps": 1, "evaluator": 1}),
    ],
)
def test_cluster_requirement(text, expected):
    faults = []
    assert parse_cluster_requirement(text, faults) == expected
    assert list(parse_cluster_requirement(text, [])) == list(expected)
    assert faults == []


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ["cluster_requirement, item 1 '': expected task_type:instances, for example ps:2,worker:4"]),
        ("ps", ["cluster_requirement, item 1 'ps': expected task_type:instances, for example ps:2,worker:4"]),
        ("ps:1,", ["cluster_requirement, item 2 '': expected task_type:instances, for example ps:2,worker:4"]),
        ("ps:1 worker:2", ["cluster_requirement: separate the task types by commas: ps:1,worker:2"]),
        ("ps:1; worker:2;x:1,y:2", ["cluster_requirement: separate the task types by commas: ps:1,worker:2,x:1,y:2"]),
        ("ps:0", ["cluster_requirement, item 1 'ps:0': '0' is not a whole number of at least 1"]),
        ("ps:-1", ["cluster_requirement, item 1 'ps:-1': '-1' is not a whole number of at least 1"]),
        ("ps:1.5", ["cluster_requirement, item 1 'ps:1.5': '1.5' is not a whole number of at least 1"]),
        ("ps:1,ps:2", ["cluster_requirement, item 2 'ps:2': task type 'ps' is given twice"]),
        ("master:1,chief:1",
         ["cluster_requirement, item 2 'chief:1': task type 'chief' is given twice"]),
        ("1ps:1", ["cluster_requirement, item 1 '1ps:1': '1ps' is not a task type; use letters, digits, '-' "
                   "and '_', a letter first"]),
        ("ps:0,wörker:1", [
            "cluster_requirement, item 1 'ps:0': '0' is not a whole number of at least 1",
            "cluster_requirement, item 2 'wörker:1': 'wörker' is not a task type; use letters, digits, "
            "'-' and '_', a letter first",
        ]),
    ],
)  # fmt: skip
def test_faults_of_a_cluster_requirement_are_all_named(text, messages):
    faults = []
    parse_cluster_requirement(text, faults)
    assert list(map(str, faults)) == messages


@pytest.mark.parametrize(
    ("value", "mebibytes"),
    [
        (8192, 8192), ("8192", 8192), ("512m", 512), ("512M", 512), ("512MB", 512), ("8 GiB", 8192), ("8g", 8192),
        ("1.5g", 1536), ("1t", 1048576), ("1k", 1), ("1025 KiB", 2), (" 3 gb ", 3072),
    ],
)  # fmt: skip
def test_memory(value, mebibytes):
    assert parse_memory(value) == mebibytes


@pytest.mark.parametrize("value", ["", "lots", "-1", "8 GiBs", "1e3", "8,5g", True, "0x10"])
def test_invalid_memory_is_refused(value):
    with pytest.raises(ValueError) as error:
        parse_memory(value)
    assert str(error.value) == f"{value!r} is not an amount of memory; write MiB (8192) or a unit (512m, 8 GiB)"


def test_no_memory_at_all():
    with pytest.raises(ValueError, match="'0' is too little memory; give at least 1 MiB"):
        parse_memory("0")


@given(st.integers(1, 10**6))
def test_gibibytes_are_1024_mebibytes(number):
    assert parse_memory(f"{number}g") == 1024 * number == parse_memory(1024 * number)


@pytest.mark.parametrize("value", ["٣", "1_000", "+1", "", "1 2", True])
def test_invalid_count_is_refused(value):
    with pytest.raises(ValueError, match="is not a whole number of at least 1"):
        parse_count(value)


def overrides(*texts, parse=parse_count):
    faults = []
    return parse_overrides("task_vcores", texts, {"chief": 1, "worker": 4}, parse, faults), faults


def test_three_forms_of_an_override():
    result, faults = overrides("1", "worker:2,worker[0]:4", "worker[ 3 ]: 8", "master:3")
    assert faults == []
    assert result == {
        ("", None): 1,
        ("worker", None): 2,
        ("worker", 0): 4,
        ("worker", 3): 8,
        ("chief", None): 3,
    }


def test_memory_with_a_unit_in_an_override():
    assert overrides("8 GiB,worker:512m", parse=parse_memory)[0] == {("", None): 8192, ("worker", None): 512}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "task_vcores '': expected a value, task_type:value or task_type[index]:value"),
        ("worker:", "task_vcores 'worker:': expected a value, task_type:value or task_type[index]:value"),
        ("x", "task_vcores 'x': 'x' is not a whole number of at least 1"),
        ("1,2", "task_vcores '2': every task already has the value 1; give it once"),
        ("wroker:2", "task_vcores 'wroker:2': there is no task type 'wroker' in the request, which has chief, worker "
                     "(did you mean 'worker'?)"),
        ("worker:1,worker:2", "task_vcores 'worker:2': worker already has the value 1; give it once"),
        ("worker[4]:2", "task_vcores 'worker[4]:2': index '4' is out of range; worker has 0 to 3"),
        ("worker[-1]:2", "task_vcores 'worker[-1]:2': index '-1' is out of range; worker has 0 to 3"),
        ("worker[a]:2", "task_vcores 'worker[a]:2': index 'a' is out of range; worker has 0 to 3"),
        ("worker[1]:2,worker[1]:3", "task_vcores 'worker[1]:3': worker[1] already has the value 2; give it once"),
        ("worker:2:3", "task_vcores 'worker:2:3': expected a value, task_type:value or task_type[index]:value"),
    ],
)  # fmt: skip
def test_faults_of_an_override(text, message):
    assert list(map(str, overrides(text)[1])) == [message]


def test_all_faults_of_overrides_are_named():
    assert len(overrides("0,wroker:2", "worker[9]:1", "worker:x")[1]) == 4


def test_chief_has_three_spellings():
    assert [canonical_type(name) for name in ("chief", "master", "chiefworker", "worker")] == [
        "chief", "chief", "chief", "worker"]  # fmt: skip


def test_did_you_mean_is_silent_without_a_near_name():
    assert did_you_mean("zzz", ["worker"]) == ""


@given(st.text(max_size=40))
def test_any_text_gives_a_requirement_or_a_fault(text):
    faults = []
    requirement = parse_cluster_requirement(text, faults)
    assert faults or (requirement and all(count >= 1 for count in requirement.values()))


@given(st.lists(st.text(max_size=20), max_size=4))
def test_any_text_gives_overrides_or_a_fault(texts):
    result, faults = overrides(*texts)
    assert faults or not texts or result


def test_endless_index_is_a_fault():
    assert len(overrides("worker[" + "1" * 5000 + "]:1")[1]) == 1


@pytest.mark.parametrize("name, meant", [("wroker", "worker"), ("walker", None), ("worker2", None), ("Chief", "chief")])
def test_name_that_is_four_fifths_similar_is_misspelt(name, meant):
    assert misspelt_type(name) == meant

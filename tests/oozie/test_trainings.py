"""Lists of jobs with ``needs``: how their actions nest, and every fault at once."""

import random

import pytest

from tf_yarn_ops.oozie.trainings import Fork, nest, read_trainings


def shown(steps):
    """Return a sequence as text: ``a (b | c) d``."""
    return " ".join(f"({' | '.join(map(shown, step.branches))})" if isinstance(step, Fork) else step for step in steps)


@pytest.mark.parametrize(("needs", "sequence"), [
    ({"a": ""}, "a"),
    ({"a": "", "b": "a", "c": "b"}, "a b c"),
    ({"c": "b", "b": "a", "a": ""}, "a b c"),
    ({"a": "", "b": ""}, "(a | b)"),
    ({"a": "", "b": "a", "c": "a", "d": "bc"}, "a (b | c) d"),
    ({"a": "", "b": "a", "c": "", "d": "c", "e": "bd"}, "(a b | c d) e"),
    ({"x": "", "a": "x", "b": "a", "c": "a", "d": "bc", "e": "x", "z": "de"}, "x (a (b | c) d | e) z"),
    ({"a": "", "b": "", "c": "a", "d": "ab"}, "(a | b) (c | d)"),
], ids=["one", "chain", "any order", "apart", "diamond", "chains", "nested", "no nesting"])  # fmt: skip
def test_actions_follow_what_they_need(needs, sequence):
    assert shown(nest(needs)) == sequence


def test_any_graph_becomes_a_nested_sequence_in_order():
    def ends(steps, before, ended):
        """Hold that each action comes after those that it needs; return all actions that have ended then."""
        for step in steps:
            if isinstance(step, Fork):
                assert len(step.branches) > 1
                before = before.union(*(ends(branch, before, ended) for branch in step.branches))
            else:
                assert set(needs[step]) <= before and step not in ended
                ended.append(step)
                before = before | {step}
        return before

    for seed in range(200):
        chance = random.Random(seed)
        names = "abcdefgh"[: chance.randint(1, 8)]
        needs = {name: [one for one in names[:at] if chance.random() < 0.3] for at, name in enumerate(names)}
        ended = []
        assert ends(nest(needs), frozenset(), ended) == set(names) and len(ended) == len(names)


def faults_of(*jobs, **others):
    faults = []
    read_trainings("jobs.yaml", {"jobs": list(jobs), **others}, faults)
    return [str(fault) for fault in faults]


def test_faults_of_a_list_come_together():
    assert faults_of({"name": "wide", "job": "w.yaml", "needs": "featurs"}, {"name": "wide", "job": "w.yaml"},
                     {"name": "fork-1", "job": "x.yaml"}, {"name": "a b", "job": "x.yaml"}, {"name": "x" * 121, "job": "x.yaml"},
                     {"job": "features.yaml", "need": ["wide"]}, {"name": "none"}, {"name": "odd", "job": "x.yaml", "needs": 3},
                     nam="all") == [
        "nam: unknown key (did you mean 'name'?); known: name, jobs",
        "jobs.6.need: unknown key (did you mean 'needs'?); known: name, job, needs",
        "none.job: missing; give the path of the job's YAML",
        "odd.needs: 3 is not a list of texts",
        "name: two jobs have the name 'wide'",
        "name: 'fork-1' is the name of another node of the workflow; choose another one",
        "name: 'a b' is not the name of an action; use a letter or _, then letters, digits, _ and -, at most 120",
        f"name: '{'x' * 121}' is not the name of an action; use a letter or _, then letters, digits, _ and -, at most 120",
        "wide.needs: there is no job 'featurs' (did you mean 'features'?); jobs: wide, wide, fork-1, a b, " + "x" * 121
        + ", features, odd",
    ]  # fmt: skip


def test_each_cycle_is_a_fault():
    jobs = [
        {"name": name, "job": "x.yaml", "needs": list(needs)}
        for name, needs in {"a": "b", "b": "c", "c": "a", "d": "d", "e": "a"}.items()
    ]
    assert faults_of(*jobs) == [
        "needs: a -> b -> c -> a: each of these jobs waits for the next one",
        "needs: d -> d: each of these jobs waits for the next one",
    ]


@pytest.mark.parametrize("jobs", [[], {"a": {"job": "x.yaml"}}, ["x.yaml"]], ids=["empty", "mapping", "texts"])
def test_malformed_list_of_jobs_is_a_fault(jobs):
    faults = []
    assert read_trainings("jobs.yaml", {"jobs": jobs}, faults) == []
    assert [fault.path for fault in faults] == ["jobs"]
    assert "is not a list of jobs; write each as a mapping with name, job, needs" in str(faults[0])

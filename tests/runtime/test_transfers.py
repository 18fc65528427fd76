"""The order in which a mirror copies, from two listings."""

import pytest

from tf_yarn_ops.runtime.agent.transfers import APPEND, DELETE, WRITE, Stamp, Transfer, in_order, plan_writes

NOW = 1000.0
OLD, NEW = 990, 999  # a file of NEW has not settled


def stamps(**files):
    """Return a listing from ``name=(length, second of the modification)``."""
    return {name: Stamp(length, int(second * 1e9)) for name, (length, second) in files.items()}


EVENTS = "train/events.out.tfevents.1"
CHECKPOINT = {"ckpt-1.data": (9, OLD), "ckpt-1.index": (1, OLD + 1), "checkpoint": (2, OLD + 2)}
SECOND = {"ckpt-2.data": (9, NEW), "ckpt-2.index": (1, NEW), "checkpoint": (3, NEW)}


@pytest.mark.parametrize(
    ("local", "sent", "now", "steps"),
    [
        pytest.param({}, {}, NOW, [], id="nothing"),
        pytest.param(CHECKPOINT, CHECKPOINT, NOW, [], id="nothing-new"),
        pytest.param(
            CHECKPOINT,
            {},
            NOW,
            [(WRITE, "ckpt-1.data"), (WRITE, "ckpt-1.index"), (WRITE, "checkpoint")],
            id="by-modification",
        ),
        pytest.param(
            dict.fromkeys(("checkpoint", "a.index", "z.data", "e/saved_model.pb", "e/a.pb"), (1, OLD)),
            {},
            NOW,
            [
                (WRITE, "e/a.pb"),
                (WRITE, "z.data"),
                (WRITE, "a.index"),
                (WRITE, "checkpoint"),
                (WRITE, "e/saved_model.pb"),
            ],
            id="indices-last-in-one-tick",
        ),
        pytest.param(
            {"latest": (1, OLD + 1), "any.pt": (9, OLD)},
            {},
            NOW,
            [(WRITE, "any.pt"), (WRITE, "latest")],
            id="any-framework",
        ),
        pytest.param({**CHECKPOINT, **SECOND}, CHECKPOINT, NOW, [], id="waits-until-settled"),
        pytest.param(
            {**CHECKPOINT, **SECOND},
            CHECKPOINT,
            float("inf"),
            [(WRITE, "ckpt-2.data"), (WRITE, "ckpt-2.index"), (WRITE, "checkpoint")],
            id="after-the-end-all",
        ),
        pytest.param({"a": (1, NOW + 9999)}, {}, NOW, [(WRITE, "a")], id="a-time-that-was-set"),
        pytest.param({EVENTS: (9, NEW)}, {}, NOW, [(WRITE, EVENTS)], id="new-event-file"),
        pytest.param({EVENTS: (9, NEW)}, {EVENTS: (5, OLD)}, NOW, [(APPEND, EVENTS)], id="event-file-grows"),
        pytest.param({EVENTS: (3, NEW)}, {EVENTS: (5, OLD)}, NOW, [(WRITE, EVENTS)], id="event-file-anew"),
        pytest.param(SECOND, {**CHECKPOINT}, NOW, [], id="deletion-waits-for-what-replaces-it"),
        pytest.param(
            SECOND,
            CHECKPOINT,
            float("inf"),
            [
                (WRITE, "ckpt-2.data"),
                (WRITE, "ckpt-2.index"),
                (WRITE, "checkpoint"),
                (DELETE, "ckpt-1.data"),
                (DELETE, "ckpt-1.index"),
            ],
            id="deletions-last",
        ),
        pytest.param({"latest": (1, NEW)}, {"step/1/a": (1, OLD)}, NOW, [], id="deletion-waits-for-files-above"),
        pytest.param(
            {"logs/x": (1, NEW)}, {"step/1/a": (1, OLD)}, NOW, [(DELETE, "step/1/a")], id="not-for-other-folders"
        ),
    ],
)
def test_plan_writes(local, sent, now, steps):
    assert plan_writes(stamps(**local), stamps(**sent), now) == [Transfer(*step) for step in steps]


def test_writes_are_complete_after_the_end():
    """A law: the steps after the end make the other side equal, whatever it was."""
    names = ["a", "b/c", EVENTS]
    for case in range(4 ** len(names)):
        local, sent = {}, {}
        for place, name in enumerate(names):
            kind = case // 4**place % 4  # gone, new, changed, the same
            if kind:
                local[name] = (2, NEW)
            if kind != 1:
                sent[name] = (1, OLD) if kind == 2 else (2, NEW)
        local, sent = stamps(**local), stamps(**sent)
        for step in plan_writes(local, sent, float("inf")):
            if step.action == DELETE:
                del sent[step.name]
            else:
                sent[step.name] = local[step.name]
        assert sent == local


def test_in_order_is_stable_for_one_tick():
    assert in_order(stamps(b=(1, 5), a=(1, 5), c=(1, 4))) == ["c", "a", "b"]

"""Committed output on real files: a crash or a freeze before every step of an application, and what readers see."""

import asyncio
import errno
import functools
import json
import threading

import pytest

from tf_yarn_ops.runtime.common.committed_output import (
    MODES,
    SUCCESS_FILE,
    CommitPlan,
    Success,
    dump_success,
    read_success,
)
from tf_yarn_ops.runtime.common.file_storage import LocalFolder, StorageAway
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import commit
from tf_yarn_ops.runtime.master.commit import OutputCommit, ResultExists, TakenOver, persist
from tf_yarn_ops.runtime.master.lifecycle import Verdict

TRAINING = "0123456789abcdef"
CALLS = ("status", "list", "makedirs", "create", "replace", "move", "move_over", "read_appended", "delete")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(commit, "COMMIT_PAUSE", 0.0)


class Killed(BaseException):
    """The application ends at once."""


class Steps:
    """A file system in which an application stops before or after one of its calls; a reader looks after each call."""

    def __init__(self, files, look, at=None, stop=None, after=None):
        self._files, self._look, self._at, self._stop, self._after = files, look, at, stop, after
        self.count = 0

    def __getattr__(self, name):
        call = getattr(self._files, name)
        if name not in CALLS:
            return call

        def step(*arguments):
            self.count += 1
            if self.count == self._at:
                self._stop()
            result = call(*arguments)
            self._look()
            if self.count == self._after:
                raise StorageAway("the answer was lost")
            return result

        return step


class Output:
    """An output on this machine, and a reader that fails on a result that is not whole."""

    def __init__(self, folder, mode):
        self.path, self.mode = folder / "models" / "digits", mode
        self.seen = set()

    def plan(self, generation=0, training=TRAINING, **values):
        return CommitPlan(self.mode, str(self.path), "", training, generation, **values)

    def results(self):
        """Return the paths of the results that are there."""
        if self.mode != "version":
            return [self.path] if self.path.exists() else []
        return [one for one in self.path.glob("*") if one.name.isdigit()]

    def look(self):
        for result in self.results():
            try:
                success = read_success((result / SUCCESS_FILE).read_bytes())
                sizes = {name: (result / name).stat().st_size for name, _ in success.files}
            except FileNotFoundError:
                assert not result.exists()  # it has just been replaced, or deleted as a version
                continue
            assert sizes == dict(success.files)
            self.seen.add(success.application_id)

    def made_by(self):
        """Return who has made the result that a reader gets: the latest version."""
        latest = self.path
        if self.mode == "version":
            latest = self.path / (self.path / "LATEST").read_text().strip()
        return read_success((latest / SUCCESS_FILE).read_bytes()).application_id


def application(number):
    return f"application_1700000000000_{number:04d}"


class Hadoop(LocalFolder):
    """Differs from folders of this machine as HDFS does: a write makes the folder that it leads to."""

    def create(self, path, data, permission):
        self.makedirs(path.rpartition("/")[0], 0o755)
        return super().create(path, data, permission)


class TwoUsers(LocalFolder):
    """A folder in which another user has made all that is there when it is opened."""

    def __init__(self, folder):
        super().__init__("/")
        self._planted = {str(one) for one in folder.rglob("*")}

    def status(self, path):
        found = super().status(path)
        return found._replace(owner="mallory") if found and path in self._planted else found

    def list(self, path):
        return [self.status(f"{path.rstrip('/')}/{one.name}") for one in super().list(path)]


def train(output, number, files, generation=0, training=TRAINING, **values):
    """Run one application; return how its start ended the job, None if it has trained and committed."""
    made = OutputCommit(output.plan(generation, training, **values), application(number), files)
    ending = made.prepare()
    if output.mode == "replace" and output.seen:
        assert output.results()  # the old result stays while a newer one is trained
    if ending is None:
        work = output.path.parent / made.working_url.rpartition("/")[2]
        if output.mode == "version":
            work = output.path / work.name
        (work / "variables").mkdir(exist_ok=True)
        (work / "model.bin").write_text(application(number))
        (work / "variables" / "checkpoint").write_text("steps")
        made.commit({"reason": "SUCCEEDED", "metrics": {"loss": number}})
    return ending


def beside(output):
    folder = output.path if output.mode == "version" else output.path.parent
    return sorted(one.name for one in folder.glob("_*")) if folder.exists() else []


@pytest.mark.parametrize("mode", MODES[1:])
def test_result_is_whole_lists_its_files_and_leaves_nothing(tmp_path, mode):
    output = Output(tmp_path, mode)
    assert train(output, 1, Steps(LocalFolder("/"), output.look)) is None
    (result,) = output.results()
    document = json.loads((result / SUCCESS_FILE).read_bytes())
    assert document["files"] == [
        {"name": "model.bin", "bytes": 30},
        {"name": "variables/checkpoint", "bytes": 5},
    ]
    assert document["report"]["output_path"] == str(result)
    assert beside(output) == []


def steps_of(tmp_path, mode, before):
    """Return how many calls an application makes."""
    output = Output(tmp_path / "count", mode)
    if before:
        train(output, 1, LocalFolder("/"), training="f" * 16)
    files = Steps(LocalFolder("/"), output.look)
    train(output, 2, files)
    return files.count


@pytest.mark.parametrize("mode", MODES[1:])
def test_retry_after_a_kill_before_any_step_makes_one_result(tmp_path, mode):
    before = mode != "new"
    for at in range(1, steps_of(tmp_path, mode, before) + 1):
        output = Output(tmp_path / str(at), mode)
        if before:
            train(output, 1, LocalFolder("/"), training="f" * 16)

        def kill():
            raise Killed

        with pytest.raises(Killed):
            train(output, 2, Steps(LocalFolder("/"), output.look, at, kill))
        ending = train(output, 3, Steps(LocalFolder("/"), output.look))
        ours = {application(2), application(3)}
        assert ending is None or ending.reason is Reason.SUCCEEDED
        assert output.made_by() in ours and len(output.seen & ours) == 1, at
        assert len(output.results()) == (2 if mode == "version" else 1)
        assert not [name for name in beside(output) if "work" in name or "sealed" in name], at


@pytest.mark.parametrize("mode", MODES[1:])
def test_lost_answer_of_any_step_is_repeated_without_harm(tmp_path, mode):
    before = mode != "new"
    for after in range(1, steps_of(tmp_path, mode, before) + 1):
        output = Output(tmp_path / str(after), mode)
        if before:
            train(output, 1, LocalFolder("/"), training="f" * 16)
        made = OutputCommit(output.plan(), application(2), Steps(LocalFolder("/"), output.look, after=after))
        assert asyncio.run(persist(made.prepare)) is None
        assert asyncio.run(persist(functools.partial(made.commit, {}))) is None
        assert output.made_by() == application(2) and beside(output) == [], after


class Frozen:
    """An application in a thread that stops before a call until it is thawed."""

    def __init__(self, output, number, at, files=None, **values):
        self._reached, self._go = threading.Event(), threading.Event()
        self.fault = self.ending = None
        files = Steps(files or Hadoop("/"), output.look, at, self._freeze)
        self._thread = threading.Thread(target=self._run, args=(output, number, files), kwargs=values)
        self._thread.start()
        assert self._reached.wait(60)

    def _freeze(self):
        self._reached.set()
        assert self._go.wait(60)

    def _run(self, output, number, files, **values):
        try:
            self.ending = train(output, number, files, **values)
        except (TakenOver, ResultExists, OSError) as error:
            self.fault = error

    def thaw(self):
        self._go.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("mode", ["replace", "version"])
def test_late_application_never_commits_over_a_newer_generation(tmp_path, mode):
    for at in range(1, steps_of(tmp_path, mode, True) + 1):
        output = Output(tmp_path / str(at), mode)
        train(output, 1, LocalFolder("/"), training="f" * 16)
        late = Frozen(output, 2, at)
        assert train(output, 3, Steps(Hadoop("/"), output.look), generation=1) is None
        assert output.made_by() == application(3)
        late.thaw()
        output.look()
        assert output.made_by() == application(3), at
        if output.seen & {application(2)}:  # it had committed before
            continue
        assert late.fault or (late.ending and late.ending.reason is Reason.SUPERSEDED), at


class Overtaken(Hadoop):
    """Another training commits its version just before this application does."""

    def __init__(self, output):
        super().__init__("/")
        self._output, self._wanted = output, str(output.path / "1")

    def move(self, source, target):
        if target == self._wanted:
            self._wanted = None
            train(self._output, 5, Hadoop("/"), training="e" * 16)
        super().move(source, target)


def test_late_application_adds_no_version_after_a_newer_generation(tmp_path):
    """It has lost its number to another training, and then its folder, at each step of its next try."""
    output = Output(tmp_path / "count", "version")
    files = Steps(Overtaken(output), output.look)
    assert train(output, 2, files) is None and output.made_by() == application(2)
    for at in range(1, files.count + 1):
        output = Output(tmp_path / str(at), "version")
        late = Frozen(output, 2, at, Overtaken(output))
        assert train(output, 3, Steps(Hadoop("/"), output.look), generation=1) is None
        committed = application(2) in output.seen
        late.thaw()
        output.look()
        assert (application(2) in output.seen) is committed and output.made_by() != application(2), at


@pytest.mark.parametrize("generation", [0, 1])
def test_tasks_that_write_on_bring_back_no_right_to_commit(tmp_path, generation):
    """Tasks of a lost node make the folder again whose name they know; a retry, or a newer generation, trains."""
    output = Output(tmp_path, "replace")
    train(output, 1, LocalFolder("/"), training="f" * 16)
    late = OutputCommit(output.plan(), application(2), LocalFolder("/"))
    assert late.prepare() is None
    newer = OutputCommit(output.plan(generation), application(3), LocalFolder("/"))
    assert newer.prepare() is None
    half = output.path.parent / late.working_url.rpartition("/")[2]
    half.mkdir()
    (half / "model.bin").write_text("half")
    with pytest.raises(TakenOver):
        late.commit({})
    assert output.made_by() == application(1)
    newer.commit({})
    assert output.made_by() == application(3) and beside(output) == []


@pytest.mark.parametrize("mode", MODES[1:])
def test_late_application_of_a_generation_adds_no_second_result(tmp_path, mode):
    for at in range(1, steps_of(tmp_path, mode, False) + 1):
        output = Output(tmp_path / str(at), mode)
        late = Frozen(output, 2, at)
        ending = train(output, 3, Steps(LocalFolder("/"), output.look))
        assert ending is None or ending.reason is Reason.SUCCEEDED
        made_by = output.made_by()
        late.thaw()
        output.look()
        assert output.made_by() == made_by and len(output.results()) == 1, at


@pytest.mark.parametrize("kind", ["claim", "work", "sealed", "kept", "result"])
@pytest.mark.parametrize("generation", [0, 1])
def test_what_another_user_plants_proves_nothing(tmp_path, kind, generation):
    """Whoever may write the folder knows all names: those of the training, of its generations and applications."""
    output = Output(tmp_path, "replace")
    planted = output.path
    if kind != "result":
        planted = output.path.parent / f"_digits.{kind}-{TRAINING}-{generation}-application_1600000000000_0009"
    planted.parent.mkdir()
    success = dump_success(Success(application(9), TRAINING, generation, {}, [("model.bin", 3)]))
    if kind == "claim":
        planted.touch()
    else:
        (planted / "_ytf_previous").mkdir(parents=True)
        for folder in (planted, planted / "_ytf_previous"):
            (folder / "model.bin").write_text("bad")
            (folder / "poisoned").write_text("bad")
            (folder / SUCCESS_FILE).write_bytes(success)
    files = TwoUsers(planted.parent)
    assert train(output, 2, files) is None
    success = read_success((output.path / SUCCESS_FILE).read_bytes())
    assert success.application_id == application(2)
    assert [name for name, _ in success.files] == ["model.bin", "variables/checkpoint"]


@pytest.mark.parametrize("linked", [True, False])
def test_hard_link_of_an_own_file_is_no_claim(tmp_path, linked):
    """Without fs.protected_hardlinks anybody can give a file of ours a further name."""
    output = Output(tmp_path, "replace")
    output.path.parent.mkdir()
    newer = "application_1600000000000_0009"
    claim = output.path.parent / f"_digits.claim-{TRAINING}-1-{newer}"
    claim.touch()
    if linked:
        (tmp_path / "own").hardlink_to(claim)
    ending = train(output, 2, LocalFolder("/"))
    superseded = Verdict(Reason.SUPERSEDED, f"{newer} is newer and has taken over this training")
    assert ending == (None if linked else superseded)


def test_two_trainings_that_replace_one_output_leave_a_whole_result(tmp_path):
    for at in range(1, steps_of(tmp_path, "replace", True) + 1):
        output = Output(tmp_path / str(at), "replace")
        train(output, 1, LocalFolder("/"), training="f" * 16)
        late = Frozen(output, 2, at)
        assert train(output, 3, Steps(LocalFolder("/"), output.look), training="e" * 16) is None
        late.thaw()
        assert late.fault is None and late.ending is None, at
        output.look()
        assert output.made_by() in {application(2), application(3)} and beside(output) == []


def test_two_trainings_get_two_versions_and_latest_is_the_higher(tmp_path):
    for at in range(1, steps_of(tmp_path, "version", False) + 1):
        output = Output(tmp_path / str(at), "version")
        late = Frozen(output, 2, at)
        assert train(output, 3, Steps(LocalFolder("/"), output.look), training="e" * 16) is None
        late.thaw()
        assert late.fault is None and late.ending is None, at
        assert sorted(one.name for one in output.results()) == ["1", "2"]
        assert (output.path / "LATEST").read_text() == "2\n", at


def cut_short(output, number, training):
    """Leave what a commit leaves that ends between its two renames."""
    sealed = output.path.parent / f"_digits.sealed-{training}-0-{application(number)}-00"
    sealed.mkdir()
    (sealed / "model.bin").write_text("new")
    success = Success(application(number), training, 0, {}, [("model.bin", 3)])
    (sealed / SUCCESS_FILE).write_bytes(dump_success(success))
    output.path.rename(sealed / "_ytf_previous")


@pytest.mark.parametrize("mode", ["new", "replace"])
def test_next_training_restores_a_result_that_nothing_replaced(tmp_path, mode):
    output = Output(tmp_path, mode)
    train(output, 1, LocalFolder("/"))
    cut_short(output, 2, "a" * 16)
    OutputCommit(output.plan(0, "b" * 16), application(3), LocalFolder("/")).prepare()
    assert output.made_by() == application(1)


def test_retry_finishes_a_replacement_that_was_cut_short(tmp_path):
    output = Output(tmp_path, "replace")
    train(output, 1, LocalFolder("/"), training="f" * 16)
    cut_short(output, 2, TRAINING)
    assert train(output, 3, LocalFolder("/")).reason is Reason.SUCCEEDED
    assert output.made_by() == application(2) and beside(output) == []


def test_versions_beyond_keep_are_deleted_and_foreign_ones_stay(tmp_path):
    output = Output(tmp_path, "version")
    (output.path / "0001").mkdir(parents=True)
    for number in range(1, 5):
        train(output, number, LocalFolder("/"), training=f"{number:016x}", keep=2)
    assert sorted(one.name for one in output.results()) == ["0001", "4", "5"]


def test_given_version_that_exists_is_refused_before_the_training(tmp_path):
    output = Output(tmp_path, "version")
    assert train(output, 1, LocalFolder("/"), version=20240131) is None
    ending = train(output, 2, LocalFolder("/"), training="b" * 16, version=20240131)
    assert ending.reason is Reason.COMMIT_REFUSED and f"{output.path}/20240131 exists" in ending.message


def test_new_refuses_a_result_that_appears_while_it_trains(tmp_path):
    output = Output(tmp_path, "new")
    made = OutputCommit(output.plan(), application(1), LocalFolder("/"))
    assert made.prepare() is None
    output.path.mkdir()
    with pytest.raises(ResultExists, match="exists; delete it, give another output"):
        made.commit({})
    assert made.working_url.startswith(f"{output.path.parent}/_digits.sealed-")


def test_program_that_empties_its_output_and_marks_it_is_committed(tmp_path):
    output = Output(tmp_path, "new")
    made = OutputCommit(output.plan(), application(1), LocalFolder("/"))
    made.prepare()
    work = output.path.parent / made.working_url.rpartition("/")[2]
    work.rmdir()
    work.mkdir()
    (work / SUCCESS_FILE).write_text("")
    made.commit({})
    assert output.made_by() == application(1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(StorageAway("no NameNode"), Reason.COMMIT_FAILED), (PermissionError(13, "denied"), Reason.COMMIT_REFUSED)],
)
def test_commit_that_a_file_system_fails_says_whether_to_try_again(monkeypatch, fault, reason):
    monkeypatch.setattr(commit, "AWAY_SECONDS", 0.0)

    def step():
        raise fault

    ending = asyncio.run(persist(step))
    assert (
        isinstance(ending, Verdict) and ending.reason is reason and reason.retryable is (reason is Reason.COMMIT_FAILED)
    )


def test_refusal_after_long_work_is_tried_again(monkeypatch):
    """The time counts from the first fault, and anew after the file system was away; but away has one end."""
    monkeypatch.setattr(commit, "COMMIT_PAUSE", 0.0)
    monkeypatch.setattr(commit, "AWAY_SECONDS", 100.0)
    now, faults = 0.0, iter([])

    def step():
        nonlocal now
        now += 30.0
        if fault := next(faults, None):
            raise fault
        return None

    monkeypatch.setattr(commit.time, "monotonic", lambda: now)
    away, refused = StorageAway("no NameNode"), OSError(errno.EIO, "refused")
    for planned, reason in (
        ([refused], None),
        ([away, refused], None),
        ([refused, refused], Reason.COMMIT_REFUSED),
        ([refused, away, refused, away], None),
        ([away] * 5, Reason.COMMIT_FAILED),
        ([refused, away] * 3, Reason.COMMIT_FAILED),
    ):
        faults = iter(planned)
        ending = asyncio.run(persist(step))
        assert (ending and ending.reason) is reason, planned

"""The mirror of a task's output on both stores, and whole tasks that work on local copies of their paths."""

import errno
import itertools
import os
import re
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support.appmaster import AppMaster
from support.fake_webhdfs import serving_files
from support.runtime_jobs import QUICK, job, task
from support.waiting import until
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.agent import mirror_task
from tf_yarn_ops.runtime.agent.mirror_task import MIRROR_FAILED, MirrorFault, OutputMirror, bring_input
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.file_storage import LocalFolder
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.reasons import Reason

EVENTS = "train/events.out.tfevents.1"
END = float("inf")


class Side:
    """A store, its files below /out as a mapping, and a way to write them from outside."""

    def __init__(self, files, read, write):
        self.files, self._read, self.write = files, read, write

    @property
    def content(self):
        return {name: text for name, text in self._read().items() if mirror_task.PASSING not in name}

    @property
    def names(self):
        return set(self._read())


@pytest.fixture(params=["local folder", "namenode", "httpfs"])
def side(request, tmp_path):
    if request.param == "local folder":
        root, times = tmp_path / "store/out", itertools.count(1)
        root.mkdir(parents=True)

        def write(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            os.utime(root / name, (at := next(times), at))  # two files of one tick of the clock have one time

        yield Side(LocalFolder(str(tmp_path / "store")), lambda: read(root), write)
        return
    with serving_files() as served:
        served.httpfs = request.param == "httpfs"

        def write(name, text):
            served.requests.append(("", "", "", {}))
            served.files[f"/out/{name}"] = text.encode()
            served.times[f"/out/{name}"] = len(served.requests)

        found = Side(
            Hdfs([served.url], "ann", {}),
            lambda: {path.removeprefix("/out/"): content.decode() for path, content in served.files.items()},
            write,
        )
        found.served = served
        yield found


def read(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def local(tmp_path):
    """Return a function that writes a local file, which has settled unless its age is given."""
    times = iter(range(1, 1000))

    def write(name, text, at=None):
        path = tmp_path / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        at = at or time.time() - 1000 + next(times)
        os.utime(path, (at, at))
        return path

    write.folder = tmp_path / "local"
    return write


def mirror_of(side, local, name="chief:0", *, writes=True, follows=False):
    mirror = OutputMirror(side.files, "/out", str(local.folder), TaskId.parse(name), writes=writes, follows=follows)
    mirror.bring()
    return mirror


def test_what_is_there_is_brought_and_not_written_again(side, local):
    side.write("ckpt-1.data", "1")
    side.write("a/checkpoint", "ckpt-1")
    mirror = mirror_of(side, local)
    assert read(local.folder) == side.content == {"ckpt-1.data": "1", "a/checkpoint": "ckpt-1"}
    stamps = os.stat(local.folder / "ckpt-1.data").st_mtime, os.stat(local.folder / "a/checkpoint").st_mtime
    assert stamps[0] <= stamps[1]
    assert mirror.scan(END) is True
    assert side.content == read(local.folder)


def test_changes_are_written_through(side, local):
    mirror = mirror_of(side, local)
    local("ckpt-1.data", "1")
    local("checkpoint", "ckpt-1")
    local(EVENTS, "a", at=time.time())
    assert mirror.scan(time.time()) is True
    assert side.names == {"ckpt-1.data", "checkpoint", EVENTS}
    local(EVENTS, "abc", at=time.time())
    local("ckpt-2.data", "22")
    local("checkpoint", "ckpt-2")
    os.unlink(local.folder / "ckpt-1.data")
    assert mirror.scan(time.time()) is True
    assert side.content == read(local.folder) == {"ckpt-2.data": "22", "checkpoint": "ckpt-2", EVENTS: "abc"}
    assert side.names == set(side.content)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_local_file_that_can_not_be_read_is_not_deleted_in_the_store(side, local, monkeypatch, number):
    side.write("ckpt-1.data", "1")
    mirror, look = mirror_of(side, local), os.stat

    def fail(path, *words, **options):
        if str(path) == f"{local.folder}/ckpt-1.data":
            raise OSError(number, os.strerror(number), path)
        return look(path, *words, **options)

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))):
        mirror.scan(END)
    assert side.content == {"ckpt-1.data": "1"}


def test_a_file_that_is_being_written_waits(side, local):
    mirror = mirror_of(side, local)
    local("half", "ha", at=time.time())
    mirror.scan(time.time())
    assert side.content == {}
    mirror.scan(END)
    assert side.content == {"half": "ha"}


@pytest.mark.parametrize("times, brought", [(1, True), (99, False)])
def test_file_that_changes_while_a_task_starts_is_brought_again(side, local, monkeypatch, capfd, times, brought):
    """As the index of the checkpoints that the chief writes; a file that never rests comes later, or not."""
    side.write("checkpoint", "ckpt-0")
    side.write("ckpt-0.data", "0")
    find, changes = side.files.status, iter(range(1, times + 1))

    def status(path):
        if path == "/out/checkpoint" and (number := next(changes, None)):
            side.write("checkpoint", f"ckpt-{number}")
        return find(path)

    monkeypatch.setattr(side.files, "status", status)
    mirror_of(side, local, "worker:1", writes=False, follows=True)
    assert read(local.folder) == ({"checkpoint": "ckpt-1"} if brought else {}) | {"ckpt-0.data": "0"}
    assert ("without what changes all the time: /out/checkpoint\n" in capfd.readouterr().err) is not brought


def test_a_file_that_changes_on_its_way_is_not_renamed(side, local, monkeypatch):
    mirror = mirror_of(side, local)
    path, replace = local("index", "1"), side.files.replace

    def change(*arguments):
        replace(*arguments)
        path.write_text("2")

    monkeypatch.setattr(side.files, "replace", change)
    local("later", "x")
    assert mirror.scan(END) is False
    assert side.content == {}
    monkeypatch.undo()
    assert mirror.scan(END) is True
    assert side.content == {"index": "2", "later": "x"}


@pytest.mark.parametrize("name", ["x", EVENTS])
def test_another_writer_is_a_fault_and_keeps_its_file(side, local, name):
    mirror = mirror_of(side, local)
    local(name, "ours")
    mirror.scan(END)
    side.write(name, "theirs, longer")
    local("other", "1")
    mirror.scan(END)
    local(name, "ours again")
    with pytest.raises(MirrorFault, match=f"/out/{name} has another writer"):
        mirror.scan(END)
    assert side.content[name] == "theirs, longer"


def test_a_file_of_a_task_that_came_first_is_kept(side, local):
    mirror = mirror_of(side, local, "worker:1")
    side.write("model", "of worker 0")
    local("model", "of worker 1")
    with pytest.raises(MirrorFault, match="two tasks or jobs need two output paths"):
        mirror.scan(END)
    assert side.content == {"model": "of worker 0"}


def test_a_lost_folder_deletes_nothing(side, local):
    side.write("model", "1")
    mirror = mirror_of(side, local)
    os.rename(local.folder, f"{local.folder}.lost")
    with pytest.raises(FileNotFoundError):
        mirror.scan(END)
    assert side.content == {"model": "1"}


def test_rests_of_a_killed_run_are_deleted_at_the_next(side, local):
    ours, others = (f".model{mirror_task.PASSING}{name}-12345678" for name in ("chief-0", "worker-1"))
    for name in (ours, others):
        side.write(name, "half")
    mirror_of(side, local, writes=False)
    assert side.names == {ours, others}
    mirror_of(side, local)
    assert side.names == {others} and read(local.folder) == {}


def test_an_evaluator_follows_the_store(side, local):
    side.write(EVENTS, "brought")
    mirror = mirror_of(side, local, "evaluator:0", follows=True)
    side.write("ckpt-1.data", "1")
    side.write("checkpoint", "ckpt-1")
    side.write("train/events.out.tfevents.2", "of the chief")
    local("eval/events.out.tfevents.9", "e", at=time.time())
    mirror.scan(time.time())
    assert read(local.folder) == {
        EVENTS: "brought",
        "ckpt-1.data": "1",
        "checkpoint": "ckpt-1",
        "eval/events.out.tfevents.9": "e",
    }
    assert side.content["eval/events.out.tfevents.9"] == "e"
    side.write("checkpoint", "ckpt-2")
    mirror.scan(time.time())
    assert (local.folder / "checkpoint").read_text() == "ckpt-2"
    local("checkpoint", "changed here")
    side.write("checkpoint", "ckpt-3")
    with pytest.raises(MirrorFault, match="another writer"):
        mirror.scan(time.time())


def test_a_full_disk_is_a_fault_before_anything_is_copied(side, local, monkeypatch):
    side.write("model", "1" * 100)
    monkeypatch.setattr(mirror_task.shutil, "disk_usage", lambda _: SimpleNamespace(free=99))
    with pytest.raises(MirrorFault, match=r"the disk of .*local has 0 MiB free, and /out has 0 MiB"):
        mirror_of(side, local)


@pytest.fixture
def served(tmp_path):
    with serving_files() as found:
        yield found


def test_append_that_is_refused_becomes_a_whole_write(served, local):
    """HDFS takes no appends to erasure-coded files."""
    mirror = mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)
    local(EVENTS, "a")
    mirror.scan(END)
    served.faults.append(lambda operation, _: (403, "UnsupportedOperationException") if operation == "APPEND" else None)
    local(EVENTS, "abc")
    assert mirror.scan(END) is True
    assert served.files == {f"/out/{EVENTS}": b"abc"}


def test_list_that_lags_behind_a_write_makes_no_other_writer(served, local):
    mirror = mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)
    answer = served.answer
    served.answer = lambda method, path, parameters, body: (
        (200, {}, {"FileStatuses": {"FileStatus": []}})
        if parameters.get("op") == "LISTSTATUS"
        else answer(method, path, parameters, body)
    )
    local("model", "1")
    with pytest.raises(OSError, match="it has None bytes after a write"):
        mirror.scan(END)
    del served.answer
    assert mirror.scan(END) is True
    assert served.files == {"/out/model": b"1"}


@pytest.mark.parametrize("operation", ["CREATE", "RENAME", "LISTSTATUS", "APPEND"])
def test_a_write_whose_answer_is_lost_is_written_again(served, local, operation):
    mirror = mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)
    local(EVENTS, "a")
    local("model", "1")
    mirror.scan(END)
    local(EVENTS, "ab")
    local("model", "2")
    answer, lost = served.answer, []

    def lose(method, path, parameters, body):
        found = answer(method, path, parameters, body)
        if parameters.get("op") != operation or (operation == "LISTSTATUS" and served.files["/out/model"] != b"2"):
            return found
        lost.append(operation)
        return 500, {}, {}

    served.answer = lose
    try:
        mirror.scan(END)
    except OSError:
        pass
    assert lost
    del served.answer
    local("model", "3")
    local(EVENTS, "abc")
    assert mirror.scan(END) is True
    assert served.files == {f"/out/{EVENTS}": b"abc", "/out/model": b"3"}


@pytest.mark.parametrize(
    ("times", "why"), [(2, ""), (10**6, "the output is not complete: writing /out/.*SafeModeException")]
)
def test_rest_is_written_when_the_namenode_is_back(served, local, monkeypatch, times, why):
    mirror = mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)
    local("model", "1")
    left = iter(range(times))
    served.faults.append(
        lambda operation, _: (
            (403, "SafeModeException") if operation == "CREATE" and next(left, None) is not None else None
        )
    )
    monkeypatch.setattr(mirror_task, "REST_SECONDS", 3.0)
    assert re.fullmatch(f"{why}.*" if why else "", mirror_task.save_rest(mirror))
    assert ("/out/model" in served.files) == (not why)


def test_refused_output_is_reported_before_the_program_starts(served, local):
    served.faults.append(lambda operation, _: (403, "AccessControlException") if operation == "CREATE" else None)
    with pytest.raises(OSError, match="AccessControlException"):
        mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)


def test_colon_in_a_name_is_a_fault(served, local):
    mirror = mirror_of(Side(Hdfs([served.url], "ann", {}), None, None), local)
    local("12:30.txt", "1")
    with pytest.raises(MirrorFault, match="its name has a colon"):
        mirror.scan(END)


# -- the input -------------------------------------------------------------------------------------


def test_input_is_copied_once_per_node(side, tmp_path):
    for name in ("a", "b/c"):
        side.write(name, name * 10)
    base = tmp_path / "node"
    base.mkdir()
    copy = bring_input(side.files, "/out/", 1, str(base))
    assert read(base / "ytf-input/out") == {"a": "a" * 10, "b/c": "b/c" * 10} and copy == str(base / "ytf-input/out")
    side.write("a", "new")
    assert bring_input(side.files, "/out", 1, str(base)) == copy
    assert (base / "ytf-input/out/a").read_text() == "a" * 10


def test_input_may_be_one_file(side, tmp_path):
    side.write("train.csv", "1,2")
    copy = bring_input(side.files, "/out/train.csv", 1, str(tmp_path))
    assert copy.endswith("/ytf-input/train.csv") and read(tmp_path / "ytf-input") == {"train.csv": "1,2"}


@pytest.mark.parametrize(
    ("path", "limit", "what"),
    [
        ("/none", 1, "/none|FileNotFoundException"),
        ("/out", 0, r"the input has 0 MiB, more than the 0 MiB of mirror_input"),
    ],
)
def test_bad_input_is_a_fault(side, tmp_path, path, limit, what):
    side.write("a", "1")
    with pytest.raises((MirrorFault, OSError), match=what):
        bring_input(side.files, path, limit, str(tmp_path))
    assert not (tmp_path / "ytf-input").exists()


# -- whole tasks -----------------------------------------------------------------------------------

CHIEF_AND_WORKERS = {"chief": TaskSpec(), "worker": TaskSpec(instances=2)}
#: Counts its runs in the output.
RUN = """cd $DTF_OUTPUT_PATH; echo run-$DTF_TASK_JOB_NAME-$DTF_TASK_INDEX >> runs; """


@pytest.fixture
def place(tmp_path):
    """Return the output folder, and a function that starts a job whose tasks mirror it."""
    output = tmp_path / "store/out"
    output.mkdir(parents=True)
    os.chmod(tmp_path / "store", 0o755)

    def start(command, writers="chief", **fields):
        spec = job(command, ps=False, **{"output": str(output), "mirror": writers, **fields})
        return AppMaster(tmp_path / "job", spec)

    return SimpleNamespace(output=output, start=start)


@pytest.mark.slow
def test_only_the_chief_writes(place):
    (place.output / "runs").write_text("earlier\n")
    with place.start(RUN, tasks=CHIEF_AND_WORKERS) as am:
        report = am.wait()
        assert report.reason is Reason.SUCCEEDED
        local = {name: read(am.container(name).folder / "ytf-output") for name in ("chief_0", "worker_0", "worker_1")}
    assert read(place.output) == local["chief_0"] == {"runs": "earlier\nrun-chief-0\n"}
    # A worker that starts late brings the chief's line too.
    assert local["worker_1"]["runs"].startswith("earlier\n") and local["worker_1"]["runs"].endswith("run-worker-1\n")


@pytest.mark.slow
def test_every_task_writes_its_own_files(place):
    with place.start("echo x > $DTF_OUTPUT_PATH/$DTF_TASK_INDEX", "all") as am:
        assert am.wait().reason is Reason.SUCCEEDED
    assert read(place.output) == {"0": "x\n", "1": "x\n"}


@pytest.mark.slow
def test_two_tasks_with_one_file_are_reported(place):
    """Both have started: a task that starts later takes a file that is there for the one to go on from."""
    command = f"""wait_for() {{ until [ -e $1 ]; do sleep 0.05; done; }}
        if [ $DTF_TASK_INDEX = 0 ]; then wait_for ../worker_1/started; else touch started; wait_for {place.output}/model; fi
        echo $DTF_TASK_INDEX > $DTF_OUTPUT_PATH/model"""
    with place.start(command, "all") as am:
        report = am.wait()
    failed = task(report, "worker:1")
    assert (report.reason, failed.exit_code) == (Reason.TASK_FAILED, MIRROR_FAILED)
    assert f"{place.output}/model has another writer; two tasks or jobs need two output paths" in report.message
    assert read(place.output) == {"model": "0\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "state", "code", "number"),
    [("exit 7", "failed", 7, None), ("kill -9 $$", "failed", None, 9), ("kill -SEGV $$", "failed", None, 11)],
)
def test_program_ends_as_without_a_mirror_and_its_files_stay(place, command, state, code, number):
    with place.start(f"echo x > $DTF_OUTPUT_PATH/x; {command}", workers=1) as am:
        report = am.wait()
    found = task(report, "worker:0")
    assert (found.state, found.exit_code, found.signal) == (state, code, number)
    assert read(place.output) == {"x": "x\n"}


def test_refused_output_fails_the_task_before_its_program(place):
    (place.output / "runs").mkdir()
    (place.output / "runs").rmdir()
    place.output.rmdir()
    place.output.write_text("a file")
    with place.start("touch started", workers=1) as am:
        report = am.wait()
        assert not (am.container("worker_0").folder / "started").exists()
    assert task(report, "worker:0").exit_code == MIRROR_FAILED
    assert "Not a directory" in report.message


@pytest.mark.slow
@pytest.mark.parametrize("who", ["agent", "container"])
def test_a_killed_task_resumes_from_what_was_written_through(place, who):
    command = RUN + "echo $$ > pid; [ $(wc -l < runs) = 2 ] || exec tail -f /dev/null"
    with place.start(command, workers=1) as am:
        first = am.container("worker_0")
        until(lambda: read(place.output).get("runs") and read(place.output).get("pid"), 60, what="files in the output")
        program = int((place.output / "pid").read_text())
        if who == "agent":
            first.process.kill()
        else:
            first.kill()
        assert am.wait(60).reason is Reason.SUCCEEDED
        until(lambda: not os.path.exists(f"/proc/{program}"), what="the end of the first program")
    assert (place.output / "runs").read_text() == "run-worker-0\n" * 2


@pytest.mark.slow
def test_what_a_stopped_program_saves_in_its_grace_is_written(place):
    """The shell dies of SIGTERM at once; its program goes on, and the mirror waits for it."""
    saver = "trap 'sleep 0.5; echo saved > last; exit 0' TERM; echo ready > ready; while :; do sleep 0.05; done"
    command = f"""cd $DTF_OUTPUT_PATH; if [ $DTF_TASK_JOB_NAME = chief ]; then bash -c "{saver}"; echo x > never; else
        until [ -e {place.output}/ready ]; do sleep 0.05; done; exit 3; fi"""
    with place.start(command, tasks={"chief": TaskSpec(), "worker": TaskSpec()}) as am:
        report = am.wait(60)
    assert (report.reason, task(report, "worker:0").exit_code) == (Reason.TASK_FAILED, 3)
    assert read(place.output) == {"ready": "ready\n", "last": "saved\n"}


@pytest.mark.slow
def test_yarn_ending_the_container_leaves_no_process(place):
    with place.start("trap '' TERM; echo $$ > $DTF_OUTPUT_PATH/pid; while :; do sleep 0.05; done", workers=1) as am:
        until(lambda: read(place.output).get("pid"), 60, what="a file in the output")
        am.container("worker_0").kill(signal.SIGTERM)
        until(lambda: not os.path.exists(f"/proc/{(place.output / 'pid').read_text().strip()}"), what="its end")


@pytest.mark.slow
def test_evaluator_sees_the_end_after_the_last_checkpoint(place):
    """Not before its mirror has brought it."""
    tasks = {
        "worker": TaskSpec(
            command="until [ -e ../evaluator_0/ready ]; do sleep 0.05; done; echo 200 > $DTF_OUTPUT_PATH/checkpoint"
        ),
        "evaluator": TaskSpec(
            command="touch ready; until [ -e $YTF_TRAINED_FILE ]; do sleep 0.05; done; "
            "cp $DTF_OUTPUT_PATH/checkpoint $DTF_OUTPUT_PATH/evaluated"
        ),
    }
    with place.start("x", tasks=tasks, deadlines=replace(QUICK, evaluator_grace=60)) as am:
        report = am.wait()
    assert (report.reason, task(report, "evaluator:0").state) == (Reason.SUCCEEDED, "succeeded"), am.container(
        "evaluator_0"
    ).log
    assert read(place.output) == {"checkpoint": "200\n", "evaluated": "200\n"}


@pytest.mark.slow
def test_tasks_of_a_node_share_one_copy_of_the_input(place, tmp_path):
    given = tmp_path / "in.csv"
    given.write_text("1,2")
    with place.start(
        "cp $DTF_INPUT_PATH $DTF_OUTPUT_PATH/$DTF_TASK_INDEX; echo $DTF_INPUT_PATH > path",
        "all",
        input=str(given),
        mirror_input=1,
    ) as am:
        assert am.wait().reason is Reason.SUCCEEDED
        paths = {(am.container(f"worker_{index}").folder / "path").read_text().strip() for index in (0, 1)}
    assert read(place.output) == {"0": "1,2", "1": "1,2"}
    assert paths == {str(tmp_path / "job/ytf-input/in.csv")}


def test_tensorflow_without_hdfs_names_the_option(place):
    words = "tensorflow.python.framework.errors_impl.UnimplementedError: File system scheme 'hdfs' not implemented"
    with place.start(f'echo "{words}" >&2; exit 1', workers=1) as am:
        report = am.wait()
    assert report.message.endswith("set mirror to chief, and mirror_input to a size")

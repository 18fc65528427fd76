"""The program of a task with ``mirror``: bring the files, run the task's command, write its output through.

It is the command of the task, so the agent starts and ends it like any other. It ends as the task's own command does,
or with `MIRROR_FAILED`. What it has written through stays, whatever ends it; the next one brings it.
"""

import contextlib
import errno
import fcntl
import functools
import itertools
import math
import os
import select
import shutil
import signal
import stat
import time
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set
from urllib.parse import urlsplit

from ..common.contract import TRAINED_FILE, Job, TaskId, process_environments, read_job, write_line
from ..common.file_storage import PIECE, FileStatus, walk_files
from ..common.hdfs import Hdfs, JobFiles, open_job_files
from ..common.processes import set_child_subreaper
from ..common.roles import EVALUATOR
from .command import Command, end_as, open_wakeup
from .transfers import APPEND, DELETE, Stamp, Transfer, in_order, is_events, plan_writes

#: Exit code of a task whose files can't be brought or saved: EX_IOERR of sysexits.h.
MIRROR_FAILED = 74
#: The local output in the working directory, and the local input in a folder that the containers of a node share.
OUTPUT_FOLDER, INPUT_FOLDER = "ytf-output", "ytf-input"
#: Seconds between two looks at the local folder.
SCAN_SECONDS = 5.0
#: So often a file is brought that another task changes meanwhile, before the program starts.
BRING_ATTEMPTS = 5
#: For how long the mirror tries to write the rest of the output after the program has ended, seconds.
REST_SECONDS = 300.0
#: Part of the names of files on their way; no reader takes them for others.
PASSING = ".ytf-mirror-"
#: Added to YTF_TRAINED_FILE: a file that comes after the last checkpoint.
MIRRORED = "-mirrored"


class MirrorFault(Exception):
    """The mirror can't go on: another writer, a full disk, a name that HDFS refuses."""


#: Writes a line to the container's log.
log_mirror = functools.partial(write_line, "tf_yarn_ops mirror: ")


class LocalPart:
    """Bytes of a local file, as `file_storage.Content`; raises OSError if the file has become shorter."""

    def __init__(self, path: str, start: int, stop: int):
        self._path, self._start, self.size = path, start, stop - start

    def __iter__(self) -> Iterator[bytes]:
        with open(self._path, "rb") as file:
            file.seek(self._start)
            left = self.size
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise OSError(errno.EIO, "the file has become shorter", self._path)
                left -= len(piece)
                yield piece


def list_local(folder: str) -> Dict[str, Stamp]:
    """Return the files below a local folder; raise OSError if it is gone or can't be read."""

    def refuse(error: OSError) -> None:
        if error.filename == folder or not isinstance(error, FileNotFoundError):  # else the program has just deleted it
            raise error

    found: Dict[str, Stamp] = {}
    for place, _, names in os.walk(folder, onerror=refuse):
        for path in (os.path.join(place, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # the program has just deleted it
                status = os.stat(path)  # os.path.isfile would take a fault of the disk for a deletion
                if stat.S_ISREG(status.st_mode):
                    found[os.path.relpath(path, folder)] = Stamp(status.st_size, status.st_mtime_ns)
    return found


def stamp_of(path: str) -> Optional[Stamp]:
    """Return the stamp of a local file; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns)


def stored_stamp(entry: FileStatus) -> Stamp:
    """Return the stamp of a file of a store."""
    return Stamp(entry.length, entry.modified * 1_000_000)


def list_store(files: JobFiles, path: str, folders: Optional[Iterable[str]] = None) -> Dict[str, Stamp]:
    """Return the files in some folders below a path of a store, or else in all, with those on their way."""
    if folders is None:
        return {name: stored_stamp(entry) for name, entry in walk_files(files, path)}
    return {
        os.path.join(below, entry.name): stored_stamp(entry)
        for below in folders
        for entry in files.list(os.path.join(path, below) if below else path)
        if not entry.is_directory
    }


def fetch(files: JobFiles, source: str, stamp: Stamp, target: str) -> bool:
    """Copy a file of a store to a local path, where it appears whole; return False if it has changed meanwhile."""
    part = target + PASSING
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(part, "wb") as file:
        while (done := file.tell()) < stamp.length:
            piece = files.read_appended(source, done, stamp.length, min(PIECE, stamp.length - done))
            if not piece:
                break
            file.write(piece)
    found = files.status(source)
    same = found and stored_stamp(found) == stamp
    if done < stamp.length or not (same or is_events(source)):
        os.unlink(part)
        return False
    os.utime(part, ns=(stamp.modified, stamp.modified))
    os.replace(part, target)
    return True


def check_room(theirs: Mapping[str, Stamp], folder: str, what: str) -> int:
    """Return the bytes of files; raise MirrorFault if the disk of a folder has less room."""
    size = sum(stamp.length for stamp in theirs.values())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise MirrorFault("the disk of %s has %d MiB free, and %s has %d MiB" % (folder, free >> 20, what, size >> 20))
    return size


class OutputMirror:
    """Keeps a local folder and a folder of a store the same.

    Parameters
    ----------
    files : Hdfs or LocalFolder
    path : str
        The folder in the store, absolute.
    folder : str
        The local folder; it is emptied.
    task : TaskId
        Marks its files on their way.
    writes : bool
        Whether local changes go to the store.
    follows : bool
        Whether changes in the store come here while the program runs, without event files.
    """

    def __init__(self, files: JobFiles, path: str, folder: str, task: TaskId, *, writes: bool, follows: bool):
        self._files, self._path, self._folder = files, path.rstrip("/") or "/", folder
        self._writes, self._follows = writes, follows
        self._mark = "%s%s-%d-" % (PASSING, *task)
        self._suffix = self._mark + os.urandom(4).hex()
        self._sent: Dict[str, Stamp] = {}  # local stamps of what the store has
        self._known: Dict[str, Stamp] = {}  # stamps in the store after the last access
        self._unsure: Set[str] = set()  # whether a write has had an effect is not known

    def bring(self) -> None:
        """Fill the local folder; raise MirrorFault or OSError if that, or a later write, is impossible."""
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        theirs = list_store(self._files, self._path)
        size = check_room(theirs, self._folder, self._path)
        if self._writes:
            for name in [name for name in theirs if self._mark in name]:  # an earlier run was killed
                self._files.delete(self._there(name))
            self._files.makedirs(self._path, 0o755)
            self._files.replace(self._there(self._suffix), b"", 0o644)
            self._files.delete(self._there(self._suffix))
        for _ in range(BRING_ATTEMPTS):
            if not (changed := self._take_over(theirs, events=True)):
                break
            theirs = list_store(self._files, self._path)
        else:
            log_mirror("the program starts without what changes all the time: %s", ", ".join(map(self._there, changed)))
        log_mirror("%s has %d files, %d MiB, of %s", self._folder, len(self._known), size >> 20, self._path)

    def scan(self, now: float) -> bool:
        """Copy what has changed; return whether all planned steps were possible.

        Parameters
        ----------
        now : float
            As in `transfers.plan_writes`.

        Raises
        ------
        OSError
            The store or the disk fails; the next look may succeed.
        MirrorFault
        """
        if self._follows:
            self._take_over(list_store(self._files, self._path), events=False)
        if not self._writes:
            return True
        local = list_local(self._folder)
        steps = plan_writes(local, self._sent, now)
        folders = {os.path.dirname(step.name) for step in steps}
        theirs = list_store(self._files, self._path, folders)
        self._check(steps, theirs)
        done = list(itertools.takewhile(lambda step: self._take(step, local, theirs), steps))
        if done:
            theirs = list_store(self._files, self._path, folders)
            for step in done:
                self._note(step, theirs)
        return len(done) == len(steps)

    def _there(self, name: str) -> str:
        return os.path.join(self._path, name)

    def _here(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _take_over(self, theirs: Mapping[str, Stamp], *, events: bool) -> List[str]:
        """Bring what has changed in the store, and delete what is gone there, if the program has not changed it.

        Returns
        -------
        list of str
            What was not brought, because it has changed again meanwhile.
        """
        again = []
        for name in in_order({name: stamp for name, stamp in theirs.items() if self._known.get(name) != stamp}):
            if PASSING in name or name in self._unsure or (is_events(name) and not events):
                continue
            if stamp_of(self._here(name)) != self._sent.get(name):
                raise self._conflict(name)
            if fetch(self._files, self._there(name), theirs[name], self._here(name)):
                self._known[name] = theirs[name]
                self._sent[name] = stamp_of(self._here(name)) or theirs[name]
            else:
                again.append(name)
        for name in set(self._known) - set(theirs):
            del self._known[name]
            if name in self._sent and self._sent[name] == stamp_of(self._here(name)):
                del self._sent[name]
                os.unlink(self._here(name))
        return again

    def _check(self, steps: Sequence[Transfer], theirs: Mapping[str, Stamp]) -> None:
        for name in (step.name for step in steps):
            if name in theirs and name not in self._unsure and theirs[name] != self._known.get(name):
                raise self._conflict(name)
            if ":" in name and isinstance(self._files, Hdfs):
                raise MirrorFault("%s can't be in HDFS: its name has a colon" % name)

    def _conflict(self, name: str) -> MirrorFault:
        return MirrorFault(
            "%s has another writer; two tasks or jobs need two output paths, or two names" % self._there(name)
        )

    def _take(self, step: Transfer, local: Mapping[str, Stamp], theirs: Mapping[str, Stamp]) -> bool:
        """Take a step; return False if the file has changed meanwhile."""
        name = step.name
        self._unsure.add(name)
        if step.action == DELETE:
            self._files.delete(self._there(name))
            del self._sent[name]
            return True
        stamp = local[name]
        appended = step.action == APPEND and name in theirs and self._append(name, stamp, theirs[name])
        if not appended and not self._write(name, stamp):
            return False
        self._sent[name] = stamp
        return True

    def _append(self, name: str, stamp: Stamp, theirs: Stamp) -> bool:
        if theirs.length != self._sent[name].length:
            return False
        try:
            self._files.append(self._there(name), LocalPart(self._here(name), theirs.length, stamp.length))
        except OSError as error:  # erasure-coded files take no appends
            log_mirror("%s is written anew: %s", name, error)
            return False
        return True

    def _write(self, name: str, stamp: Stamp) -> bool:
        """Write a whole file under another name, and rename it if it has not changed meanwhile."""
        folder, _, last = self._there(name).rpartition("/")
        passing = "%s/.%s%s" % (folder, last, self._suffix)
        self._files.makedirs(folder, 0o755)
        self._files.replace(passing, LocalPart(self._here(name), 0, stamp.length), 0o644)
        if stamp_of(self._here(name)) != stamp and not is_events(name):
            self._files.delete(passing)
            return False
        self._files.move_over(passing, self._there(name))
        return True

    def _note(self, step: Transfer, theirs: Mapping[str, Stamp]) -> None:
        name, found = step.name, theirs.get(step.name)
        self._known.pop(name, None)
        if step.action == DELETE:
            self._unsure.discard(name)
            return
        if found is None or found.length != self._sent[name].length:
            del self._sent[name]
            raise OSError(errno.EIO, "it has %s bytes after a write" % (found and found.length), self._there(name))
        self._unsure.discard(name)
        self._known[name] = found


def bring_input(files: JobFiles, path: str, limit: int, base: str) -> str:
    """Copy a file or folder once to the disk of this node; return the path of the copy.

    Parameters
    ----------
    files : Hdfs or LocalFolder
    path : str
    limit : int
        Largest size, MiB.
    base : str
        A folder that all containers of the application on this node share. The first one copies, others wait for it.

    Raises
    ------
    MirrorFault, OSError
        The input does not exist, is too large for the limit or the disk, or can't be read.
    """
    path = path.rstrip("/")
    folder, (above, name) = os.path.join(base, INPUT_FOLDER), os.path.split(path)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            found = files.status(path)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "there is no input", path)
            theirs = {name: stored_stamp(found)}
            if found.is_directory:
                theirs = {os.path.join(name, below): stamp for below, stamp in list_store(files, path).items()}
            size = check_room(theirs, base, path)
            if size > limit << 20:
                raise MirrorFault("the input has %d MiB, more than the %d MiB of mirror_input" % (size >> 20, limit))
            part = folder + PASSING
            shutil.rmtree(part, ignore_errors=True)
            os.makedirs(os.path.join(part, name) if found.is_directory else part)
            for below, stamp in theirs.items():
                if not fetch(files, os.path.join(above, below), stamp, os.path.join(part, below)):
                    raise MirrorFault("%s has changed while it was copied" % os.path.join(above, below))
            os.rename(part, folder)
            log_mirror("%s has %d files, %d MiB, of %s", folder, len(theirs), size >> 20, path)
    return os.path.join(folder, name)


def run_mirrored(mirror: Optional[OutputMirror], job: Job, env: Mapping[str, str]) -> int:
    """Run the task's command beside its mirror; return the exit code, or end this process as the command ended."""
    set_child_subreaper()  # programs that outlive their shell are awaited here
    wakeup, grace = open_wakeup(), job.deadlines["stop_grace"]
    command = Command(env["DTF_TASK_PROGRAM"], env, processes=process_environments(job, env), grace=grace)
    stopped: List[int] = []
    # An earlier signal ends the mirror, and with it the program.
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    scan_at, fault, failing = time.monotonic() + SCAN_SECONDS, "", ""
    while not (ending := command.reap()):
        if stopped and not command.stopping:
            command.end(math.inf, sent=True)
        pause = 0.05 if command.waiting else max(0.0, scan_at - time.monotonic())
        if select.select([wakeup], [], [], pause)[0]:
            os.read(wakeup, 4096)
        if time.monotonic() >= scan_at:
            try:
                failing = save_changes(mirror, env, failing) if mirror and not fault else ""
            except MirrorFault as error:
                fault = str(error)
                command.end(grace)
            scan_at = time.monotonic() + SCAN_SECONDS
    if mirror and not fault:
        fault = save_rest(mirror)
    if fault:
        log_mirror("%s", fault)
        if command.stopping or ending.code == 0:
            return MIRROR_FAILED
    return end_as(ending)


def save_changes(mirror: OutputMirror, env: Mapping[str, str], failing: str) -> str:
    """Write the output through; return why that fails now, or an empty text. Log it unless it is still ``failing``."""
    trained = os.path.exists(TRAINED_FILE)
    try:
        mirror.scan(time.time())
        if trained and "YTF_TRAINED_FILE" in env:
            open(env["YTF_TRAINED_FILE"], "w").close()
    except OSError as error:
        if str(error) != failing:
            log_mirror("the output can't be written now: %s", error)
        return str(error)
    return ""


def save_rest(mirror: OutputMirror) -> str:
    """Write the rest of the output, with tries for `REST_SECONDS`; return why it is not complete, or an empty text."""
    until = time.monotonic() + REST_SECONDS
    while True:
        try:
            if mirror.scan(math.inf):
                return ""
            why = "its files change, although the program has ended"
        except MirrorFault as error:
            return str(error)
        except OSError as error:
            why = str(error)
        if time.monotonic() > until:
            return "the output is not complete: %s" % why
        time.sleep(1.0)


def main(arguments: List[str]) -> int:
    """Run the task's command, DTF_TASK_PROGRAM, with local copies of its input and output.

    Parameters
    ----------
    arguments : list of str
        Not used.

    Returns
    -------
    int
        The exit code of the command, or `MIRROR_FAILED`. After a signal that ended the command this process ends by it.
    """
    job = read_job()
    env = dict(os.environ)
    task = TaskId(env["DTF_TASK_JOB_NAME"], int(env["DTF_TASK_INDEX"]))
    mirror = None
    try:
        if job.mirror_input:
            # The folders of the application on each disk; YARN deletes them after its end.
            base = min(env["LOCAL_DIRS"].split(",")) if env.get("LOCAL_DIRS") else os.path.dirname(os.getcwd())
            source = job.input or ""
            files = open_job_files(job, source)
            env["DTF_INPUT_PATH"] = bring_input(files, urlsplit(source).path, job.mirror_input, base)
        if job.mirror != "off":
            folder = os.path.join(os.getcwd(), OUTPUT_FOLDER)
            evaluates = task.type == EVALUATOR
            mirror = OutputMirror(
                open_job_files(job, env["DTF_OUTPUT_PATH"]),
                urlsplit(env["DTF_OUTPUT_PATH"]).path,
                folder,
                task,
                writes=job.mirror == "all" or evaluates or job.leads(task),
                follows=evaluates,
            )
            mirror.bring()
            if "YTF_TRAINED_FILE" in env:
                env["YTF_TRAINED_FILE"] += MIRRORED
            env["DTF_OUTPUT_PATH"] = env["DTF_OUT_PATH"] = folder
    except (MirrorFault, OSError) as error:
        log_mirror("%s", error)
        return MIRROR_FAILED
    return run_mirrored(mirror, job, env)

"""`OutputCommit`: make the working folder before the tasks start, and commit it after they have succeeded.

Each step is a rename within one folder, which HDFS and file systems of nodes do at once or not at all. A rename never
makes the folder that it leads to, so whoever renames a folder away has fenced off all others that would commit it.
Every method may be called again after a fault: it looks first at what is there.

References
----------
docs/design.md, section 5. Hadoop's FileSystem specification, ``rename``.
"""

import asyncio
import errno
import logging
import socket
import time
import uuid
from functools import partial
from typing import Any, Callable, List, Mapping, Optional, Set, Tuple, TypeVar, Union

from ..common.committed_output import (
    CLAIM,
    KEPT,
    LATEST_FILE,
    MARKER,
    MOST_SUCCESS,
    NEW,
    POINTER,
    REPLACE,
    REPLACED,
    SEALED,
    SUCCESS_FILE,
    VERSION,
    WORK,
    Beside,
    CommitPlan,
    Success,
    decide_start,
    dump_success,
    exists_message,
    find_beside,
    find_results,
    read_success,
    zone_message,
)
from ..common.contract import Job
from ..common.file_storage import FileStatus, StorageAway, walk_files
from ..common.hdfs import JobFiles, open_job_files
from ..common.reasons import Reason
from .lifecycle import Verdict

logger = logging.getLogger(__name__)

#: Seconds from the first fault for which a commit tries again while the file system is away; and from the first refusal
#: since it was away, if no cause is final, as a permission is.
AWAY_SECONDS, REFUSED_SECONDS = 900.0, 20.0
#: Seconds between two tries.
COMMIT_PAUSE = 1.0
#: Results that other trainings may commit meanwhile, before this one gives up.
MOST_ROUNDS = 100
#: Modes of folders and files.
FOLDER_MODE, FILE_MODE = 0o755, 0o644

#: What no second try changes.
_FINAL = (errno.EDQUOT, errno.ENOSPC, errno.ENAMETOOLONG, errno.EROFS, errno.EXDEV)

Found = TypeVar("Found")


class TakenOver(Exception):
    """Another application has taken over the training: it has renamed or deleted a file or folder of this one."""


class ResultExists(Exception):
    """The result has no place: it is taken, other trainings replace it again and again, or it is an encryption zone."""


class OutputCommit:
    """The committed output of one application.

    Parameters
    ----------
    plan : CommitPlan
    application_id : str
    files : Hdfs or LocalFolder
        The file system of the output.

    Attributes
    ----------
    path : str or None
        Where the result is; None before the commit.
    version : int
        Its version; 0 for an output without versions.
    metrics : mapping or None
        Those of the result, if another application has trained it.
    working_bytes : int or None
        The size of the work that is not committed, as `measure` has found it.
    """

    def __init__(self, plan: CommitPlan, application_id: str, files: JobFiles):
        self.path: Optional[str] = None
        self.version = 0
        self.metrics: Optional[Mapping[str, Any]] = None
        self.working_bytes: Optional[int] = None
        self._working: Optional[str] = None  # the path of the work that is not committed
        self._owner = ""
        self._plan, self._application_id, self._files = plan, application_id, files
        self._claim, self._marker, self._work = (plan.beside(kind, application_id) for kind in (CLAIM, MARKER, WORK))
        self._sealed = plan.beside(SEALED, application_id, uuid.uuid4().hex[:8])

    @property
    def url(self) -> Optional[str]:
        """Where the result is; None before the commit."""
        return None if self.path is None else self._plan.location + self.path

    @property
    def working_url(self) -> Optional[str]:
        """Where the work is that is not committed; None after the commit."""
        return None if self._working is None else self._plan.location + self._working

    def measure(self) -> None:
        """Find the size of the work that is not committed; it stays as it was where the file system does not answer."""
        folder = self._working
        if folder is not None:
            try:
                self.working_bytes = sum(status.length for _, status in walk_files(self._files, folder))
            except OSError as error:
                logger.info("The size of %s is not known: %s", self._plan.location + folder, error)

    # -- before the tasks start -------------------------------------------------------------

    def prepare(self) -> Optional[Verdict]:
        """Make the working folder, take it over, or finish a cut commit; return the end of a job with nothing to train.

        Raises
        ------
        TakenOver, ResultExists
            The job ends as COMMIT_REFUSED. An output that is an encryption zone raises ResultExists.
        OSError
        """
        plan = self._plan
        self._files.makedirs(plan.folder, FOLDER_MODE)
        refusal = zone_message(plan, self._is_encrypted)
        if refusal:
            raise ResultExists(refusal)
        self._owner = self._files.owner_of_new(plan.folder)
        # First claim, then look: of two applications that begin at once, one sees the other.
        self._files.replace(self._claim, b"", FILE_MODE)
        self._restore()
        if self._success_in(self._sealed):
            self._publish_result()
        taken: Set[str] = set()
        while True:
            beside, results = self._beside(), self._results()
            complete = [one.name for one in beside if one.kind == SEALED and self._success_in(self._plan.place_of(one))]
            occupied = bool((plan.mode == NEW or plan.version) and self._status(plan.result(plan.version)))
            start = decide_start(
                plan, self._application_id, beside, complete, [success for _, success in results], occupied
            )
            takes = [(entry, kind) for entry, kind in start.takes if entry.name not in taken]
            for entry, kind in takes:
                taken.add(entry.name)
                self._take(entry, kind)
            if not takes:
                break
        if start.action != "train":
            return self._settle(start.action, start.application_id, results)
        self._restore()
        if not self._status(self._work):
            self._files.makedirs(self._work, FOLDER_MODE)
        self._working = self._work
        return None

    def _settle(self, action: str, other: str, results: List[Tuple[int, Optional[Success]]]) -> Verdict:
        """Return the end of a job that does not train."""
        if action == "superseded":
            return Verdict(Reason.SUPERSEDED, "%s is newer and has taken over this training" % other)
        if action == "yield":
            return Verdict(Reason.COMMIT_REFUSED, "%s is newer and goes on with this training" % other)
        if action == "exists":
            self._files.delete(self._claim)
            return Verdict(
                Reason.COMMIT_REFUSED, exists_message(self._plan.location + self._plan.result(self._plan.version))
            )
        if action == "succeed":
            self.version, success = next(found for found in results if found[1] and found[1].application_id == other)
            self.path = self._plan.result(self.version)
            self.metrics = success and success.report.get("metrics")
            self._point()
            self._clear()
        return Verdict(
            Reason.SUCCEEDED, "%s has trained and committed %s" % (other, self._plan.location + (self.path or ""))
        )

    def _take(self, entry: Beside, kind: str) -> None:
        """Withdraw a claim, or rename a folder out of the reach of its application."""
        if kind == CLAIM:
            self._files.delete(self._plan.place_of(entry))
            return
        kept = entry.name.replace(".%s-" % entry.kind, ".%s-" % KEPT)
        places = {
            WORK: self._work,
            SEALED: self._sealed,
            KEPT: self._plan.place_of(entry._replace(name="%s-%s" % (kept, uuid.uuid4().hex[:8]))),
        }
        if kind == WORK and self._status(self._work):
            kind = KEPT
        try:
            self._files.move(self._plan.place_of(entry), places[kind])
        except FileNotFoundError:
            logger.info("%s has just been renamed", entry.name)
            return
        logger.info("Took over %s as %s", entry.name, places[kind].rpartition("/")[2])
        if kind == SEALED:
            self._publish_result()

    def _restore(self) -> None:
        """Put the old result back where a commit has ended between its two renames, which leaves none."""
        plan = self._plan
        if plan.mode == VERSION or self._status(plan.path):
            return
        for one in self._beside():
            if one.kind in (SEALED, KEPT):
                for status in self._files.list(self._plan.place_of(one)):
                    if status.name.startswith(REPLACED):
                        try:
                            self._files.move("%s/%s" % (self._plan.place_of(one), status.name), plan.path)
                            logger.warning("Restored %s, which %s has not replaced", plan.path, one.application_id)
                        except (FileNotFoundError, FileExistsError):
                            logger.info("%s is there again", plan.path)

    # -- after the tasks have succeeded -----------------------------------------------------

    def commit(self, report: Mapping[str, Any]) -> None:
        """Commit the working folder.

        Parameters
        ----------
        report : mapping
            Of this application, for `SUCCESS_FILE`.

        Raises
        ------
        TakenOver, ResultExists, OSError
        """
        if self.path is not None:
            return
        result = self._plan.result(self.version)
        if self._working == self._sealed and self._is_ours(result):  # the answer to its rename was lost
            self._finish(result)
            return
        if self._success_in(self._sealed) is None:
            self._seal()
            self._mark(report)
        self._publish_result()

    def _seal(self) -> None:
        """Rename the working folder to a name that no task knows, then use up the claim, the right to commit."""
        self._moved(self._work, self._sealed, lambda: bool(self._status(self._sealed)))
        self._working = self._sealed
        self._moved(self._claim, self._marker, lambda: bool(self._status(self._marker)))

    def _mark(self, report: Mapping[str, Any]) -> None:
        """Put `SUCCESS_FILE` into the sealed folder, by a rename that fails if the folder has been taken."""
        plan, marker = self._plan, "%s/%s" % (self._sealed, SUCCESS_FILE)
        found = walk_files(self._files, self._sealed)
        files = [(name, status.length) for name, status in found if name != SUCCESS_FILE]
        version = self._next_version()
        self._write_marker(Success(self._application_id, plan.training, plan.generation, report, files, version))
        self._files.delete(marker)  # the program's own
        self._moved(self._marker, marker, lambda: bool(self._success_in(self._sealed)))

    def _publish_result(self) -> None:
        """Rename the sealed folder to its place; move a result that is there into the sealed folder first."""
        plan = self._plan
        success = self._success_in(self._sealed)
        self.version = success.version if success else self.version
        for number in range(MOST_ROUNDS):
            result = plan.result(self.version)
            try:
                self._moved(self._sealed, result, partial(self._is_ours, result))
                break
            except FileExistsError:
                if plan.mode == VERSION and not plan.version:
                    self._number_again()
                elif plan.mode != REPLACE:
                    raise ResultExists(exists_message(plan.location + result)) from None
                else:
                    previous = "%s/%s%s" % (self._sealed, REPLACED, "-%d" % number if number else "")
                    self._step_aside(result, previous)
        else:
            raise ResultExists("%s is replaced by other trainings again and again" % (plan.location + plan.path))
        self._finish(result)

    def _finish(self, result: str) -> None:
        """Let the pointer name the result, which has its place, and delete what is left beside it."""
        self._point()
        self.path, self._working = result, None
        logger.info("Committed %s", self._plan.location + result)
        self._clear()

    def _step_aside(self, result: str, previous: str) -> None:
        try:
            self._moved(result, previous, lambda: bool(self._status(previous)))
        except TakenOver:
            if not self._status(self._sealed):  # else another training has moved the old result meanwhile
                raise

    def _number_again(self) -> None:
        """Give the sealed folder the next version, because another training has just taken its own."""
        success = self._success_in(self._sealed)
        if success is None:
            raise TakenOver("another application has taken over the training")
        self.version = self._next_version()
        passing = "%s/.%s" % (self._sealed, SUCCESS_FILE)
        self._write_marker(success._replace(version=self.version))
        self._moved(self._marker, passing, lambda: bool(self._status(passing)))
        self._files.move_over(passing, "%s/%s" % (self._sealed, SUCCESS_FILE))

    def _write_marker(self, success: Success) -> None:
        """Write what becomes `SUCCESS_FILE`; the report in it names the result."""
        result = self._plan.location + self._plan.result(success.version)
        report = {**success.report, "output_path": result, "working_path": None}
        self._files.replace(self._marker, dump_success(success._replace(report=report)), FILE_MODE)

    def _moved(self, source: str, target: str, happened: Callable[[], bool]) -> None:
        """Rename; a rename whose answer was lost has happened."""
        try:
            self._files.move(source, target)
        except FileNotFoundError:
            if not happened():
                raise TakenOver("%s has been renamed by another application of the training" % source) from None
        except FileExistsError:
            if not happened():
                raise

    def _is_ours(self, result: str) -> bool:
        success, plan = self._success_in(result), self._plan
        if success is None:
            return False
        same = plan.training and (success.training, success.generation) == (plan.training, plan.generation)
        return bool(same) or success.application_id == self._application_id

    # -- versions and leftovers -------------------------------------------------------------

    def _next_version(self) -> int:
        """Return the version of the next result; 0 for an output without versions."""
        if self._plan.mode != VERSION:
            return 0
        numbers = [number for number, _ in find_results(self._plan, self._files.list)]
        return self._plan.version or max([0, *numbers]) + 1

    def _results(self) -> List[Tuple[int, Optional[Success]]]:
        """Return the versions of the results that there are, and what they say."""
        found = find_results(self._plan, self._files.list)
        versions = self._plan.mode == VERSION
        return [(number, self._success_in(path)) for number, path in found if versions or self._status(path)]

    def _point(self) -> None:
        """Let `LATEST_FILE` name this version, unless it names a later one."""
        plan = self._plan
        if plan.mode != VERSION:
            return
        latest = "%s/%s" % (plan.path, LATEST_FILE)
        pointer = plan.beside(POINTER, self._application_id)
        self._files.replace(pointer, b"%d\n" % self.version, FILE_MODE)
        for one in self._beside(of_all=True):
            if one.kind == POINTER and self._plan.place_of(one) != pointer:
                if self._number_in(self._plan.place_of(one)) > self.version:
                    self._files.delete(pointer)
                    return
                self._files.delete(self._plan.place_of(one))  # a late application has no pointer left to rename
        if self._number_in(latest) >= self.version:
            self._files.delete(pointer)
            return
        try:
            self._files.move_over(pointer, latest)
        except OSError:
            if self._status(pointer):
                raise
            logger.info("A later version than %d has been committed", self.version)

    def _number_in(self, path: str) -> int:
        content = (self._read(path, 32) or b"").strip()
        return int(content) if content.isdigit() else 0

    def _clear(self) -> None:
        """Delete what the commit leaves: replaced results, older versions, and folders of this training."""
        plan, path = self._plan, self.path
        try:
            for status in self._files.list(path or plan.path):
                if status.name.startswith(REPLACED):
                    self._files.delete("%s/%s" % (path, status.name))
            for one in self._beside():
                own = one.training == plan.training if plan.training else one.application_id == self._application_id
                if own and one.generation <= plan.generation:
                    self._files.delete(self._plan.place_of(one))
            if plan.mode == VERSION:
                until = [result for number, result in find_results(plan, self._files.list) if number <= self.version]
                for result in until[: -plan.keep]:
                    if self._success_in(result):
                        self._files.delete(result)
        except OSError as error:
            logger.warning("The result is committed; what it leaves was not deleted: %s", error)

    # -- the file system --------------------------------------------------------------------

    def _beside(self, of_all: bool = False) -> List[Beside]:
        """Return what our user's applications, or those of all users, have left beside the output."""
        statuses = self._files.list(self._plan.folder)
        # Whoever may write the folder can give a file any name, but no owner.
        return find_beside(self._plan, [one.name for one in statuses if of_all or one.is_made_by(self._owner)])

    def _status(self, path: str) -> Optional[FileStatus]:
        try:
            return self._files.status(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _is_encrypted(self, path: str) -> bool:
        found = self._status(path)
        return found is not None and found.encrypted

    def _read(self, path: str, most: int, own: bool = False) -> Optional[bytes]:
        found = self._status(path)
        if found is None or found.is_directory or found.length > most or (own and not found.is_made_by(self._owner)):
            return None
        return self._files.read_appended(path, 0, found.length, most) if found.length else b""

    def _success_in(self, folder: str) -> Optional[Success]:
        return read_success(self._read("%s/%s" % (folder, SUCCESS_FILE), MOST_SUCCESS, own=True))


def commit_of(job: Job, application_id: str) -> Optional[OutputCommit]:
    """Return the committed output of a job; None for a job without."""
    plan = job.commit
    return OutputCommit(plan, application_id, open_job_files(job, job.output or "")) if plan else None


def _final(error: OSError) -> bool:
    """Return whether a file system has refused a step for a cause that it names."""
    cause = error.__cause__ or error
    return isinstance(cause, (PermissionError, FileExistsError, NotADirectoryError)) or (
        getattr(cause, "errno", None) in _FINAL
    )


async def persist(call: Callable[[], Found]) -> Union[Found, Verdict]:
    """Call `prepare` or `commit` in a thread, again after a fault that may pass; return its result, or the end.

    Parameters
    ----------
    call : callable
        May be called again after it has raised an OSError.
    """
    first: Optional[float] = None
    refused: Optional[float] = None
    logged = ""
    while True:
        try:
            return await asyncio.to_thread(call)
        except (TakenOver, ResultExists) as error:
            return Verdict(Reason.COMMIT_REFUSED, "the result is not committed: %s" % error)
        except OSError as error:
            now = time.monotonic()
            away = isinstance(error, (StorageAway, ConnectionError, TimeoutError, socket.timeout))
            first = now if first is None else first
            refused = None if away else now if refused is None else refused
            patience = AWAY_SECONDS if away else 0.0 if _final(error) else REFUSED_SECONDS
            if now - (first if refused is None else refused) >= patience:
                return Verdict(
                    Reason.COMMIT_FAILED if away else Reason.COMMIT_REFUSED, "the result is not committed: %s" % error
                )
            if str(error) != logged:
                logger.warning("The output can't be committed now: %s", error)
                logged = str(error)
        await asyncio.sleep(COMMIT_PAUSE)

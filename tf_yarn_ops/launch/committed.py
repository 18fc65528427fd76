"""The committed output of a job as its clients see it: the checks before a submission, and the result of a training.

`runtime.master.commit` checks again in the cluster: a client can't see a folder that only the nodes share.
"""

import hashlib
import json
import logging
import posixpath
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace

from ..errors import CommitRefused, SubmissionRejected, TfYarnError
from ..follow.session import Session
from ..hadoop.filesystem import FileSystem, MountedFileSystem
from ..hadoop.resourcemanager import ENDED
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec
from ..runtime.common.clock import DAY
from ..runtime.common.committed_output import (
    CLAIM,
    MOST_SUCCESS,
    NEW,
    OFF,
    REPLACED,
    SUCCESS_FILE,
    VERSION,
    CommitPlan,
    Success,
    exists_message,
    find_beside,
    find_results,
    read_success,
    split_location,
    zone_message,
)
from ..runtime.common.file_storage import LocalFolder, walk_files
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..runtime.common.values import parse_json
from ..staging.prune import CachedFile
from ..submit.application import plan_commit

logger = logging.getLogger(__name__)

#: The newest versions among which a client looks for the result of a training.
_VERSIONS = 20
#: Applications with a claim beside the output, of which a client asks YARN.
_CLAIMS = 20
#: The folder of the staging directory with a note for each output that was committed.
_OUTPUTS = "outputs"


class PlannedOutput:
    """The place of the output of a job with ``commit``.

    Parameters
    ----------
    session : Session
    spec : JobSpec
    tags : iterable of str, optional
        Those of the identity. Default: there is none.
    """

    def __init__(self, session: Session, spec: JobSpec, tags: Iterable[str] = ()):
        self._session, self._spec = session, spec
        self._cluster = session.cluster.acting_for(spec.user or session.cluster.user)
        plan = plan_commit(self._cluster, spec, tags)
        assert plan is not None, "the job has no commit"
        self._plan = plan

    @contextmanager
    def _opened(self) -> Iterator[FileSystem | None]:
        """Yield the file system of the output; None for a folder that only the nodes share."""
        files = None
        try:
            if self._plan.location:
                files = self._cluster.open_path(self._spec.output or "")[0]
            else:
                files = self._session.resourcemanager.node_files()
        except RestUnavailable as error:
            logger.info("the coordinator alone checks the output: %s", error)
        with closing(files) if files is not None else nullcontext():
            yield files

    def find_report(self, application_id: str = "") -> JobReport | None:
        """Return the report of the committed result of this training, or of one application; None if there is none.

        Parameters
        ----------
        application_id : str, optional
            Default: only the identity's generation counts.
        """
        plan = self._plan
        with self._opened() as files:
            if files is None:
                return None
            for success in _results(plan, files, self._cluster.user):
                same = (success.training, success.generation) == (plan.training, plan.generation)
                if (plan.training and same) or (application_id and success.application_id == application_id):
                    return _report_of(success)
        return None

    def find_work(self, application_id: str) -> tuple[str, int] | None:
        """Return the folder of what an application has not committed, and its bytes; None if there is none."""
        plan = self._plan
        with self._opened() as files:
            if files is None:
                return None
            owner = _owner_in(files, plan, self._cluster.user)
            ours = [one.name for one in files.list(plan.folder) if one.is_directory and one.is_made_by(owner)]
            for one in reversed(find_beside(plan, ours)):
                if one.application_id == application_id:
                    path = plan.place_of(one)
                    return plan.location + path, sum(status.length for _, status in walk_files(files, path))
        return None

    def check(self) -> None:
        """Raise an error where the output can't be committed; the checks cost a few requests.

        Raises
        ------
        CommitRefused
            The result exists and may not be replaced, another training writes it now, or the folder of the result
            can't be written.
        ClusterUnreachable
        """
        plan = self._plan
        with self._opened() as files:
            if files is None:
                return
            if refusal := zone_message(plan, lambda path: bool((one := files.status(path)) and one.encrypted)):
                raise CommitRefused(refusal)
            result = plan.result(plan.version)
            if (plan.mode == NEW or plan.version) and files.status(result) is not None:
                raise CommitRefused(exists_message(plan.location + result))
            if plan.mode != VERSION:
                self._check_others(plan, files)
            folder = plan.folder
            while files.status(folder) is None and folder != "/":
                folder = posixpath.dirname(folder)
            probe = f"{folder.rstrip('/')}/_ytf.probe-{secrets.token_hex(8)}"
            try:
                files.replace(probe, b"", 0o600)
                files.delete(probe)
            except SubmissionRejected as error:
                raise CommitRefused(
                    f"{plan.location}{folder} can't be written, and commit renames folders there: {error}"
                ) from error
            self._note(plan)

    def _note(self, plan: CommitPlan) -> None:
        """Note the output in the staging directory, so that `prune_outputs` finds what is left beside it."""
        staging = self._session.staging(self._cluster.user)
        folder = f"{staging.cluster.staging}/{_OUTPUTS}"
        document = json.dumps({"output": plan.location + plan.path, "mode": plan.mode}).encode()
        staging.make_private(folder)
        staging.filesystem.create(f"{folder}/{hashlib.sha256(document).hexdigest()}", document, 0o600)

    def _check_others(self, plan: CommitPlan, files: FileSystem) -> None:
        """Raise `CommitRefused` if an application of another training writes this output now."""
        beside = find_beside(plan, [status.name for status in files.list(plan.folder)])
        others = [one for one in beside if one.kind == CLAIM and (not plan.training or one.training != plan.training)]
        for one in others[-_CLAIMS:]:
            if _is_live(self._session, one.application_id):
                raise CommitRefused(
                    f"{one.application_id} of another training writes {plan.location}{plan.path} now; wait for its "
                    "end, or give another output"
                )


def _owner_in(files: FileSystem, plan: CommitPlan, user: str) -> str:
    """Return the owner of what belongs to the job's user."""
    return files.owner_of_new(plan.folder) if isinstance(files, LocalFolder) else user


def _results(plan: CommitPlan, files: FileSystem, user: str) -> Iterator[Success]:
    """Yield what the results of our user say, the latest version first."""
    for _, result in find_results(plan, files.list)[: -_VERSIONS - 1 : -1]:
        path = f"{result}/{SUCCESS_FILE}"
        status = files.status(path)
        if status is None or status.is_directory or status.length > MOST_SUCCESS:
            continue
        ours = _owner_in(files, plan, user)
        if not status.is_made_by(ours):
            why = f"belongs to {status.owner}, not to {ours}" if status.owner != ours else "is a hard link"
            logger.warning("%s %s, and proves nothing", path, why)
        elif (success := read_success(files.read(path))) is not None:
            yield success


def _report_of(success: Success) -> JobReport:
    """Return the report of a result; only what names the application is needed."""
    with suppress(ValueError, TypeError, AttributeError, KeyError):
        report = JobReport.from_dict(success.report)
        if report.reason is Reason.SUCCEEDED and report.application_id == success.application_id:
            return report
    return JobReport(
        success.application_id,
        state="FINISHED",
        final_status="SUCCEEDED",
        reason=Reason.SUCCEEDED,
        message="It has committed its output",
    )


def prune_outputs(session: Session, unused_days: float) -> list[CachedFile]:
    """Delete what ended applications have left beside committed outputs, and return it.

    Parameters
    ----------
    session : Session
    unused_days : float
        For how long it has not changed.
    """
    staging, deleted = session.staging(), list[CachedFile]()
    folder, before = f"{staging.cluster.staging}/{_OUTPUTS}", time.time() - unused_days * DAY
    for note in staging.filesystem.list(folder):
        try:
            document = parse_json(staging.filesystem.read(f"{folder}/{note.name}") or b"")
            output, mode = str(document["output"]), str(document["mode"])
            place = split_location(output)
            if place is None or note.owner != staging.cluster.user:
                continue
            plan = CommitPlan(mode, place[1], place[0])
            with closing(session.cluster.open_path(output)[0] if place[0] else MountedFileSystem("/")) as files:
                deleted += _prune_beside(session, files, plan, before)
                left = find_beside(plan, [status.name for status in files.list(plan.folder)])
            if not left and note.modified / 1000 < before:  # the next training of this output writes it again
                staging.filesystem.delete(f"{folder}/{note.name}")
        except (ValueError, KeyError, TypeError, TfYarnError) as error:
            logger.warning("what is left beside the output of %s/%s stays: %s", folder, note.name, error)
    return deleted


def _prune_beside(session: Session, files: FileSystem, plan: CommitPlan, before: float) -> list[CachedFile]:
    deleted = []
    statuses = {status.name: status for status in files.list(plan.folder)}
    for one in find_beside(plan, statuses):
        path, status = plan.place_of(one), statuses[one.name]
        changed, inside = status.modified / 1000, files.list(path) if status.is_directory else []
        # A commit that ended between its two renames: the next training puts the old result back.
        holds_result = any(item.name.startswith(REPLACED) for item in inside) and files.status(plan.path) is None
        if changed > before or holds_result or _is_live(session, one.application_id):
            continue
        if files.delete(path):
            deleted.append(CachedFile(plan.location + path, one.name, status.length, changed, True))
    return deleted


def _is_live(session: Session, application_id: str) -> bool:
    found = session.find_application(application_id)
    return found is not None and found["state"] not in ENDED


def with_commit(session: Session, spec: JobSpec, tags: Iterable[str], ended: JobReport) -> JobReport:
    """Return the report of an ended application: that of its result if it ended after the commit, before its verdict.

    Any other one names the folder of what is not committed, also where no coordinator has left a report.

    Parameters
    ----------
    session : Session
    spec : JobSpec
    tags : iterable of str
        Those of the identity.
    ended : JobReport
    """
    may_be_there = ended.reason is Reason.LOST or ended.retryable
    if spec.commit == OFF or ended.reason is Reason.SUCCEEDED or (ended.working_path and not may_be_there):
        return ended
    try:
        planned = PlannedOutput(session, spec, tags)
        found = planned.find_report(ended.application_id) if may_be_there else None
        work = None if found or ended.working_path else planned.find_work(ended.application_id)
    except TfYarnError as error:
        logger.warning("whether %s has committed its output is not known: %s", ended.application_id, error)
        return ended
    if found is not None:
        logger.info("%s has committed %s: %s", found.application_id, found.output_path, ended.message)
        return found
    return replace(ended, working_path=work[0], working_bytes=work[1]) if work else ended

"""`read_yarn_report`: YARN's object of an application as a `JobReport`; pure, by tables.

Input: the ResourceManager's JSON object of an application and, while it runs, the
coordinator's live report. Output: one report in the words of `runtime.common.report`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..hadoop.gateway import log_link
from ..hadoop.resourcemanager import ENDED, ends_by_lease
from ..runtime.common.contract import TENSORBOARD_PAGE
from ..runtime.common.local_job import is_local
from ..runtime.common.reasons import Reason, StartFault, find_localisation_fault
from ..runtime.common.report import (
    REPORT_START,
    JobReport,
    TaskReport,
    from_milliseconds,
    parse_diagnostics,
    yarn_cost,
    yarn_times,
)
from ..runtime.common.status import KILLED, LIVE_TASK
from ..runtime.common.web_address import safe_url

#: How the text begins that Skein's application master writes without that of anybody else: all of it, which is an
#: exception of YARN, or the first line.
_OF_SKEIN = re.compile(
    "(?:Attempt recovered after RM restart)*"
    r"(?:(?P<exception>Failure in container allocator|Unexpected error in application master)"
    r"|Application driver failed with exit code)\b"
)
#: Reasons by YARN's and Skein's own text, `_own_text`, for an application that ended without our report, by state.
_TEXTS = (
    ("KILLED", re.compile(r"exceed(?:ing|ed) (?:its|the) lifetime period", re.IGNORECASE), Reason.TOTAL_TIMEOUT),
    (
        "FAILED",
        re.compile(
            r"unknown queue|to queue : \S+|is not a leaf|Queue \S+ is STOPPED|does not exist\b.{0,300}queue|"
            r"AccessControlException|cannot submit applications|Application rejected|"
            r"reject(?:ed|ing) application|Failed to renew token",
            re.IGNORECASE,
        ),
        Reason.SUBMISSION_REJECTED,
    ),
    (
        "FAILED",
        re.compile(r"invalid label resource request|invalid resource request, .{0,1000}\blabel", re.IGNORECASE),
        Reason.SUBMISSION_REJECTED,
    ),
    (
        "FAILED",
        re.compile(
            r"invalid resource request|InvalidResourceRequest|exceeds? maximum allowed allocation|"
            r"requested resource type=\[\S+\] < 0 or greater",
            re.IGNORECASE,
        ),
        Reason.RESOURCES_IMPOSSIBLE,
    ),
    ("FAILED", re.compile(r"Application driver failed with exit code 12[67]\b"), Reason.ENVIRONMENT_INVALID),
    ("FAILED", re.compile(r"exited with +exitCode: -100\b"), Reason.NODE_LOST),
    ("FAILED", re.compile(r"exited with +exitCode: -102\b"), Reason.PREEMPTED),
    ("FAILED", re.compile(r"exited with +exitCode: -10[34]\b"), Reason.OUT_OF_MEMORY),
)
#: YARN's words before those of a client that kills: the client's user, and its address if it did not use REST.
_KILL = re.compile(r"Application (\S+) was killed by user (\S+)(?: at \S+)?(?: with diagnostic message: )?")
_REFUSALS = (Reason.SUBMISSION_REJECTED, Reason.RESOURCES_IMPOSSIBLE)
#: Reasons by YARN's state and final status, if no text matches. Every other end is AM_FAILED.
_ENDINGS = {
    ("FINISHED", "SUCCEEDED"): Reason.SUCCEEDED,
    ("FINISHED", "KILLED"): Reason.KILLED,
    ("KILLED", "KILLED"): Reason.KILLED,
}
_SENTENCES = {
    Reason.SUCCEEDED: "The application succeeded",
    Reason.KILLED: "The application was killed",
    Reason.TOTAL_TIMEOUT: "YARN ended the application at the end of its lifetime",
    Reason.LEASE_EXPIRED: "No client renewed the lease of the application, so YARN ended it",
    Reason.QUEUE_TIMEOUT: "YARN ended the application at the end of its lifetime; it had never left the queue",
    Reason.SUBMISSION_REJECTED: "YARN refused the application",
    Reason.RESOURCES_IMPOSSIBLE: "YARN refused the size of the application",
    Reason.NODE_LOST: "The application master's node was lost",
    Reason.PREEMPTED: "The application master's container was preempted",
    Reason.OUT_OF_MEMORY: "The application master was killed for its memory; give it more (am_memory)",
    Reason.ENVIRONMENT_INVALID: "The node of the application master could not start the job's Python",
    Reason.AM_FAILED: "The application master ended without a report",
}
#: YARN's words where an application master was silent for too long, as on a node that is cut off.
AM_SILENT = re.compile("ApplicationMaster for attempt \\S+ timed out")
#: What to do, by YARN's and Skein's own texts: no Python, or a token of a secured cluster that does not fit. The text
#: follows theirs.
_ADVICE = (
    (
        re.compile(r"Application driver failed with exit code 12[67]\b"),
        "Name an environment that every node has (venv:///folder, python:///path, or an archive with bin/python); "
        "without one the nodes need python3, 3.9 or later",
    ),
    (
        re.compile("Failed to renew token"),
        "The ResourceManager must be able to renew the application's tokens: set token_renewer in site.yaml to its "
        "principal, yarn.resourcemanager.principal",
    ),
    (
        re.compile(r"Client cannot authenticate via: ?\[TOKEN"),
        "The application has no token for the address that the node uses: name further file systems of the job "
        "(--file_system), let nodes and NameNode agree on hadoop.security.token.service.use_ip, and check "
        "resourcemanager_service in site.yaml: it is yarn.resourcemanager.address of each ResourceManager",
    ),
    (
        AM_SILENT,
        "If each job on a secured cluster ends so, its token names another address of the ResourceManager than the "
        "nodes use: set resourcemanager_service in site.yaml to yarn.resourcemanager.address",
    ),
)
_LONGEST_TEXT = 2000
#: Exit code of an application master's container in which YARN has localized no file.
WITHOUT_FILES = 86
#: YARN says in its first line that it has not localised the files of the master: no program has run.
_NOT_LOCALISED = re.compile(r"exitCode: -1000\b")
_WITHOUT_FILES = f"exitCode: {WITHOUT_FILES}"
_NOTHING_RAN = "YARN started the application master without its files, so nothing has run"
#: The begin of the message of an application whose master YARN could not launch. The ResourceManager writes it.
_NEVER_LAUNCHED = re.compile(
    rf"{_NOTHING_RAN}|{_SENTENCES[Reason.AM_FAILED]}: (?:Application \S+ failed \d+ times[^:]{{0,200}}? due to )?"
    "(?:Attempt recovered after RM restart)*Error launching appattempt"
)
#: A line of a Java stack trace: useless to an operator, and it hides the lines after it.
_FRAME = re.compile(r"\s*(?:at \S+\([^()]*\)|\.\.\. \d+ more)(?: ~?\[\S*\])?\s*")
#: Seconds after its launch in which the master asks for the first containers. A later refusal concerns a replacement:
#: YARN's maximum has shrunk with a lost node, or a label was removed.
_FIRST_REQUEST = 120.0


def read_yarn_report(application: Mapping[str, Any], live: JobReport | None = None) -> JobReport:
    """Return the report of an application.

    Parameters
    ----------
    application : mapping
        The ``app`` object of YARN's REST interface.
    live : JobReport, optional
        The coordinator's report while the application runs.

    Returns
    -------
    JobReport
        States, times, queue and tracking URL come from YARN; the rest comes from the coordinator's report,
        if there is one. ``reason`` is None until the end. The report of an ended application counts if it has the
        secret of the application's ``tfyv-`` tag, or in a kill by the application's own user; a success only with the
        secret. Otherwise the reason follows YARN's final status.
    """
    state, final_status = str(application["state"]), str(application.get("finalStatus") or "UNDEFINED")
    diagnostics = str(application.get("diagnostics") or "")
    ended = state in ENDED
    ours = _believed(application, state, final_status, diagnostics) if ended else live
    report = ours or JobReport(str(application["id"]))
    reason, message = (report.reason, report.message) if ended else (None, report.message or _first_line(diagnostics))
    if ended and ours is None:
        reason = _reason(application, state, final_status, diagnostics)
        message = _message(reason, state, diagnostics)
    # The coordinator's own time is in the record, and YARN's is that of the end of Skein's application master.
    finished = report.finished_at or from_milliseconds(application.get("finishedTime"))
    tasks = tuple(_killed(task, finished) for task in report.tasks) if ended else report.tasks
    lasting = report.tracking_url if ended and ours else None
    tracking_url = lasting or _tracking_url(application) or report.tracking_url
    board = report.tensorboard_url
    if not ended and tracking_url and (board or "").endswith(TENSORBOARD_PAGE):
        # The coordinator names one of the ResourceManagers; the reader may see it behind a gateway.
        board = f"{tracking_url.rstrip('/')}/{TENSORBOARD_PAGE}"
    return replace(
        report,
        application_id=str(application["id"]),
        name=str(application.get("name") or ""),
        queue=str(application.get("queue") or "").removeprefix("root."),
        user=str(application.get("user") or ""),
        state=state,
        final_status=final_status,
        reason=reason,
        message=message,
        tracking_url=tracking_url,
        finished_at=finished,
        tasks=_with_links(tasks, str(application.get("amContainerLogs") or "")),
        tensorboard_url=board,
        **yarn_times(application, report.started_at),
        **yarn_cost(application),
    )


def never_launched(report: JobReport) -> bool:
    """Return whether YARN could not launch the application master, or not with its files, so that no task has run.

    References
    ----------
    Hadoop's AMLauncher reads the tokens of an application while the state store may write them. When both happen at
    the same moment, the launch fails with an EOFException (seen on 3.4.3, once in some thousand applications). A
    container without any file was seen once, as the first of two that a fresh NodeManager started.
    """
    return report.reason is Reason.AM_FAILED and _NEVER_LAUNCHED.match(report.message) is not None


def lost_report(application_id: str, error: object = "This machine has no such job") -> JobReport:
    """Return the report of an application that the ResourceManager does not know, or of such a job of this machine.

    ``error`` says where this machine has no such job.
    """
    whoever = error if is_local(application_id) else "YARN no longer knows the application"
    return JobReport(
        application_id, reason=Reason.LOST, message=f"{whoever}; it may have ended long ago, or never began"
    )


def unsubmitted_report(application_id: str, why: str) -> JobReport:
    """Return the report of an application whose id was reserved and never submitted."""
    return JobReport(
        application_id, reason=Reason.KILLED, final_status="KILLED", message=f"{why} (before it was submitted)"
    )


def kill_report(
    application: Mapping[str, Any], reason: Reason, why: str, live: JobReport | None = None, attempt: int | None = None
) -> JobReport:
    """Return the report that YARN keeps as diagnostics when we kill an application."""
    return replace(
        read_yarn_report(application, live),
        reason=reason,
        message=why,
        final_status="KILLED",
        killed_by_attempt=attempt,
        usage=None,
        alerts=(),
        progress="",
        tracking_url=None,
    )


def queue_overrun(application: Mapping[str, Any], queue_timeout: float) -> str | None:
    """Return a sentence if an application has waited too long for its master, else None.

    Parameters
    ----------
    application : mapping
        The ``app`` object; its ``elapsedTime`` follows the ResourceManager's clock.
    queue_timeout : float
        Seconds; 0 for no limit.
    """
    if not queue_timeout or application["state"] not in ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"):
        return None
    waited = int(application.get("elapsedTime") or 0) / 1000
    if waited < queue_timeout:
        return None
    cause = " ".join(str(application.get("diagnostics") or "").split())[:500]
    # The state stays ACCEPTED while the files are localized and the master starts.
    launched = int(application.get("launchTime") or 0) > 0
    how = (
        f"was launched from queue {application.get('queue')}, and does not run {waited:.0f} s after the submission"
        if launched
        else f"has waited in queue {application.get('queue')} for {waited:.0f} s"
    )
    return (
        f"The application master {how}, longer than the {queue_timeout:g} s of the queue deadline"
        f"{f': {cause}' if cause else ''}"
    )


def _killed(task: TaskReport, finished: float | None) -> TaskReport:
    """Return a task of an ended application; the end of the application has killed a task that had not ended."""
    if task.state not in LIVE_TASK:
        return task
    return replace(task, state=KILLED, address=None, finished_at=finished if task.started_at else None)


def _with_links(tasks: tuple[TaskReport, ...], master_log: str) -> tuple[TaskReport, ...]:
    """Return the tasks with log URLs that can be opened where that of the application master can."""
    if not master_log:
        return tasks
    return tuple(
        replace(task, log_url=safe_url(log_link(task.log_url, master_log)) or None) if task.log_url else task
        for task in tasks
    )


def _believed(application: Mapping[str, Any], state: str, final_status: str, diagnostics: str) -> JobReport | None:
    """Return the report in the diagnostics if the coordinator or a client of the application's own user wrote it."""
    tags = str(application.get("applicationTags") or "").split(",")
    report, proven = parse_diagnostics(diagnostics, str(application["id"]), tags)
    if report is None or report.reason is None:
        return None
    kill = _KILL.search(diagnostics) if state == "KILLED" else None
    killed_by_owner = kill is not None and kill[2] == application.get("user")
    if report.reason is Reason.SUCCEEDED:
        return report if proven and (killed_by_owner or final_status == "SUCCEEDED") else None
    return report if proven or killed_by_owner else None


def _reason(application: Mapping[str, Any], state: str, final_status: str, diagnostics: str) -> Reason:
    if state == "KILLED" and _KILL.search(diagnostics):  # the rest of the text is the killer's
        return Reason.KILLED
    began, ended = int(application.get("launchTime") or 0), int(application.get("finishedTime") or 0)
    replacing = state == "FINISHED" and 0 < began < ended - 1000 * _FIRST_REQUEST
    fault = _localisation_fault(state, diagnostics)
    if fault and fault.reason is not Reason.CONTAINER_LOST:  # a lost container of the master is AM_FAILED
        return fault.reason
    text = _own_text(application, state, diagnostics)
    for at, pattern, reason in _TEXTS:
        if at in (state, final_status) and pattern.search(text) and not (replacing and reason in _REFUSALS):
            if reason is Reason.TOTAL_TIMEOUT and ends_by_lease(application):
                return Reason.LEASE_EXPIRED
            return Reason.QUEUE_TIMEOUT if reason is Reason.TOTAL_TIMEOUT and not _has_run(application) else reason
    return _ENDINGS.get((state, final_status), Reason.AM_FAILED)


def _own_text(application: Mapping[str, Any], state: str, diagnostics: str) -> str:
    """Return the part of the diagnostics that no program of the application can have written.

    References
    ----------
    Hadoop, ``RMAppImpl`` and ``RMAppAttemptImpl``: the first line is the ResourceManager's. The ends of the application
    master's logs and the commands of its processes come in further lines. What ends as FINISHED has the text of
    whoever has unregistered it.
    """
    if state != "FINISHED" and not _has_run(application):
        return diagnostics
    of_skein = _OF_SKEIN.match(diagnostics)
    if of_skein and of_skein["exception"]:
        return diagnostics
    return diagnostics.partition("\n")[0] if state != "FINISHED" or of_skein else ""


def _localisation_fault(state: str, diagnostics: str) -> StartFault | None:
    first = diagnostics.partition("\n")[0]
    return find_localisation_fault(diagnostics) if state == "FAILED" and _NOT_LOCALISED.search(first) else None


def _has_run(application: Mapping[str, Any]) -> bool:
    return bool(application.get("launchTime") or application.get("amContainerLogs"))


def _message(reason: Reason, state: str, diagnostics: str) -> str:
    # What looks like a report and is none, by `_believed`, is not shown.
    diagnostics = diagnostics.partition(REPORT_START)[0]
    kill = _KILL.search(diagnostics) if state == "KILLED" else None
    if kill:
        words = _first_line(diagnostics[kill.end() :])
        return f"The application was killed by user {kill[2]}{f': {words}' if words else ''}"
    if fault := _localisation_fault(state, diagnostics):
        return f"YARN could not start the application master: {fault}"
    lines = (line for line in diagnostics.splitlines() if not _FRAME.fullmatch(line))
    sentence, text = _SENTENCES[reason], " ".join(" ".join(lines).split())[:_LONGEST_TEXT]
    if state != "FINISHED" and _WITHOUT_FILES in diagnostics.partition("\n")[0]:
        return f"{_NOTHING_RAN} ({_WITHOUT_FILES} of its container)."
    if not text or reason is Reason.SUCCEEDED:
        return f"{sentence}."
    advice = next((advice for pattern, advice in _ADVICE if pattern.search(text)), "")
    return f"{sentence}: {text}{f'. {advice}' if advice else ''}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:500] if text.strip() else ""


def _tracking_url(application: Mapping[str, Any]) -> str | None:
    url = str(application.get("trackingUrl") or "")
    if not url or url == "N/A":
        return None
    return safe_url(url if "://" in url else f"http://{url}") or None

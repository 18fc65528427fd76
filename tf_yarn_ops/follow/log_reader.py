"""`Logs`: read a task's log from its node, the log server, HDFS or ``yarn logs``; else its last lines from the report.

Input: an application and a task's name. Output: chunks of text. While a container runs, its NodeManager serves the log,
and so does the job's coordinator: to clients that do not reach the node, and as bytes that no gateway rewrites.
Half a second after the end only the aggregated copy is left, which is complete about two seconds later.
"""

import logging
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..errors import LogMissing, SpecInvalid, SubmissionRejected, TfYarnError, did_you_mean
from ..hadoop import gateway
from ..hadoop.aggregated_log import NotALog, directories_of, read_aggregated_log
from ..hadoop.fast_import import import_httpx
from ..hadoop.filesystem import FileSystem
from ..hadoop.resourcemanager import ENDED
from ..hadoop.security.authentication import OTHER_USERS, GatewayAuthentication, KerberosAuthentication
from ..hadoop.transport import FILE_LIMITS, AnswerLimits, open_client
from ..programs import running_program
from ..runtime.common.local_job import is_local
from ..runtime.common.report import JobReport
from .session import Session

logger = logging.getLogger(__name__)
LogPart = TypeVar("LogPart")
_Source = TypeVar("_Source")
#: A place in a log, bytes from its begin, and the bytes there.
LogChunk = tuple[int, bytes]

#: Names of the application master's own logs, beside those of the tasks.
COORDINATOR, MASTER = "coordinator", "master"
_MASTER_FILES = {COORDINATOR: "application.driver.log", MASTER: "application.master.log"}
#: Seconds for which `Logs.content` waits at most while YARN says that it still aggregates an ended application's logs.
AGGREGATION_TIME = 120.0
_AGGREGATING = ("NOT_START", "RUNNING", "RUNNING_WITH_FAILURE")
#: Seconds for which no request goes to a node that has not answered one in time.
OUTAGE_TIME = 60.0
#: The least seconds between two lists of YARN's nodes, for nodes that the one before does not name.
LIST_SECONDS = 30.0
#: Seconds of that time after which a line says what is waited for.
_SILENT = 3.0
_YARN_TIMEOUT = 120.0
_START = b"LogContents:\n"
_LENGTH = re.compile(rb"LogLength:\s*(\d{1,18})")
#: What a report may name as the file of a log: no option of a program, and no path.
_FILE_NAME = re.compile(r"\w[\w.-]*")
#: Longest text that YARN adds before the content of a log, bytes.
_FRAME = 2048
#: Bytes from the end of a log that a look for new lines asks for, and the most that it reads at once.
_WINDOW, _AT_ONCE = 64 * 1024, 4 * 1024 * 1024
#: Of a look for new lines. Its node, which a report names, may be another user's server.
_POLL_LIMITS = AnswerLimits(6, 2 * _AT_ONCE)
#: Requests of a look; the second asks for as much as the first says that there is, and the log may grow meanwhile.
_POLL_ATTEMPTS = 3


@dataclass(frozen=True)
class LogFile:
    """A file of a container's log directory.

    Attributes
    ----------
    container_id : str
    name : str
    node : str or None
        URL of the NodeManager's pages, if it is known.
    user : str
        The owner of the application.
    application_id : str
    page : str, optional
        Tracking URL of a running job, whose coordinator serves the log too. Default: empty.
    """

    container_id: str
    name: str
    node: str | None
    user: str
    application_id: str
    page: str = ""

    def command(self) -> str:
        """Return the command that shows the log on a machine with Hadoop's client."""
        return shlex.join(["yarn", *self.arguments])

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program ``yarn`` that show the log."""
        values = {"-applicationId": self.application_id, "-containerId": self.container_id, "-log_files": self.name}
        return ["logs", *chain.from_iterable(values.items())]


def unframed(chunks: Iterable[bytes], window: int | None = None, *, always: bool = False) -> Iterator[LogChunk]:
    """Yield the content of a log with its place, without the lines that YARN adds before and after it.

    A node may answer with the log on its disk and then with the same log, aggregated; the length ends the first.

    Parameters
    ----------
    chunks : iterable of bytes
        The answer.
    window : int, optional
        Bytes from the end that were requested. Default: all.
    always : bool, optional
        Whether a text without YARN's lines is not a log. Default: it is that of another kind of server.
    """
    source = iter(chunks)
    length, first = _read_frame(source)
    if length is None:
        yield from () if always else _placed(chain([first], source))
        return
    left = min(length, length if window is None else window)
    yield length - left, b""  # there is a log; it may be empty
    for part in chain([first], source):
        part = part[:left]
        if part:
            yield length - left, part
        left -= len(part)
        if not left:
            return


def _read_frame(source: Iterator[bytes]) -> tuple[int | None, bytes]:
    """Take the lines that YARN puts before a log; return its length, and what has come of it.

    Without such lines the length is None, and all that was taken is returned.
    """
    held = b""
    while _START not in held and len(held) <= _FRAME and (chunk := next(source, None)) is not None:
        held += chunk
    head, start, content = held.partition(_START)
    found = _LENGTH.search(head) if start else None
    return (int(found[1]), content) if found else (None, held)


def _placed(chunks: Iterable[bytes]) -> Iterator[LogChunk]:
    """Yield chunks of a whole log with their places."""
    place = 0
    for chunk in chunks:
        yield place, chunk
        place += len(chunk)


def grown(chunks: Iterable[bytes], offset: int, window: int) -> Iterator[LogChunk]:
    """Yield once where a node's answer with the last `window` bytes of a log begins, and the bytes behind an offset.

    Parameters
    ----------
    chunks : iterable of bytes
        The answer, with the lines that YARN adds.
    offset, window : int
        Bytes.

    Yields
    ------
    (int, bytes)
        At most 4 MiB of it; empty if the answer begins behind the offset, or nothing is new. Nothing if the answer is
        not a log.
    """
    parts = unframed(chunks, window, always=True)
    for begin, _ in parts:
        new = _slice((part for _, part in parts), offset - begin, _AT_ONCE) if begin <= offset else ()
        yield begin, b"".join(new)
        return


def _slice(chunks: Iterable[bytes], begin: int, length: int) -> Iterator[bytes]:
    """Yield so many bytes from a place on, and hold none of those before it."""
    for chunk in chunks:
        yield chunk[begin : begin + length]
        length -= max(0, min(length, len(chunk) - begin))
        begin = max(0, begin - len(chunk))
        if not length:
            return


def _begin_of_page(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what one look takes of the log in a gateway's page, and read no more."""
    return _slice(gateway.read_log_page(chunks), 0, _AT_ONCE)


def _begun(chunks: Iterator[LogPart]) -> Iterator[LogPart] | None:
    """Return the chunks of a source after the first has come; None if it has none."""
    first = next(chunks, None)
    return None if first is None else chain([first], chunks)


class Logs:
    """Reads logs of one cluster's applications. It opens the aggregated logs once, and lists nodes for unknown ones.

    Parameters
    ----------
    session : Session
    environ : mapping of str to str, optional
        For the program ``yarn``. Default: the process's environment.
    sleep : callable, optional
        For tests.
    cancelled : callable, optional
        Returns whether to end a log early; asked before each chunk. Default: never.
    """

    def __init__(
        self,
        session: Session,
        *,
        environ: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        cancelled: Callable[[], bool] = lambda: False,
    ):
        self._session = session
        self._cluster = session.cluster
        self._resourcemanager = session.resourcemanager
        self._environ = dict(os.environ if environ is None else environ)
        self._stack = ExitStack()
        self._nodes: set[str] = set()
        self._list_at = 0.0  # monotonic
        self._clients: dict[tuple[str | None, AnswerLimits | None], Any] = {}
        self._lock = threading.Lock()
        self._outages: dict[str, tuple[float, bool]] = {}  # by address: the end, and whether it has connected
        self._waiting: dict[str, float] = {}  # since when for the aggregation, by application
        self._sleep = sleep
        self._cancelled = cancelled

    def read(self, application_id: str, task: str | None = None) -> Iterator[str]:
        """Yield a task's log in chunks of text.

        Parameters
        ----------
        application_id : str
        task : str, optional
            ``worker:1``, or ``coordinator`` or ``master`` for a log of the application master.
            Default: the task that failed first, else the chief or the first task, else the coordinator.

        Raises
        ------
        ApplicationNotFound
            The ResourceManager does not know the application.
        LogMissing
            The log is neither on its node, nor at a log server, nor in HDFS, and the report has no lines of it.
        SpecInvalid
            The job has no such task, or it never ran.
        """
        application = self._resourcemanager.get(application_id)
        if task in _MASTER_FILES and application.get("startedTime") and not application.get("amContainerLogs"):
            # Knox's service RESOURCEMANAGER empties it.
            application["amContainerLogs"] = self._resourcemanager.master_container(application_id)
        report = self._session.read_report(application)
        task = task or default_task(report)
        file = find_log(application, report, task)
        chunks = _begun(self.content(file, report.finished_at is not None))
        if chunks is None:
            yield from _tail(application, report, task, file, self.why_missing(task, file))
            return
        decoder = getincrementaldecoder("utf-8")("replace")
        yield from (decoder.decode(chunk) for _, chunk in chunks)
        yield decoder.decode(b"", True)

    def content(
        self, file: LogFile, ended: bool, window: int | None = None, *, over: bool = False
    ) -> Iterator[LogChunk]:
        """Yield a log in chunks; yield nothing if it is nowhere.

        Parameters
        ----------
        file : LogFile
        ended : bool
            Whether the application has ended. Then wait for the aggregation, at most `AGGREGATION_TIME` seconds for all
            its logs; not for a NodeManager that hangs, which aggregates nothing.
        over : bool, optional
            Whether it has its verdict, and so ends soon: wait as if it had ended. Default False.
        window : int, optional
            Bytes from the end that are needed; a source that can't begin there yields all. Default: all.
        """
        began, last, announced = (
            self._waiting.setdefault(file.application_id, time.monotonic()),
            not (ended or over),
            False,
        )
        live = self._in_order(self._from_node, self._from_page) if file.page and not ended else (self._from_node,)
        servers = [partial(self._from_server, server) for server in self._cluster.logs.services]
        sources = (*live, *servers, self._from_file_system)
        while True:
            # Behind a firewall that drops RPC, the program ``yarn`` hangs: it is the last resort.
            for source in (*sources, *([self._from_yarn] if last else ())):
                if (chunks := _begun(source(file, window))) is not None:
                    yield from takewhile(lambda chunk: not self._cancelled(), chunks)
                    return
            if last or self._cancelled():
                return
            waited = time.monotonic() - began
            last = waited > AGGREGATION_TIME or self.hangs(file) or not self._is_aggregating(file)
            if not announced and waited > _SILENT:
                announced = True
                logger.warning("waiting for YARN to aggregate the log of %s", file.container_id)
            if not last:
                self._sleep(0.5)

    def hangs(self, file: LogFile) -> bool:
        """Return whether the log's node has taken a request lately, and not answered it in time."""
        until, connected = self._outages.get(file.node or "", (0.0, False))
        return connected and time.monotonic() < until

    def why_missing(self, task: str, file: LogFile) -> str:
        """Return a sentence about a log that is nowhere."""
        if self.hangs(file):
            return (
                f"the log of {task} is on {urlsplit(file.node or '').netloc}, whose NodeManager hangs. Try again when "
                "YARN has restarted it, or has lost the node"
            )
        return (
            f"the log of {task} is neither on its node, nor at a log server, nor in HDFS; on a machine "
            f"with Hadoop's client type: {file.command()}"
        )

    def _is_aggregating(self, file: LogFile) -> bool:
        try:
            application = self._resourcemanager.get(file.application_id)
        except TfYarnError:
            return True  # that YARN does not answer is no end
        return application.get("logAggregationStatus") in _AGGREGATING

    def new_bytes(self, file: LogFile, offset: int) -> bytes | None:
        """Return what a log on its node has behind an offset, at most 4 MiB; None if the node does not answer.

        Parameters
        ----------
        file : LogFile
        offset : int
            Bytes of the log that the caller has.
        """
        if (path := self._path(file)) is not None:
            return next(_read_local_log(path, offset=offset))[1]
        found = None
        for source in self._in_order(self._new_from_node, self._new_from_page):
            found = source(file, offset) if found is None else found
        return found

    def _in_order(self, *sources: _Source) -> tuple[_Source, ...]:
        """Return node and page in the order in which they are tried: a gateway may rewrite the page of a node."""
        return sources[::-1] if gateway.is_gateway(self._resourcemanager.address) else sources

    def _new_from_page(self, file: LogFile, offset: int) -> bytes | None:
        content = None
        while part := self._part(file, offset + len(content or b"")):
            content = (content or b"") + part[2]
            if not part[2] or offset + len(content) >= part[1] or len(content) >= _AT_ONCE:
                break
        return content

    def _part(self, file: LogFile, offset: int) -> tuple[int, int, bytes] | None:
        """Return begin and content of a part of a log, and the length of the log, from the coordinator; else None."""
        running = {"id": file.application_id, "state": "RUNNING", "trackingUrl": file.page}
        return self._session.live.fetch_log_part(running, file.container_id, offset)

    def _new_from_node(self, file: LogFile, offset: int) -> bytes | None:
        if not file.node:
            return None
        address = self._resourcemanager.address
        if gateway.is_gateway(address):
            url = gateway.log_page(address, file.node, f"{file.container_id}/{file.user}/{file.name}", offset)
            page = list(self._fetch(url, "text/html", _begin_of_page, file.node, limits=_POLL_LIMITS))
            return b"".join(page) if page else None
        trusted = file.node if self._is_listed(file.node) else None
        window = _WINDOW
        for _ in range(_POLL_ATTEMPTS):
            url = f"{file.node}/ws/v1/node/containerlogs/{file.container_id}/{file.name}?size=-{window}"
            read = partial(grown, offset=offset, window=window)
            parts = list(self._fetch(url, "text/plain", read, file.node, trusted, _POLL_LIMITS))
            if not parts:
                return None
            begin, content = parts[0]
            if begin <= offset:
                return content
            window += begin - offset + _WINDOW
        return None

    def _path(self, file: LogFile) -> Path | None:
        return self._resourcemanager.log_path(file.application_id, file.container_id, file.name)

    def _from_page(self, file: LogFile, window: int | None) -> Iterator[LogChunk]:
        """Yield the log as the container's agent sends it to the coordinator, up to its length at the first request."""
        offset, end = 0 if window is None else -window, None
        while part := self._part(file, offset):
            begin, length, content = part
            end = length if end is None else end
            yield begin, content
            offset = begin + len(content)
            if not content or offset >= end:
                return
        if end is not None:
            logger.warning("the log of %s is cut, because its agent does not send the rest", file.container_id)

    def _from_node(self, file: LogFile, window: int | None) -> Iterator[LogChunk]:
        address = self._resourcemanager.address
        if (path := self._path(file)) is not None:
            yield from _read_local_log(path, window)
        elif file.node and gateway.is_gateway(address):
            url = gateway.log_page(address, file.node, f"{file.container_id}/{file.user}/{file.name}")
            limits = _limits(window)
            yield from _placed(self._fetch(url, "text/html", gateway.read_log_page, file.node, limits=limits))
        elif file.node:
            yield from self._fetch(
                f"{file.node}/ws/v1/node/containerlogs/{file.container_id}/{file.name}{_size(window)}",
                "text/plain",
                partial(unframed, window=window),
                file.node,
                file.node if self._is_listed(file.node) else None,
                _limits(window),
            )

    def _from_server(self, server: str, file: LogFile, window: int | None) -> Iterator[LogChunk]:
        url = f"{server}/containerlogs/{file.container_id}/{file.name}{_size(window)}"
        return self._fetch(url, "text/plain", partial(unframed, window=window), server, limits=_limits(window))

    def _fetch(
        self,
        url: str,
        kind: str,
        read: Callable[[Iterable[bytes]], Iterator[LogPart]],
        server: str,
        node: str | None = None,
        limits: AnswerLimits | None = None,
    ) -> Iterator[LogPart]:
        """Yield the parts of the log at a URL.

        Parameters
        ----------
        url, kind : str
            Each redirect names the container too: a node, which a report names, could lead to the log of another one.
        read : callable
        server : str
            Who answers; one that has not answered in time gets no request for `OUTAGE_TIME` seconds.
        node : str, optional
            May see a ticket as the configured addresses do.
        limits : AnswerLimits, optional
            Default: none, for a log that somebody reads as it comes.
        """
        httpx, begun = import_httpx(), False
        if self._outages.get(server, (0.0, False))[0] > time.monotonic():
            return
        try:
            place = httpx.URL(url).copy_merge_params(self._cluster.authentication.parameters())
            container = url.partition("/containerlogs/")[2].partition("/")[0]
            rule = {"allowed": lambda hop: container in hop.path.split("/")}
            with self._client(node, limits).stream("GET", place, headers={"Accept": kind}, extensions=rule) as answer:
                if answer.status_code == 200 and kind in answer.headers.get("content-type", ""):
                    for part in read(answer.iter_bytes()):
                        begun = True
                        yield part
                else:
                    logger.debug("no log at %s: HTTP %s", url, answer.status_code)
        except (httpx.HTTPError, httpx.InvalidURL, TfYarnError) as error:
            if begun:
                logger.warning("the log at %s is cut, because its server does not end it: %s", server, error)
            logger.debug("no log at %s: %s", url, error)
            if isinstance(error, httpx.TimeoutException):
                self._outages[server] = time.monotonic() + OUTAGE_TIME, isinstance(error, httpx.ReadTimeout)

    def _client(self, node: str | None, limits: AnswerLimits | None) -> Any:
        site, trusted = self._cluster.site, self._trusted(node)
        with self._lock:
            if (node, limits) not in self._clients:
                client = open_client(
                    self._cluster.authentication, trusted, site.request_timeout, site.ca_file, limits, hops=20
                )
                self._clients[node, limits] = self._stack.enter_context(client)
            return self._clients[node, limits]

    def close(self) -> None:
        """Close the connections, except those of the session."""
        with self._lock:
            self._stack.close()

    def _trusted(self, node: str | None) -> list[str]:
        """Return the addresses that may see a ticket: the configured ones and, if given, a node."""
        if isinstance(self._cluster.authentication, GatewayAuthentication):  # a person has configured the gateway
            return list(self._cluster.resourcemanagers)
        return [*self._cluster.resourcemanagers, *self._cluster.logs.services, *filter(None, [node])]

    def _is_listed(self, node: str) -> bool:
        """Return whether a node may see a ticket, because YARN itself lists it.

        The application, which any user may have written, names its nodes in its report.
        """
        place = urlsplit(node).netloc
        kerberos = isinstance(self._cluster.authentication, KerberosAuthentication)
        if kerberos and place not in self._nodes and time.monotonic() >= self._list_at:
            try:
                self._nodes = {str(listed.get("nodeHTTPAddress")) for listed in self._resourcemanager.nodes()}
                self._list_at = time.monotonic() + LIST_SECONDS
            except TfYarnError as error:
                logger.debug("%s is shown no ticket: %s", node, error)
        return place in self._nodes

    @cached_property
    def _aggregated(self) -> tuple[FileSystem, str] | None:
        """As `Cluster.open_logs`."""
        opened = self._cluster.open_logs()
        if opened is not None:
            self._stack.callback(opened[0].close)
        return opened

    def _from_file_system(self, file: LogFile, window: int | None) -> Iterator[LogChunk]:
        """Yield the log out of the file into which a NodeManager has aggregated it."""
        try:
            if self._aggregated is None:
                return
            files, root = self._aggregated
            for directory in directories_of(root, self._cluster.logs.suffix, file.user, file.application_id):
                # The file of a node is named by host and port; while it is written, its name ends with .tmp.
                host = f"{urlsplit(file.node or '').hostname}_"
                found = sorted(files.list(directory), key=lambda status: not status.name.startswith(host))
                for status in found:
                    if not status.name.endswith(".tmp"):
                        read = partial(_read_range, files, f"{directory}/{status.name}")
                        found_log = read_aggregated_log(status.length, read, file.container_id, file.name)
                        if (chunks := _begun(_placed(found_log))) is not None:
                            yield from chunks
                            return
        except (TfYarnError, NotALog) as error:
            logger.debug("no aggregated log of %s: %s", file.container_id, error)

    def _from_yarn(self, file: LogFile, window: int | None) -> Iterator[LogChunk]:
        program = shutil.which("yarn", path=self._environ.get("PATH"))
        if program is None:
            return
        command = [program, *file.arguments, "-appOwner", file.user]
        kept = {name: value for name, value in self._environ.items() if name not in OTHER_USERS}
        try:
            with running_program(
                command,
                env={**kept, "HADOOP_USER_NAME": self._cluster.login},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process:
                timer = threading.Timer(_YARN_TIMEOUT, process.kill)
                assert process.stdout is not None
                timer.start()
                try:
                    yield from unframed(iter(partial(process.stdout.read, _WINDOW), b""), always=True)
                finally:
                    timer.cancel()
                    process.kill()
        except OSError as error:
            logger.debug("%s: %s", file.command(), error)


def _limits(window: int | None) -> AnswerLimits | None:
    """Return the limits of an answer: a log for a person comes as it is, the end of one within a time."""
    return None if window is None else FILE_LIMITS


def _size(window: int | None) -> str:
    return "" if window is None else f"?size=-{window}"


def _read_local_log(path: Path, window: int | None = None, offset: int = 0) -> Iterator[LogChunk]:
    """Yield a log of this machine from an offset, or its last bytes, in chunks of at most 4 MiB."""
    try:
        with path.open("rb") as log:
            place = log.seek(offset if window is None else max(0, os.fstat(log.fileno()).st_size - window))
            while True:
                content = log.read(_AT_ONCE)
                yield place, content
                place += len(content)
                if not content:
                    return
    except FileNotFoundError as error:
        raise LogMissing(f"there is no log {path}") from error


def _read_range(files: FileSystem, path: str, offset: int, length: int) -> bytes:
    return files.read(path, offset, length) or b""


def default_task(report: JobReport) -> str:
    """Return the task that failed first, else the chief or the first task, else a log of the application master."""
    names = [task.task for task in report.tasks]
    return report.first_failure or ("chief:0" if "chief:0" in names else next(iter(names), report.master_log))


def check_readable(application: Mapping[str, Any]) -> None:
    """Raise SubmissionRejected if YARN lets this user see no logs of an application.

    References
    ----------
    Hadoop, ``AppInfo``: without the right to view, the start has the time 0.
    """
    if application.get("startedTime") == 0:
        raise SubmissionRejected(
            f"{application['id']} belongs to {application.get('user')}, and YARN shows you none of its logs. Its owner "
            "can name you in acls.view_users, or a group in acls.view_groups, of the next submission"
        )


def find_log(application: Mapping[str, Any], report: JobReport, task: str) -> LogFile:
    """Return the log file of a task.

    Parameters
    ----------
    application : mapping
        The ``app`` object of YARN's REST interface.
    report : JobReport
        The report of the same application, with its tasks.
    task : str
        ``worker:1``, ``coordinator`` or ``master``.

    Raises
    ------
    SpecInvalid
        There is no such task, or nothing has run in a container of it.
    LogMissing
        The report omits tasks and does not have this one.
    """
    user, application_id = str(application.get("user") or ""), report.application_id
    if task in _MASTER_FILES:
        link = str(application.get("amContainerLogs") or "")
        container = next((part for part in urlsplit(link).path.split("/") if part.startswith("container_")), "")
        if not container:
            check_readable(application)
            ran = "it never ran" if application["state"] in ENDED else "it does not run yet"
            if int(application.get("launchTime") or 0):
                ran = "YARN, or a gateway before it, does not name its container"
            raise SpecInvalid(f"{application_id} has no log of the application master: {ran}")
        return LogFile(container, _MASTER_FILES[task], gateway.node_of(link) or None, user, application_id)
    tasks = {item.task: item for item in report.tasks}
    if task not in tasks and report.omitted_tasks:
        raise LogMissing(
            f"the report of {application_id} omits {report.omitted_tasks} tasks, and the history has no record of the "
            f"job. If {task} is one of them, type on a machine with Hadoop's client: yarn logs -applicationId "
            f"{application_id} -log_files {shlex.quote(task.partition(':')[0])}.log"
        )
    if task not in tasks:
        known = [*tasks, *_MASTER_FILES]
        raise SpecInvalid(
            f"{application_id} has no task {task!r}{did_you_mean(task, known)}; it has {', '.join(known)}"
        )
    item = tasks[task]
    page = str(application.get("trackingUrl") or "") if application["state"] == "RUNNING" else ""
    if not item.container_id:
        why = f". {report.reason.value}: {report.message}" if report.reason else ""
        raise SpecInvalid(f"{task} of {application_id} has no log: nothing has run in a container of it{why}")
    number = application_id.partition("_")[2]
    if not is_local(application_id) and not re.fullmatch(rf"container_(e\d+_)?{number}_\d+_\d+", item.container_id):
        raise SpecInvalid(f"{task} of {application_id} has no log: {item.container_id} is not one of its containers")
    link = item.log_url or ""
    names = urlsplit(link).path.rpartition("/")[2], f"{task.partition(':')[0]}.log"
    name = next(filter(_FILE_NAME.fullmatch, names), None)
    if name is None:
        raise SpecInvalid(f"{task} of {application_id} has no log: {names[1]!r} is no name of a log file")
    return LogFile(item.container_id, name, gateway.node_of(link) or None, user, application_id, page)


def _tail(application: Mapping[str, Any], report: JobReport, task: str, file: LogFile, why: str) -> Iterator[str]:
    tail = next((item.log_tail for item in report.tasks if item.task == task), "")
    if not tail:
        check_readable(application)
        raise LogMissing(why)
    yield f"{tail.rstrip()}\n"
    yield f"(only the end, from the report; the whole log: {file.command()})\n"

"""`Hdfs`: folders and files of HDFS over WebHDFS, from inside a container.

The coordinator writes the record of the ended job, the task of TensorBoard reads event files, and programs open
``hdfs://``. On a secured cluster the container's own delegation token proves who asks.
"""

import errno
import functools
import http.client
import os
import socket
import ssl
import time
from contextlib import closing, contextmanager, suppress
from typing import Callable, Iterator, Mapping, Optional, Sequence, Set, Union
from urllib.parse import urlsplit

from .container_http import (
    ANSWER_BYTES,
    NO_ANSWER,
    TimedAnswer,
    begin_answer,
    connection_to,
    container_tokens,
    fetch_answer,
    read_whole,
)
from .contract import Job
from .datanodes import DATANODE_CONNECT_SECONDS, NO_DATANODE, PIPELINE_FACTOR, DatanodeUnreachable, Transferred
from .file_storage import FileStatus, LocalFolder, StorageAway, StorageRefused
from .tokens import HDFS_KIND
from .webhdfs_calls import (
    CONTENT,
    CONTENT_HEADERS,
    LATER,
    MISSING,
    OPERATIONS,
    PROBE,
    Answer,
    ContentStep,
    WebHdfsCalls,
    build_place,
    describe_call,
    is_tolerated,
    probe_rounds,
)

#: Seconds for which a NameNode or a DataNode may be silent.
HDFS_SECONDS = 30.0
#: Seconds between two tries.
_PAUSE = 1.0
#: A NameNode may want the last header of each request that writes.
_HEADERS = {**CONTENT_HEADERS, "X-XSRF-HEADER": "ytf"}
#: Python's errors for Hadoop's exceptions.
_ERRORS: Mapping[str, Callable[[str], OSError]] = {
    "FileAlreadyExistsException": FileExistsError,
    **dict.fromkeys(MISSING, FileNotFoundError),
    **dict.fromkeys(("ParentNotDirectoryException", "PathIsNotDirectoryException"), NotADirectoryError),
    "PathIsNotEmptyDirectoryException": functools.partial(OSError, errno.ENOTEMPTY),
    "AccessControlException": PermissionError,
    **dict.fromkeys(
        ("DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"),
        functools.partial(OSError, errno.EDQUOT),
    ),
}


class Hdfs(WebHdfsCalls):
    """Reads and writes one file system.

    Each method raises an OSError if no NameNode answers, or all refuse: `StorageRefused`, or the subclass for what
    Hadoop names, such as FileNotFoundError, PermissionError, or EDQUOT for a quota.

    Parameters
    ----------
    urls : sequence of str
        HTTP addresses of the NameNodes, or of an HttpFS.
    user : str
        Who asks, on a cluster without Kerberos.
    environ : mapping of str to str
        Names the file with the container's tokens.
    authorities : str
        Certificates (PEM) of the CAs for https; empty: the node's own.
    seconds : float
        How long a server may be silent, three times as long in a write. An answer as a whole may take
        `container_http.ANSWER_TIMEOUTS` times as long.
    patience : float
        Seconds for which NameNodes that are down, on standby, or in safe mode are asked again, and for which an open
        file waits for DataNodes.
    """

    _refusal = StorageRefused

    def __init__(
        self,
        urls: Sequence[str],
        user: str,
        environ: Mapping[str, str],
        authorities: str = "",
        seconds: float = HDFS_SECONDS,
        patience: float = 0.0,
    ):
        super().__init__()
        self._urls, self._user = list(urls), user
        # Those that have answered, and have not failed since.
        self._answering: Set[str] = set()
        tokens = container_tokens(environ, HDFS_KIND)
        self._logins = [("delegation", token) for token in tokens] or [("user.name", user)]
        self._seconds, self._authorities = seconds, authorities
        self.patience = patience

    def status(self, path: str) -> FileStatus:
        """Return the status of a path; raise FileNotFoundError."""
        found = self.find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def owner_of_new(self, folder: str) -> str:
        """Return the owner of the files that this process makes."""
        return self._user

    def exists(self, path: str) -> bool:
        return self.find(path) is not None

    def open_range(self, path: str, offset: int, length: int) -> http.client.HTTPResponse:
        """Return the open answer with these bytes, at most; the caller closes it. The offset lies within the file."""

        def begin(connection: http.client.HTTPConnection, step: ContentStep, url: str) -> TimedAnswer:
            answer = begin_answer(connection, OPERATIONS["OPEN"][0], url, _HEADERS)
            answer.lift_deadline()  # the caller reads as slowly as it likes
            return answer

        answer = self._open(ContentStep("OPEN", path), {"offset": offset, "length": length}, begin)
        if answer.status != 200:
            with answer:
                raise error_of(Answer(answer.status, read_whole(answer)), describe_call("OPEN", path))
        return answer

    def leave_out(self, lost: Union[http.client.HTTPResponse, "Upload"]) -> None:
        """Exclude for a minute the DataNode whose answer or upload ended early."""
        self._datanodes.add(urlsplit(lost.url).netloc)

    def open_upload(self, path: str, operation: str) -> "Upload":
        """Return the open request that takes a file's content.

        Parameters
        ----------
        path : str
        operation : str
            ``CREATE``, which overwrites the file, or ``APPEND``.
        """
        values = {"overwrite": "true"} if operation == "CREATE" else {}
        until = time.monotonic() + self.patience
        while True:
            try:
                return self._open(ContentStep(operation, path), values, Upload)
            except StorageAway:
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    def _open(
        self,
        step: ContentStep,
        values: Mapping[str, object],
        begin: Callable[[http.client.HTTPConnection, ContentStep, str], Transferred],
    ) -> Transferred:
        located, opened = self._transfer(step, values, functools.partial(self._connected, begin))
        self._check_located(step, located)
        assert opened is not None
        return opened

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory to a path that nothing has; its parent exists.

        Raises
        ------
        FileNotFoundError, FileExistsError
        """
        if self.exists(target):
            raise FileExistsError("renaming %s: %s exists" % (source, target))
        # Without the option HDFS would move the source into a directory that has appeared meanwhile.
        renamed = self._renamed(source, target, "NONE")
        inside = "%s/%s" % (target, source.rpartition("/")[2])
        if renamed and self.exists(inside):
            self._request("RENAME", inside, {"destination": source})
        elif renamed is False:
            self.status(source)
            self.status(target.rpartition("/")[0] or "/")
        else:
            return
        raise FileExistsError("renaming %s: %s exists" % (source, target))

    def move_over(self, source: str, target: str) -> None:
        """Rename a file or directory; a file takes the place of another one at once.

        Raises
        ------
        FileNotFoundError, FileExistsError
        """
        if self._renamed(source, target, "OVERWRITE") is False:
            self.status(source)
            if self.status(target).is_directory or not self.delete(target) or not self.rename(source, target):
                raise FileExistsError("renaming %s: %s can't be replaced" % (source, target))

    def _renamed(self, source: str, target: str, options: str) -> Optional[bool]:
        """Rename a path; return what an HttpFS answers, which doesn't know the options, and None for a NameNode."""
        answer = self._request("RENAME", source, {"destination": target, "renameoptions": options})
        found = answer and answer.document()
        return found.get("boolean") if isinstance(found, dict) else None

    def _request(
        self, operation: str, path: str, parameters: Mapping[str, object] = {}, tolerated: Sequence[str] = ()
    ) -> Optional[Answer]:
        """Return what the first NameNode answers that accepts one of the tokens: the result, or a redirect."""
        until = time.monotonic() + self.patience
        what, rounds = describe_call(operation, path), probe_rounds(self._seconds)
        while True:
            fault: OSError = StorageRefused("%s: no address is known" % what)
            later, expired = False, None
            for url in self._in_order(rounds):
                for login in list(self._logins):
                    place = build_place(operation, path, {**dict([login]), **parameters})
                    try:
                        answer = fetch_answer(
                            url + place, _HEADERS, self._seconds, self._authorities, OPERATIONS[operation][0], hops=0
                        )
                    except OSError as error:
                        fault = StorageAway("%s: %s: %s" % (what, url, error))
                        later = True
                        self._answering.discard(url)
                        break
                    except (http.client.HTTPException, ValueError) as error:
                        raise StorageRefused("%s: %s: %r" % (what, url, error)) from None
                    self._answering.add(url)
                    if answer.status < 300 or (answer.location and operation in CONTENT):
                        self._urls.sort(key=lambda known: known != url)
                        self._logins.sort(key=lambda known: known != login)
                        return answer
                    name, _ = answer.exception()
                    fault = error_of(answer, "%s: %s" % (what, url))
                    later = later or name in LATER
                    if name == "InvalidToken" and "expired" in str(fault):
                        expired = fault
                    if name not in LATER and is_tolerated(name, tolerated):
                        return None
                    # `UnreachableDatanodes` knows what to do without a DataNode; a NameNode alone does not end that.
                    if type(fault) is not StorageRefused:
                        raise fault
            if expired or not later:  # a NameNode that is away would not take the token either
                raise expired or fault
            if time.monotonic() > until:
                raise StorageAway(str(fault))
            rounds = rounds[:1]
            time.sleep(_PAUSE)

    def _namenodes(self) -> Sequence[str]:
        return self._urls

    def _probe(self, url: str, seconds: float) -> Optional[Answer]:
        try:
            return fetch_answer(url, {}, seconds, self._authorities, hops=0)
        except NO_ANSWER as error:
            # Before Python 3.10 they are two.
            return None if isinstance(error, (TimeoutError, socket.timeout)) else Answer(0, b"")

    def _in_order(self, rounds: Sequence[float]) -> Iterator[str]:
        """Yield the addresses to ask; last those that hang: they take connections and answer nothing."""
        waiting = list(self._urls)
        for seconds in rounds:
            if len(waiting) < 2:
                break
            silent = []
            for url in waiting:
                if url not in self._answering and self._probe(url + PROBE, seconds) is None:
                    silent.append(url)
                else:
                    yield url
            waiting = silent
        yield from waiting

    def _exchange(self, step: ContentStep, location: str, last_chance: bool) -> Optional[Answer]:
        def exchange(connection: http.client.HTTPConnection, step: ContentStep, url: str) -> Answer:
            headers = {**_HEADERS, **step.length()}
            with begin_answer(connection, OPERATIONS[step.operation][0], url, headers, step.data) as answer:
                whole = answer.status < 300 and step.operation == "OPEN"
                return Answer(answer.status, read_whole(answer, step.most if whole else ANSWER_BYTES))

        answer = self._connected(exchange, step, location, last_chance)
        if answer.status < 300:
            return answer
        if is_tolerated(answer.exception()[0], step.tolerated):
            return None
        raise error_of(answer, describe_call(step.operation, step.path))

    def _connected(
        self,
        exchange: Callable[[http.client.HTTPConnection, ContentStep, str], Transferred],
        step: ContentStep,
        location: str,
        last_chance: bool,
    ) -> Transferred:
        """Connect to a DataNode; return what `exchange` returns."""
        connection = connection_to(location, self._authorities, self._seconds)
        sent = False
        try:
            if not last_chance:
                connection.timeout = min(DATANODE_CONNECT_SECONDS, self._seconds)
            connection.connect()
            connection.sock.settimeout(self._seconds * (1.0 if step.operation == "OPEN" else PIPELINE_FACTOR))
            sent = True
            return exchange(connection, step, location)
        except NO_ANSWER as error:
            connection.close()
            what, netloc = describe_call(step.operation, step.path), urlsplit(location).netloc
            fault = StorageAway("%s: the DataNode %s does not answer: %r" % (what, netloc, error))
            if sent and not step.repeatable:
                raise fault from None
            raise DatanodeUnreachable from fault

    def _unexpected_answer(self, what: str, why: str) -> StorageRefused:
        return StorageRefused("%s: %s" % (what, why))


class Upload:
    """A request to a DataNode whose content is sent piece by piece; `finish` makes the file whole.

    Parameters
    ----------
    connection : http.client.HTTPConnection
    step : ContentStep
        The operation and the path.
    url : str
    """

    def __init__(self, connection: http.client.HTTPConnection, step: ContentStep, url: str):
        self._connection, self.url, self._what = connection, url, describe_call(step.operation, step.path)
        split = urlsplit(url)
        with self._failing():
            connection.putrequest(OPERATIONS[step.operation][0], "%s?%s" % (split.path, split.query))
            for name, value in {**_HEADERS, "Transfer-Encoding": "chunked"}.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.auto_open = 0  # a connection that was lost must not open again in the middle of a content

    def send(self, data: memoryview) -> None:
        if data:
            with self._failing():
                self._connection.send(b"".join((b"%x\r\n" % len(data), data, b"\r\n")))

    def finish(self) -> None:
        """End the content, and wait until the DataNodes have it."""
        with self._failing():
            self._connection.send(b"0\r\n\r\n")
            refusal = self._read_refusal()
        if refusal is not None:
            raise refusal

    def _read_refusal(self) -> Optional[OSError]:
        with closing(self._connection), self._connection.getresponse() as answer:
            if answer.status < 300:
                return None
            return error_of(Answer(answer.status, read_whole(answer)), self._what)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn a lost connection into the DataNode's own words, if it has left some."""
        try:
            yield
        except ssl.SSLCertVerificationError:
            self._connection.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            refusal = None
            if isinstance(error, ConnectionError):
                with suppress(OSError, http.client.HTTPException):
                    refusal = self._read_refusal()
            self._connection.close()
            raise refusal or StorageAway("%s: %r" % (self._what, error)) from None


#: The file system of a job's paths inside a container.
JobFiles = Union[Hdfs, LocalFolder]


def open_job_files(job: Job, url: str) -> JobFiles:
    """Return the file system of a URL of the job; the node's own for a path, and for an HDFS without addresses."""
    split = urlsplit(url)
    namenodes = job.namenodes.get(split.netloc) if split.scheme == "hdfs" else None
    return Hdfs(namenodes, job.user, os.environ, job.authorities) if namenodes else LocalFolder("/")


def error_of(answer: Answer, what: str) -> OSError:
    """Return the error for a refusal of what was requested, such as FileNotFoundError.

    Another call may find a DataNode where this one found none.
    """
    name, message = answer.exception()
    why = "%s: %s" % (name, " ".join(message.split())[:300]) if name else "HTTP status %d" % answer.status
    error = StorageAway if NO_DATANODE.search(why) else _ERRORS.get(name, StorageRefused)
    return error("%s: %s" % (what, why))

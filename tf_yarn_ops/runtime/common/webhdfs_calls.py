"""`WebHdfsCalls`: the calls of WebHDFS without a network: requests, answers, and what each answer means.

`hdfs.Hdfs` sends them from a container, `tf_yarn_ops.hadoop.webhdfs.WebHdfs` from a client.

References
----------
Hadoop, "WebHDFS REST API": a NameNode redirects a read and a write to a DataNode (307), an HttpFS a write to itself. A
NameNode refuses an offset at or after the length that it knows; a DataNode knows the bytes of a file that is being
written.
"""

import abc
import functools
import posixpath
import re
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode, urlsplit

from .datanodes import Transferred, UnreachableDatanodes
from .file_storage import Content, FileStatus, read_file_status
from .values import parse_json

#: The HTTP method of each operation, and its name in messages.
OPERATIONS: Mapping[str, Tuple[str, str]] = {
    "GETFILESTATUS": ("GET", "looking at"),
    "LISTSTATUS": ("GET", "listing"),
    "OPEN": ("GET", "reading"),
    "MKDIRS": ("PUT", "making the directory"),
    "CREATE": ("PUT", "writing"),
    "APPEND": ("POST", "writing"),
    "SETTIMES": ("PUT", "setting the time of"),
    "MODIFYACLENTRIES": ("PUT", "setting the ACL of"),
    "RENAME": ("PUT", "renaming"),
    "DELETE": ("DELETE", "deleting"),
    "GETSERVERDEFAULTS": ("GET", "reading the defaults of"),
    "GETDELEGATIONTOKEN": ("GET", "requesting a token for"),
    "CANCELDELEGATIONTOKEN": ("PUT", "cancelling a token for"),
}
#: The operations that lead to a DataNode.
CONTENT = ("OPEN", "CREATE", "APPEND")
#: HttpFS takes content of this type only, and answers a read with another type than JSON.
CONTENT_HEADERS = {"Accept": "*/*", "Content-Type": "application/octet-stream"}

#: Hadoop's exceptions, by what they mean.
MISSING = ("FileNotFoundException", "PathNotFoundException")
TAKEN = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "RecoveryInProgressException")
#: A NameNode will do it soon, or leaves it to the other one.
LATER = ("StandbyException", "RetriableException", "SafeModeException")
#: Tolerates whatever Hadoop names.
ANY = ("*",)
_OFFSET = re.compile(r"(?<=[?&]offset=)\d+")
#: What an answer may be that is not WebHDFS's.
_UNEXPECTED = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
#: Bytes of the longest file that is read as a whole.
WHOLE_FILE = 1 << 30
Parsed = TypeVar("Parsed")


def describe_call(operation: str, path: str) -> str:
    """Return an operation on a path, as messages begin."""
    return "%s %s" % (OPERATIONS[operation][1], path)


def build_place(operation: str, path: str, parameters: Mapping[str, object]) -> str:
    """Return path and query of a request to a NameNode."""
    return "/webhdfs/v1%s?%s" % (quote(posixpath.normpath(path), "/="), urlencode({"op": operation, **parameters}))


def is_tolerated(exception: str, tolerated: Sequence[str]) -> bool:
    """Return whether Hadoop's exception is among those that are no errors of a call."""
    return bool(exception) and (exception in tolerated or tolerated == ANY)


#: A request that each NameNode answers, also without a login.
PROBE = build_place("GETFILESTATUS", "/", {})
#: Seconds for which an address may be silent while another one is left to ask, round by round.
PROBE_SECONDS = (2.0, 4.0, 8.0)


def probe_rounds(limit: float) -> Sequence[float]:
    """Return the seconds of each round of probes before a request that may take ``limit`` seconds: a third at most."""
    return [seconds for seconds in PROBE_SECONDS if 3 * seconds <= limit]


#: Seconds after which a transfer of content examines again whether the other NameNodes answer, if all did or one hung.
_PROBE_AGAIN = {False: 5.0, True: 60.0}
#: The name of a pair of NameNodes in a redirect to a DataNode.
_PAIR = re.compile(r"(?<=[?&]namenoderpcaddress=)[^&:%]+(?=&|$)")
_NAMENODE_STATUS = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"


class Answer(NamedTuple):
    """An answer of a NameNode or a DataNode.

    Attributes
    ----------
    status : int
    content : bytes
    address : str
        Who answers, without a query: it may hold a token.
    location : str
        The address to which it redirects; empty: none.
    """

    status: int
    content: bytes
    address: str = ""
    location: str = ""

    def document(self) -> Any:
        """Return the JSON value of the answer; None if it is another text."""
        try:
            return parse_json(self.content, repeated=True)
        except ValueError:
            return None

    def exception(self) -> Tuple[str, str]:
        """Return the name and the message of Hadoop's exception; empty if there is none."""
        try:
            found = self.document()["RemoteException"]
            return str(found.get("exception") or ""), str(found.get("message") or "")
        except _UNEXPECTED:
            return "", ""


class ContentStep(NamedTuple):
    """The second request of a read or a write, to the address that a NameNode names.

    Attributes
    ----------
    operation, path : str
    tolerated : sequence of str, optional
        Exceptions of Hadoop for which the result is None.
    repeatable : bool, optional
        Whether a request that a DataNode may have carried out can be sent again. Default: True.
    data : bytes or Content, optional
        What is written.
    most : int, optional
        The most bytes of an answer. Default: 1 GiB.
    """

    operation: str
    path: str
    tolerated: Sequence[str] = ()
    repeatable: bool = True
    data: Union[bytes, Content, None] = None
    most: int = WHOLE_FILE

    def length(self) -> Mapping[str, str]:
        """Return the header with the length of content that is sent in pieces."""
        return {} if self.data is None or isinstance(self.data, bytes) else {"Content-Length": str(self.data.size)}


class WebHdfsCalls(abc.ABC):
    """What a client and a container do alike; a subclass sends the requests and has its own errors."""

    _refusal: Type[Exception]

    def __init__(self) -> None:
        self._datanodes = UnreachableDatanodes()
        self._probe_at, self._hung = 0.0, False

    @abc.abstractmethod
    def _request(
        self, operation: str, path: str, parameters: Mapping[str, object] = {}, tolerated: Sequence[str] = ()
    ) -> Optional[Answer]:
        """Return the answer of the active NameNode, which succeeds or redirects; None for a tolerated exception."""

    @abc.abstractmethod
    def _namenodes(self) -> Sequence[str]:
        """Return the addresses of the NameNodes."""

    @abc.abstractmethod
    def _probe(self, url: str, seconds: float) -> Optional[Answer]:
        """Return what an address answers; None if it is silent for so many seconds."""

    @abc.abstractmethod
    def _exchange(self, step: ContentStep, location: str, last_chance: bool) -> Optional[Answer]:
        """Send or fetch content; return the answer, or None for a tolerated exception.

        Raises
        ------
        DatanodeUnreachable
            Another DataNode may do it.
        """

    @abc.abstractmethod
    def _unexpected_answer(self, what: str, why: str) -> Exception:
        """Return the error for an answer that is not WebHDFS's."""

    def find(self, path: str) -> Optional[FileStatus]:
        """Return the status of a path; None when it does not exist."""
        return self._query(
            "GETFILESTATUS", path, lambda document: read_file_status(document["FileStatus"]), tolerated=MISSING
        )

    def list(self, path: str) -> List[FileStatus]:
        found = self._query("LISTSTATUS", path, _read_listing, tolerated=MISSING) or []
        if [status.name for status in found] == [""]:
            raise self._refusal("%s: it is a file, not a directory" % describe_call("LISTSTATUS", path))
        return found

    def makedirs(self, path: str, permission: int) -> None:
        self._request("MKDIRS", path, {"permission": "%o" % permission})

    def create(self, path: str, data: Union[bytes, Content], permission: int) -> bool:
        step = ContentStep("CREATE", path, TAKEN, False, data)
        return self._write(step, {"permission": "%o" % permission, "overwrite": "false"})

    def replace(self, path: str, data: Union[bytes, Content], permission: int) -> None:
        self._write(ContentStep("CREATE", path, data=data), {"permission": "%o" % permission, "overwrite": "true"})

    def append(self, path: str, data: Union[bytes, Content]) -> None:
        """Write to the end of a file that exists."""
        self._write(ContentStep("APPEND", path, repeatable=False, data=data), {})

    def rename(self, source: str, target: str) -> bool:
        if self._query("RENAME", source, _read_flag, {"destination": posixpath.normpath(target)}):
            return True
        # WebHDFS answers false, without a cause, when the target is taken.
        if self.find(target):
            return False
        raise self._refusal(
            "%s: the file system refused to rename it to %s" % (describe_call("RENAME", source), target)
        )

    def delete(self, path: str, recursive: bool = True) -> bool:
        return bool(self._query("DELETE", path, _read_flag, {"recursive": str(recursive).lower()}))

    def allow_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        entries = ["user:%s:r--" % name for name in users] + ["group:%s:r--" % name for name in groups]
        try:
            self._request("MODIFYACLENTRIES", path, {"aclspec": ",".join(entries)})
        except self._refusal as error:
            return str(error)
        return ""

    def read(self, path: str, offset: int = 0, length: Optional[int] = None) -> Optional[bytes]:
        """Return the content of a small file, or of a range of bytes; None when the file does not exist."""
        return self._read(ContentStep("OPEN", path, MISSING, most=length or WHOLE_FILE), offset, offset, length)

    def read_appended(self, path: str, offset: int, known: int, most: int) -> Optional[bytes]:
        if offset < known:
            return self.read(path, offset, most)
        # A NameNode refuses an offset at or after the length that it knows; the DataNode may know more.
        accepted = max(0, known - 1)
        length = most + offset - accepted
        found = self._read(ContentStep("OPEN", path, ANY, most=length), accepted, offset, length)
        return found and found[:most]

    def _read(self, step: ContentStep, accepted: int, offset: int, length: Optional[int]) -> Optional[bytes]:
        """Return the content from an offset on; the NameNode gets one that it accepts."""
        values = {"offset": accepted} if length is None else {"offset": accepted, "length": length}
        located, answer = self._transfer(step, values, self._exchange, lambda url: _OFFSET.sub(str(offset), url))
        if answer is None and located is not None and not located.location:
            return located.content[offset - accepted :]
        return answer and answer.content

    def _write(self, step: ContentStep, parameters: Mapping[str, object]) -> bool:
        """Write a file's content; return False for a tolerated exception."""
        located, written = self._transfer(step, parameters, self._exchange)
        self._check_located(step, located)
        return written is not None

    def _check_located(self, step: ContentStep, located: Optional[Answer]) -> None:
        if located is not None and not located.location:
            why = "the answer is %d, and names no DataNode" % located.status
            raise self._unexpected_answer(describe_call(step.operation, step.path), why)

    def _transfer(
        self,
        step: ContentStep,
        parameters: Mapping[str, object],
        exchange: Callable[[ContentStep, str, bool], Transferred],
        change: Callable[[str], str] = str,
    ) -> Tuple[Optional[Answer], Optional[Transferred]]:
        """Send or fetch content where the NameNode says; leave out DataNodes that can't be reached.

        Parameters
        ----------
        step : ContentStep
        parameters : mapping of str to object
            Of the request to the NameNode.
        exchange : callable
            Gets the step, the address, and whether it is the last chance, for which a longer wait is due.
        change : callable, optional
            Returns the address to use instead of the NameNode's.

        Returns
        -------
        tuple
            The NameNode's answer, None for a tolerated exception; and what `exchange` returned, None if the answer
            names no address.
        """
        located: Optional[Answer] = None

        def locate(excluded: Mapping[str, str]) -> Optional[str]:
            nonlocal located
            located = self._request(step.operation, step.path, {**parameters, **excluded}, step.tolerated)
            return change(self._past_hung_namenode(located)) if located and located.location else None

        result = self._datanodes.follow(locate, functools.partial(exchange, step))
        return located, result

    def _past_hung_namenode(self, located: Answer) -> str:
        """Return the address of a redirect; if another NameNode of the pair hangs, it names the one that answers.

        A DataNode has a client of the pair, which asks the first NameNode first and waits minutes for its answer.
        """
        split = urlsplit(located.address)
        base = "%s://%s" % (split.scheme, split.netloc)
        others = [url for url in self._namenodes() if url != base]
        if not others or not _PAIR.search(located.location):
            return located.location
        if time.monotonic() >= self._probe_at:
            self._hung = any(self._probe(url + PROBE, PROBE_SECONDS[0]) is None for url in others)
            self._probe_at = time.monotonic() + _PROBE_AGAIN[self._hung]
        status = self._probe(base + _NAMENODE_STATUS, PROBE_SECONDS[-1]) if self._hung else None
        try:
            service = quote(status.document()["beans"][0]["HostAndPort"], ":") if status else ""
        except (*_UNEXPECTED, IndexError):
            service = ""
        return _PAIR.sub(lambda pair: service or pair[0], located.location)

    def _query(
        self,
        operation: str,
        path: str,
        read: Callable[[Any], Parsed],
        parameters: Mapping[str, object] = {},
        tolerated: Sequence[str] = (),
    ) -> Optional[Parsed]:
        """Return what `read` finds in the answer; None for a tolerated exception."""
        answer = self._request(operation, path, parameters, tolerated)
        try:
            return answer and read(answer.document())
        except _UNEXPECTED as error:
            why = "%s does not answer as a NameNode: %r" % (answer and answer.address, error)
            raise self._unexpected_answer(describe_call(operation, path), why) from error


def _read_listing(document: Any) -> List[FileStatus]:
    return [read_file_status(item) for item in document["FileStatuses"]["FileStatus"]]


def _read_flag(document: Any) -> bool:
    return bool(document["boolean"])

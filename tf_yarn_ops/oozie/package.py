"""Write an application of Oozie: into a folder of this machine, and from there into HDFS.

All documents are made and checked before anything is written.
"""

import hashlib
import os
import posixpath
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import unescape

import javaproperties

from ..errors import Fault, FaultCode, GeneralFault, SpecInvalid, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..job.document import format_yaml
from ..runtime.common.file_storage import Content
from ..staging.archive import pack
from ..staging.staging_directory import LocalContent
from ..validation import check_faults
from .documents import (
    OozieRequest,
    build_coordinator,
    build_workflow,
    fill_workflow,
    function_faults,
)
from .packed_job import (
    APP_PATH,
    COORDINATOR,
    COORDINATOR_PATH,
    FILES_FOLDER,
    LAUNCH,
    OWN_FILE,
    PEX,
    PROPERTIES,
    WORKFLOW,
    WORKFLOW_PATH,
)
from .pex import write_pex
from .schedule import format_time, read_time
from .schemas import document_faults, parse_xml, to_text

#: The job's document may hold secrets in its variables, so other users do not read the application.
_FOLDER_MODE, _FILE_MODE = 0o750, 0o640
_PATHS = (APP_PATH, COORDINATOR_PATH, WORKFLOW_PATH)
#: An expression of a document, and a name in it.
_EXPRESSION, _NAME = re.compile(r"\$\{(.*?)\}", re.DOTALL), re.compile(r"[A-Za-z_]\w*")


class PackageFault(FaultCode):
    """Fault codes for the place of an application, and for its start."""

    NOT_A_PLACE = "{given!r} is not a folder in the cluster's file system; give hdfs:///apps/NAME"
    NOT_OURS = "{given} has files, and no application of ours; give an empty or a new folder"
    NO_PROPERTIES = "there is no {file} in {given}; ytf oozie package writes one"
    STARTING = "{given} is starting this coordinator; if that process has ended, call with --again"
    NO_PLACE = "{file} does not say where the application lies: {key} is missing"
    NEEDS_OUT = "missing; give a folder of this machine, or hdfs:///apps/NAME; --dry-run prints the documents"
    NEEDS_SERVER = "missing; give the address of the Oozie server, http://host:11000/oozie, or set OOZIE_URL"
    WORKFLOW_RUNS = (
        "{given} runs this application, which would be trained twice at the same time; end it with "
        "`oozie job -oozie {server} -kill {given}`, or start it once more with --again"
    )
    RUNS = (
        "{given} is a coordinator {name!r} for the same time, so each day would be trained twice; end it with "
        "`oozie job -oozie {server} -kill {given}`, or start another one with --again"
    )
    IS_A_URI = "{given} is in HDFS already; app_path is for applications that are packed into a folder of this machine"


@dataclass(frozen=True)
class Place:
    """Where an application will lie and run.

    Attributes
    ----------
    path : str
        The application's folder, a URL.
    name_node, resource_manager : str
        The values of ``nameNode`` and ``resourceManager`` for Oozie.
    """

    path: str
    name_node: str
    resource_manager: str


def absolute(path: str, name_node: str) -> str:
    """Return a folder of the cluster as a URL with its file system.

    Raises
    ------
    SpecInvalid
        It is not a folder of a file system.
    """
    split = urlsplit(path)
    if not split.path.strip("/") or split.scheme not in ("", "hdfs", "viewfs", urlsplit(name_node).scheme):
        raise SpecInvalid(Fault("out", PackageFault.NOT_A_PLACE, {"given": path}))
    return f"{split.scheme}://{split.netloc}{split.path}" if split.netloc else f"{name_node}{split.path}"


def default_path(name: str, user: str) -> str:
    """Return the folder of an application that was packed into a folder of this machine."""
    return f"/user/{user}/oozie/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name).strip('-.') or 'application'}"


def documents_of(request: OozieRequest, place: Place) -> dict[str, str]:
    """Return the texts of an application by the names of their files, checked against Oozie's schemas.

    Raises
    ------
    SpecInvalid
        Oozie would refuse a document.
    SchemasMissing
        The library that checks them is not installed.
    """
    schedule = request.schedule
    roots = {WORKFLOW: fill_workflow(request) if request.flow else build_workflow(request)}
    if schedule:
        roots[COORDINATOR] = build_coordinator(request, schedule)
    check_faults([*document_faults(roots), *function_faults(roots[WORKFLOW])])
    texts = {name: to_text(root) for name, root in roots.items()}
    properties = {
        "nameNode": place.name_node,
        "resourceManager": place.resource_manager,
        APP_PATH: place.path,
        COORDINATOR_PATH if schedule else WORKFLOW_PATH: place.path,
        "oozie.use.system.libpath": "true",
        **({"start": schedule.start, "end": schedule.end} if schedule else {}),
        **request.properties,
    }
    texts[PROPERTIES] = format_oozie_properties(properties)
    texts |= {one.document_file: format_yaml(one.document) for one in request.trainings}
    texts[LAUNCH] = (Path(__file__).parent / LAUNCH).read_text(encoding="utf-8")
    return texts


def write_folder(request: OozieRequest, documents: Mapping[str, str], target: Path) -> list[str]:
    """Write an application into a folder of this machine; return the names of its files.

    Files of an earlier application there are replaced, or deleted if there is no such file any more.

    Raises
    ------
    SpecInvalid
        The folder has files, and no application.
    PexFailed
        The PEX file can't be made.
    """
    present = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if present and not {WORKFLOW, LAUNCH} <= present:
        raise SpecInvalid(Fault("out", PackageFault.NOT_OURS, {"given": str(target)}))
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".packing-") as folder:
            made = _make(request, documents, Path(folder))
            for name in made:
                (Path(folder) / name).replace(target / name)
        for name in filter(OWN_FILE.fullmatch, present - {*made}):
            (target / name).unlink()
    except OSError as error:
        raise SpecInvalid(f"out: {target} can't be written: {error}") from error
    return made


def _make(request: OozieRequest, documents: Mapping[str, str], folder: Path) -> list[str]:
    """Write all files into an empty folder; return their names."""
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / LAUNCH).chmod(0o755)
    for name, source in request.extra.items():
        shutil.copy(source, folder / name)
    packed = [training for training in request.trainings if training.sources]
    for training in packed:
        with tempfile.TemporaryDirectory() as gathered:
            for place, source in training.sources.items():
                link = Path(gathered) / Path(place).relative_to(FILES_FOLDER)
                link.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, link, symlinks=True)
                else:
                    shutil.copy(source, link)
            pack(Path(gathered), folder / training.archive_file)
    if request.has_pex:
        write_pex(folder / PEX)
    archives = [training.archive_file for training in packed]
    return [*documents, *request.extra, *archives, *([PEX] if request.has_pex else [])]


def format_oozie_properties(pairs: Mapping[str, str]) -> str:
    """Return the text of a properties file. Its values keep their colons, which need no backslash, for readers."""

    def plain(text: str) -> str:
        return re.sub(r"\\(.)", lambda escape: escape[1] if escape[1] in ":=#!" else escape[0], text)

    lines = (javaproperties.join_key_value(name, value).partition("=") for name, value in pairs.items())
    return "".join(f"{name}={plain(value)}\n" for name, _, value in lines)


@dataclass(frozen=True)
class Packed:
    """A packed application.

    Attributes
    ----------
    properties : mapping of str to str
        Those of ``job.properties``.
    coordinator : str
        The coordinator's name; empty for a plain workflow.
    workflow : str
        The workflow's name.
    handed_over : tuple of str
        The names of the values that the coordinator hands over to its workflow.
    """

    properties: Mapping[str, str]
    coordinator: str
    workflow: str
    handed_over: tuple[str, ...]

    @classmethod
    def read(cls, where: str, read: Callable[[str], str | None], changes: Mapping[str, str]) -> "Packed":
        """Read an application.

        Parameters
        ----------
        where : str
            The folder, for messages.
        read : callable
            Returns the text of a file by its name; None if there is no such file.
        changes : mapping of str to str
            Values in place of those of ``job.properties``.

        Raises
        ------
        SpecInvalid
            The folder has no application, or a name of ``changes`` is unknown to it.
        """
        text = read(PROPERTIES)
        if text is None:
            raise SpecInvalid(Fault("", PackageFault.NO_PROPERTIES, {"file": PROPERTIES, "given": where}))
        try:
            properties = javaproperties.loads(text)
        except ValueError as error:
            raise SpecInvalid(f"{where}: {PROPERTIES} is not a properties file: {error}") from error
        if not (COORDINATOR_PATH in properties or WORKFLOW_PATH in properties) or APP_PATH not in properties:
            raise SpecInvalid(Fault("", PackageFault.NO_PLACE, {"file": PROPERTIES, "key": WORKFLOW_PATH}))
        schedule, flow = (read(COORDINATOR) or "") if COORDINATOR_PATH in properties else "", read(WORKFLOW) or ""
        # A workflow of one's own may use a property without a value in the file.
        known = (*properties, *_NAME.findall(" ".join(_EXPRESSION.findall(schedule + flow))))
        check_faults(
            Fault("property", GeneralFault.UNKNOWN_KEY, {"item": name, "given": name, "allowed": (*properties,)})
            for name in changes
            if name not in known and not name.startswith("oozie.")
        )
        root = parse_xml(COORDINATOR, schedule) if schedule else None
        names = () if root is None else tuple(item.text or "" for item in root.iterfind(".//{*}property/{*}name"))
        named = re.search(r"<workflow-app\b[^>]*?\bname=\"([^\"]*)\"", flow)
        return cls(
            {**properties, **changes},
            "" if root is None else root.get("name", ""),
            unescape(named[1], {"&quot;": '"'}) if named else "",
            names,
        )

    def overlapping(self, coordinators: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the ids of coordinators, as Oozie lists them, whose time overlaps with that of this one."""
        start, end = "", "9999"  # all of time, where the properties have no times that we can read
        with suppress(SpecInvalid):
            start, end = (read_time(self.properties.get(name)) for name in ("start", "end"))
        return [
            job["coordJobId"]
            for job in coordinators
            if format_time(parsedate_to_datetime(job["startTime"])) < end
            and start < format_time(parsedate_to_datetime(job["endTime"]))
        ]

    def at(self, path: str) -> dict[str, str]:
        """Return the properties for an application that lies in another folder."""
        return {name: path if name in _PATHS else value for name, value in self.properties.items()}


def content_version(folder: Path) -> str:
    """Return a name for the content of an application in a folder of this machine, without its properties."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != PROPERTIES:
            digest.update(f"{path.name}\0{LocalContent(path).digest()}\n".encode())
    return digest.hexdigest()[:12]


class Folder:
    """A folder in a file system of the cluster.

    Parameters
    ----------
    cluster : Cluster
    url : str
        ``hdfs://namenode:8020/apps/digits``.
    """

    def __init__(self, cluster: Cluster, url: str):
        self._files, path = cluster.open_path(url)
        self.path = posixpath.normpath(path)

    def close(self) -> None:
        """Close the connections."""
        self._files.close()

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist."""
        content = self._files.read(f"{self.path}/{name}")
        return None if content is None else content.decode(errors="replace")

    def upload(self, source: Path, properties: Mapping[str, str]) -> bool:
        """Write an application into this folder, whose name says its content; return False if it is there already.

        ``job.properties`` comes last: a folder without it is what an interrupted call has left.

        Raises
        ------
        SubmissionRejected, ClusterUnreachable
            As the methods of `hadoop.filesystem.FileSystem`.
        """
        if self._files.status(f"{self.path}/{PROPERTIES}"):
            return False
        self.delete()
        self._files.makedirs(self.path, _FOLDER_MODE)
        contents: dict[str, bytes | Content] = {
            path.name: LocalContent(path)
            for path in sorted(source.iterdir())
            if path.is_file() and path.name != PROPERTIES
        }
        contents[PROPERTIES] = format_oozie_properties(properties).encode()
        for name, content in contents.items():
            if not self._files.create(f"{self.path}/{name}", content, _FILE_MODE):
                raise SubmissionRejected(f"another process is writing {self.path}; try again when it has ended")
        return True

    @contextmanager
    def starting(self, again: bool) -> Iterator[None]:
        """Keep other processes from starting a coordinator from here, or from another version beside, meanwhile.

        Parameters
        ----------
        again : bool
            Whether to start it beside another process, which may have been killed.

        Raises
        ------
        SpecInvalid
            Another process is starting one.
        """
        above = posixpath.dirname(self.path)
        claim, content = f"{above}/.starting", f"process {os.getpid()} on {socket.gethostname()}".encode()
        self._files.makedirs(above, _FOLDER_MODE)
        if again:
            self._files.delete(claim)
        # A NameNode that failed over may have made the file without answering.
        if not self._files.create(claim, content, _FILE_MODE) and (found := self._files.read(claim)) != content:
            raise SpecInvalid(Fault(claim, PackageFault.STARTING, {"given": (found or b"").decode(errors="replace")}))
        try:
            yield
        finally:
            self._files.delete(claim)

    def delete(self) -> None:
        """Delete the folder."""
        self._files.delete(self.path)

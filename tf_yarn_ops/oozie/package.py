"""Write an application of Oozie: into a folder of this machine, and from there into HDFS.

All documents are made and checked before anything is written.
"""

import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import javaproperties

from ..errors import Code, Fault, SpecInvalid, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import Content, FileSystem
from ..job.document import format_yaml
from ..staging.archive import pack
from .application import coordinator_xml, job_properties, workflow_xml
from .bundle import write_bundle
from .contract import (
    BUNDLE,
    COORDINATOR,
    FILES_ARCHIVE,
    FILES_FOLDER,
    JOB_FILE,
    LAUNCH,
    OWN_FILES,
    PROPERTIES,
    WORKFLOW,
)
from .flow import fill_workflow
from .request import Request
from .schemas import check_documents

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: The job's document may hold secrets in its variables, so other users do not read the application.
_FOLDER_MODE, _FILE_MODE = 0o750, 0o640
_PIECE = 1 << 20


class Wrong(Code):
    """What is wrong with a place of an application."""

    NOT_A_PLACE = "{given!r} is not a folder in the cluster's file system; give hdfs:///apps/NAME"
    NOT_OURS = "{given} has files, and no application of ours; give an empty or a new folder"
    NO_PROPERTIES = "there is no {file} in {given}; ytf oozie package writes one"
    NO_PLACE = "{file} does not say where the application lies: {key} is missing"


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


def is_uri(text: str) -> bool:
    """Return whether a text names a place in a file system of the cluster, not a folder of this machine."""
    return bool(_URI.match(text))


def absolute(path: str, name_node: str) -> str:
    """Return a folder of the cluster as a URL with its file system.

    Raises
    ------
    SpecInvalid
        It is not a folder of a file system.
    """
    split = urlsplit(path)
    if not split.path.strip("/") or split.scheme not in ("", "hdfs", "viewfs", urlsplit(name_node).scheme):
        raise SpecInvalid(Fault("out", Wrong.NOT_A_PLACE, {"given": path}))
    return f"{split.scheme}://{split.netloc}{split.path}" if split.netloc else f"{name_node}{split.path}"


def default_path(name: str, user: str) -> str:
    """Return the folder of an application that was packed into a folder of this machine."""
    return f"/user/{user}/oozie/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name).strip('-.') or 'application'}"


def documents_of(request: Request, place: Place) -> dict[str, str]:
    """Return the texts of an application by the names of their files, checked against Oozie's schemas.

    Raises
    ------
    SpecInvalid
        Oozie would refuse a document.
    SchemasMissing
        The library that checks them is not installed.
    """
    application = request.application
    pairs = job_properties(application, place.path, place.name_node, place.resource_manager)
    texts = {WORKFLOW: fill_workflow(request.flow, application) if request.flow else workflow_xml(application)}
    if application.schedule:
        texts[COORDINATOR] = coordinator_xml(application, application.schedule)
    check_documents(texts)
    texts[PROPERTIES] = format_properties(pairs)
    texts[JOB_FILE] = format_yaml(request.document)
    texts[LAUNCH] = (Path(__file__).parent / LAUNCH).read_text(encoding="utf-8")
    return texts


def write_folder(request: Request, documents: Mapping[str, str], target: Path) -> list[str]:
    """Write an application into a folder of this machine; return the names of its files.

    Files of an earlier application there are replaced, or deleted if there is no such file any more.

    Raises
    ------
    SpecInvalid
        The folder has files, and no application.
    BundleFailed
        The bundle can't be made.
    """
    present = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if present and not {WORKFLOW, LAUNCH} <= present:
        raise SpecInvalid(Fault("out", Wrong.NOT_OURS, {"given": str(target)}))
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".packing-") as folder:
            made = _make(request, documents, Path(folder))
            for name in made:
                (Path(folder) / name).replace(target / name)
        for name in present & {*OWN_FILES} - {*made}:
            (target / name).unlink()
    except OSError as error:
        raise SpecInvalid(f"out: {target} can't be written: {error}") from error
    return made


def _make(request: Request, documents: Mapping[str, str], folder: Path) -> list[str]:
    """Write all files into an empty folder; return their names."""
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / LAUNCH).chmod(0o755)
    names = [*documents]
    for name, source in request.extra.items():
        shutil.copy(source, folder / name)
        names.append(name)
    if request.sources:
        with tempfile.TemporaryDirectory() as gathered:
            for place, source in request.sources.items():
                link = Path(gathered) / Path(place).relative_to(FILES_FOLDER)
                link.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, link, symlinks=True)
                else:
                    shutil.copy(source, link)
            pack(Path(gathered), folder / FILES_ARCHIVE)
        names.append(FILES_ARCHIVE)
    if request.bundle:
        write_bundle(folder / BUNDLE)
        names.append(BUNDLE)
    return names


def format_properties(pairs: Mapping[str, str]) -> str:
    """Return the text of a properties file. Its values keep their colons, which need no backslash, for readers."""

    def plain(text: str) -> str:
        return re.sub(r"\\(.)", lambda escape: escape[1] if escape[1] in ":=#!" else escape[0], text)

    lines = (javaproperties.join_key_value(name, value).partition("=") for name, value in pairs.items())
    return "".join(f"{name}={plain(value)}\n" for name, _, value in lines)


def read_properties(text: str | None, where: str) -> dict[str, str]:
    """Return the pairs of a ``job.properties``.

    Raises
    ------
    SpecInvalid
        There is none, or it is not a properties file.
    """
    if text is None:
        raise SpecInvalid(Fault("", Wrong.NO_PROPERTIES, {"file": PROPERTIES, "given": where}))
    try:
        return dict(javaproperties.loads(text))
    except ValueError as error:
        raise SpecInvalid(f"{where}: {PROPERTIES} is not a properties file: {error}") from error


def path_of(properties: Mapping[str, str]) -> str:
    """Return the folder of an application; raise SpecInvalid if its properties do not name one."""
    for kind in ("coord", "wf"):
        if path := properties.get(f"oozie.{kind}.application.path"):
            return path
    raise SpecInvalid(Fault("", Wrong.NO_PLACE, {"file": PROPERTIES, "key": "oozie.wf.application.path"}))


class Folder:
    """A folder in a file system of the cluster.

    Parameters
    ----------
    cluster : Cluster
    url : str
        ``hdfs://namenode:8020/apps/digits``.
    """

    def __init__(self, cluster: Cluster, url: str):
        split = urlsplit(url)
        filesystem = f"{split.scheme}://{split.netloc}" if split.netloc else cluster.default_filesystem
        own = filesystem in (cluster.default_filesystem, cluster.filesystem)
        self.path = posixpath.normpath(split.path)
        self._files: FileSystem = cluster.open_filesystem() if own else cluster.open_namenodes(filesystem)

    def close(self) -> None:
        """Close the connections."""
        self._files.close()

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist."""
        content = self._files.read(f"{self.path}/{name}")
        return None if content is None else content.decode(errors="replace")

    def upload(self, source: Path) -> list[str]:
        """Write the files of a local folder, in place of those of an earlier application; return their names.

        Raises
        ------
        SubmissionRejected, ClusterUnreachable
            As the methods of `hadoop.filesystem.FileSystem`.
        """
        self._files.makedirs(self.path, _FOLDER_MODE)
        local = sorted(path for path in source.iterdir() if path.is_file())
        for path in local:
            target = f"{self.path}/{path.name}"
            self._files.delete(target)
            if not self._files.create(target, _File(path), _FILE_MODE):
                raise SubmissionRejected(f"{target} is being written by another process; try again when it has ended")
        for name in {*OWN_FILES} - {path.name for path in local}:
            self._files.delete(f"{self.path}/{name}")
        return [path.name for path in local]


class _File(Content):
    """The content of a local file."""

    def __init__(self, path: Path):
        self._path = path
        self.size = path.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece

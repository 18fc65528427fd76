"""`unpack_archive`: unpack the archive of somebody else into a folder, and nothing outside it."""

import gzip
import posixpath
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..errors import Fault, FaultCode, SpecInvalid, TfYarnError

#: The largest archive: members, and bytes of their content.
_MOST_MEMBERS, _MOST_BYTES = 500_000, 64 << 30
#: Bytes that stay free on the disk.
_LEFT_FREE = 1 << 30
#: Bytes of the longest header with names, which is read into memory. The types of those headers.
_LONGEST_HEADER = 1 << 20
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
#: Characters and folders of the longest path; Linux takes no longer one.
_LONGEST_PATH, _DEEPEST_PATH = 4096, 255
#: What a damaged archive raises; the readers of the standard library check few of the numbers in it.
UNREADABLE = (OSError, EOFError, tarfile.TarError, zlib.error, ValueError, IndexError, RecursionError, OverflowError)
#: Python 3.10.12 and 3.11.4 brought filters, 3.14 the default "data". They refuse less than `MemberRules` does.
_FILTER: dict[str, Any] = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}


class MemberFault(FaultCode):
    """Fault codes for a member of an archive that leads out of the folder, or is no file."""

    OUTSIDE = "{name!r} leads out of the archive's folder"
    THROUGH_LINK = "{name!r} lies behind the link {link!r}"
    HARD_LINK = "{name!r} is a hard link to {target!r}, which is no file of the archive before it"
    LONG = "{name!r}... is longer than {most} characters, or more than {deepest} folders deep"
    SPECIAL = "{name!r} is neither a file, a folder nor a link"
    MANY = "has more than {most} members"
    LARGE = "unpacks to more than {most} MiB, the most that is allowed or that the disk has free"
    PASSWORD = "needs a password"
    DAMAGED = "can't be unpacked: {error}"


class MemberRules:
    """Checks the members of a tar in their order; remembers the links, through which no other member may lie.

    Parameters
    ----------
    most : int, optional
        Bytes of content. Default: 64 GiB.

    References
    ----------
    CVE-2007-4559, and CVE-2025-4517 for paths that are too long for the filters of tarfile: no path is resolved here.
    """

    def __init__(self, most: int = _MOST_BYTES):
        self._most = most
        self._links: set[str] = set()
        self._files: set[str] = set()
        self._number = self._size = 0

    def check(self, member: tarfile.TarInfo) -> Fault | None:
        """Return what is wrong with the next member; None for a member that may be unpacked."""
        self._number += 1
        self._size += max(member.size, 0)
        if self._number > _MOST_MEMBERS:
            return Fault("", MemberFault.MANY, {"most": _MOST_MEMBERS})
        if self._size > self._most:
            return Fault("", MemberFault.LARGE, {"most": self._most >> 20})
        for path in (member.name, member.linkname):
            if len(path) > _LONGEST_PATH or path.count("/") > _DEEPEST_PATH:
                most = {"name": path[:40], "most": _LONGEST_PATH, "deepest": _DEEPEST_PATH}
                return Fault("", MemberFault.LONG, most)
        name = posixpath.normpath(member.name)
        if name.startswith("/") or ".." in member.name.split("/"):
            return Fault("", MemberFault.OUTSIDE, {"name": name})
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            return Fault("", MemberFault.SPECIAL, {"name": name})
        steps = name.split("/")
        for link in ("/".join(steps[:end]) for end in range(1, len(steps) + (not member.issym()))):
            if link in self._links:
                return Fault("", MemberFault.THROUGH_LINK, {"name": name, "link": link})
        target = posixpath.normpath(member.linkname)
        if member.islnk() and (target not in self._files or ".." in member.linkname.split("/")):
            return Fault("", MemberFault.HARD_LINK, {"name": name, "target": member.linkname})
        if member.issym():
            self._links.add(name)
            self._files.discard(name)
        elif not member.isdir():
            self._files.add(name)
        return None


#: The faults after which no further member is read.
LAST_FAULTS = (MemberFault.MANY, MemberFault.LARGE, MemberFault.LONG)


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: Any, encoding: Any, errors: str) -> "_Member":
        member = super().frombuf(buf, encoding, errors)
        if member.type in _NAMES and member.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a name has more than {_LONGEST_HEADER} bytes")
        return member

    def _refuse_sparse(self, *_: object) -> NoReturn:
        raise tarfile.ReadError("it has a sparse file, whose map has no limit; pack it without --sparse")

    # Of each format of GNU tar; tarfile reads the map before it returns the member.
    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


def open_tar(content: gzip.GzipFile) -> tarfile.TarFile:
    """Return the tar in a file that is no longer compressed, to be read once, from the beginning to the end."""
    return tarfile.open(fileobj=content, mode="r|", tarinfo=_Member)


def unpack_archive(archive: Path, folder: Path, checkpoint: Callable[[], object] = lambda: None) -> None:
    """Unpack a ``.tar.gz``, ``.tgz`` or ``.zip``.

    Files belong to the user of this process, whatever the archive says, and are neither setuid nor writable by others.

    Parameters
    ----------
    archive : Path
    folder : Path
        Made if it is missing.
    checkpoint : callable, optional
        Called between members; raises an error to end the call. Default: nothing ends it.

    Raises
    ------
    SpecInvalid
        The archive is damaged or too large, or a member leads out of the folder, or is a device or a FIFO.
    """
    folder.mkdir(parents=True, exist_ok=True)
    most = min(_MOST_BYTES, max(0, shutil.disk_usage(folder).free - _LEFT_FREE))
    try:
        (_unpack_zip if archive.suffix == ".zip" else _unpack_tar)(archive, folder, most, checkpoint)
    except TfYarnError:
        raise
    # OSError: a name that is too long, a file where another member needs a folder. NotImplementedError: a version or an
    # encryption that zipfile does not read.
    except (*UNREADABLE, NotImplementedError, zipfile.BadZipFile) as error:
        raise SpecInvalid(Fault(archive.name, MemberFault.DAMAGED, {"error": error})) from error


def _unpack_tar(archive: Path, folder: Path, most: int, checkpoint: Callable[[], object]) -> None:
    rules = MemberRules(most)
    with gzip.open(archive) as content, open_tar(content) as tar:
        for member in tar:
            checkpoint()
            if fault := rules.check(member):
                raise SpecInvalid(fault.in_file(archive.name))
            member.mode = (member.mode & 0o755) | (0o700 if member.isdir() else 0o600)
            member.uid = member.gid = -1  # os.chown changes nothing
            member.uname = member.gname = ""
            tar.extract(member, folder, **_FILTER)
            tar.members.clear()  # type: ignore[attr-defined]  # a million of them need a gigabyte


def _unpack_zip(archive: Path, folder: Path, most: int, checkpoint: Callable[[], object]) -> None:
    with zipfile.ZipFile(archive) as file:
        rules = MemberRules(most)
        for member in file.infolist():
            checkpoint()
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile("it is compressed in a way that Java, and so YARN, does not read")
            like = tarfile.TarInfo(member.filename)
            like.size = member.file_size
            fault = rules.check(like) or (Fault("", MemberFault.PASSWORD) if member.flag_bits & 1 else None)
            if fault:
                raise SpecInvalid(fault.in_file(archive.name))
            file.extract(member, folder)

"""Pack a local folder into an archive, with the same bytes every time, so that the cache finds it again."""

import gzip
import tarfile
from contextlib import nullcontext
from pathlib import Path

from ..errors import ClusterUnreachable, SpecInvalid


def pack(folder: Path, target: Path) -> None:
    """Write a folder's content as a ``.tar.gz`` file.

    A tar, not a zip: YARN unpacks zips without the executable bits. Names are sorted; times, owners and the gzip header
    are fixed; symbolic links stay links.

    Parameters
    ----------
    folder : Path
    target : Path
        The file to write.

    Raises
    ------
    SpecInvalid
        A file of the folder can't be read, or vanished meanwhile.
    ClusterUnreachable
        This machine has no room for the archive, or can't read a disk. A retry on another machine can help.
    """
    try:
        with (
            target.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(folder.rglob("*")):
                _add(archive, path, str(path.relative_to(folder)))
    except (FileNotFoundError, PermissionError) as error:
        raise SpecInvalid(f"{folder} can't be packed: {error}") from error
    except OSError as error:
        raise ClusterUnreachable(f"{folder} can't be packed on this machine: {error}") from error


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    member = archive.gettarinfo(path, arcname=name)
    if member is None or not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return  # sockets and devices are of no use in a container
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    if member.islnk():
        member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
    with path.open("rb") if member.isreg() else nullcontext() as content:
        archive.addfile(member, content)

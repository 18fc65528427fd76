"""`check_archive`: find before the submission what keeps a packed environment from working in a container."""

import gzip
import platform
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Fault, FaultCode
from ..runtime.common.values import open_regular
from .unpack import LAST_FAULTS, UNREADABLE, MemberRules, open_tar

#: Linux on this machine's processor, whose name macOS and Windows spell in their own way.
NODES = "linux-" + {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
#: The processors in the head of an ELF file.
_MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x"}
#: How much of an archive a look at submission unpacks, bytes: programs come first in archives of `pack`.
PEEK = 16 << 20
#: MiB: `yarn.nodemanager.localizer.cache.target-size-mb`; a node deletes what is larger as soon as no job uses it.
_CACHE_OF_NODE = 10240
#: How many members that must not be unpacked are named.
_MOST_HOSTILE = 5
#: The oldest Python that runs the agent.
_OLDEST = (3, 9)
_LIBRARY = re.compile(r"lib/python(\d{1,3})\.(\d{1,3})/(?:os\.py|site-packages/)")
#: A package's description, and what it adds to sys.path; not those of the packages that a package brings along.
_OF_PACKAGE = re.compile(r"(?:site|dist)-packages/[^/]+(?:\.pth|\.dist-info/WHEEL)$")


class ArchiveFault(FaultCode):
    """Fault codes for an archive that can't be the environment of a job."""

    NOT_READ = "is no .tar.gz that can be read: {error}"
    NO_INTERPRETER = "has no bin/python{hint}"
    NOT_A_PROGRAM = "bin/python is for {given}, and the nodes run {platform}"
    BROKEN_LINK = "bin/python leads to {target}, which is not in the archive"
    OLD_PYTHON = "has Python {given}, and the agent needs {least} or later"
    NO_LIBRARY = "has an interpreter without its library: lib/pythonX.Y/os.py is missing"
    OTHER_PACKAGE = "{name} was built for {given}, and the interpreter is Python {python} on {platform}"
    BUILD_PATH = "{name} names {target}, a path of the machine that made the archive"
    EDITABLE = "{name} is installed editable, so its code is not in the archive"


class ArchiveWarning(FaultCode):
    """Codes for what works on some clusters."""

    ZIP = "is a zip, which some versions of YARN unpack without the right to execute; a .tar.gz keeps it"
    NODE_PYTHON = "bin/python leads to {target}, which every node needs"
    ABSOLUTE_LINK = "{name} leads to {target}, which every node needs"
    LARGE = "unpacks to {size} MiB; with stock settings a node keeps {most} MiB of files for later jobs"


#: What no cluster can run; the other faults depend on the nodes or the program, so a submission only warns.
UNRUNNABLE = (ArchiveFault.NOT_READ, ArchiveFault.NO_INTERPRETER, ArchiveFault.BROKEN_LINK)


@dataclass
class _Listing:
    """What is known of an archive's members."""

    names: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    heads: dict[str, bytes] = field(default_factory=dict)
    hostile: list[Fault] = field(default_factory=list)
    size: int = 0
    whole: bool = True


@dataclass(frozen=True)
class ArchiveReport:
    """What was found in an archive.

    Attributes
    ----------
    faults, doubts : tuple of Fault
        Without paths.
    python : str
        ``3.11``; empty if unknown.
    packages : int
        How many were seen.
    packed, unpacked : int
        Bytes; of a part of the archive if only that was read.
    """

    faults: tuple[Fault, ...]
    doubts: tuple[Fault, ...] = ()
    python: str = ""
    packages: int = 0
    packed: int = 0
    unpacked: int = 0


def check_archive(archive: Path, nodes: str = NODES, *, limit: int | None = None) -> ArchiveReport:
    """Find what keeps an archive from being the environment of a job; nothing in it runs.

    Parameters
    ----------
    archive : Path
        A file of this machine.
    nodes : str, optional
        The platform of the nodes. Default: Linux on this machine's processor.
    limit : int, optional
        Read only so many bytes of the content, and assume nothing about the rest. Default: everything.

    Returns
    -------
    ArchiveReport
    """
    if archive.suffix == ".zip":
        return ArchiveReport((), (_found(ArchiveWarning.ZIP),), packed=archive.stat().st_size)
    try:
        listing = _read(archive, limit)
    except UNREADABLE as error:
        return ArchiveReport((_found(ArchiveFault.NOT_READ, error=error),))
    python = _python_of(listing)
    tags = {
        name.split("/")[-2].split("-")[0]: re.findall(r"(?m)^Tag: (\S+-\S+-\S+)", head.decode(errors="replace"))
        for name, head in listing.heads.items()
        if name.endswith("WHEEL")
    }
    found = [
        *listing.hostile,
        *_check_interpreter(listing, nodes, python),
        *_foreign_packages(tags, python, nodes),
        *_build_paths(listing),
        *(
            _found(ArchiveWarning.ABSOLUTE_LINK, name=name, target=target)
            for name, target in listing.links.items()
            if target.startswith("/") and not name.startswith("bin/python")
        ),
    ]
    if listing.size > _CACHE_OF_NODE << 20:
        found.append(_found(ArchiveWarning.LARGE, size=listing.size >> 20, most=_CACHE_OF_NODE))
    doubts = tuple(fault for fault in found if isinstance(fault.code, ArchiveWarning))
    faults = tuple(fault for fault in found if not isinstance(fault.code, ArchiveWarning))
    return ArchiveReport(faults, doubts, python, len(tags), archive.stat().st_size, listing.size)


def _found(code: FaultCode, **values: object) -> Fault:
    return Fault("", code, values)


def _read(archive: Path, limit: int | None) -> _Listing:
    listing = _Listing()
    # gzip reports an archive that was cut off; tarfile alone takes it for a short one.
    rules = MemberRules()
    with open_regular(archive) as opened, gzip.open(opened) as content, open_tar(content) as tar:
        for member in tar:
            tar.members.clear()  # type: ignore[attr-defined]  # as in `unpack_archive`
            fault = rules.check(member)
            if fault and fault not in listing.hostile and len(listing.hostile) < _MOST_HOSTILE:
                listing.hostile.append(fault)
            if fault and fault.code in LAST_FAULTS:
                listing.whole = False
                break
            name = posixpath.normpath(member.name)
            listing.names.add(name)
            listing.size += member.size
            if member.issym():
                listing.links[name] = member.linkname
            elif member.islnk():
                listing.links[name] = posixpath.relpath(member.linkname, posixpath.dirname(name))
            elif member.isreg() and (name.startswith("bin/") or _OF_PACKAGE.search(name)):
                file = tar.extractfile(member)
                listing.heads[name] = file.read(4096) if file else b""
            if limit and member.offset_data + member.size > limit:
                listing.whole = False
                break
    return listing


def _python_of(listing: _Listing) -> str:
    target = posixpath.basename(_end_of_links(listing, "bin/python"))
    found = re.fullmatch(r"python(\d{1,3})\.(\d{1,3})", target) or next(
        filter(None, map(_LIBRARY.match, listing.names)), None
    )
    return f"{found[1]}.{found[2]}" if found else ""


def _end_of_links(listing: _Listing, name: str) -> str:
    for _ in range(10):
        if name not in listing.links:
            break
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), listing.links[name]))
    return name


def _check_interpreter(listing: _Listing, nodes: str, python: str) -> Iterator[Fault]:
    end = _end_of_links(listing, "bin/python")
    if "bin/python" not in listing.names:
        inner = min((name for name in listing.names if name.endswith("/bin/python")), default="")
        folder = inner.removesuffix("/bin/python")
        if listing.whole or folder:
            hint = f"; it is in {folder}: pack the folder's content (tar -C {folder} -czf A.tar.gz .)" if folder else ""
            yield _found(ArchiveFault.NO_INTERPRETER, hint=hint)
    elif end.startswith("/"):
        yield _found(ArchiveWarning.NODE_PYTHON, target=end)
    elif end in listing.names:
        head = listing.heads.get(end, b"")
        built = _platform_of(head)
        if built != nodes and not head.startswith(b"#!"):
            yield _found(ArchiveFault.NOT_A_PROGRAM, given=built, platform=nodes)
        if listing.whole and not any(_LIBRARY.match(name) and name.endswith("os.py") for name in listing.names):
            yield _found(ArchiveFault.NO_LIBRARY)
    elif listing.whole or end.startswith(".."):
        yield _found(ArchiveFault.BROKEN_LINK, target=end)
    if python and tuple(map(int, python.split("."))) < _OLDEST:
        yield _found(ArchiveFault.OLD_PYTHON, given=python, least=".".join(map(str, _OLDEST)))


def _platform_of(head: bytes) -> str:
    """Return for which platform a program was built, by its first bytes."""
    if head.startswith(b"\x7fELF"):
        machine = int.from_bytes(head[18:20], "big" if head[5:6] == b"\x02" else "little")
        return f"linux-{_MACHINES.get(machine, f'machine {machine}')}"
    if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
        return "macOS"
    return "Windows" if head.startswith(b"MZ") else "an unknown system"


def _foreign_packages(tags_of: Mapping[str, list[str]], python: str, nodes: str) -> list[Fault]:
    system, _, machine = nodes.partition("-")

    def fits(tag: str) -> bool:
        interpreters, abi, platforms = tag.rsplit("-", 2)
        short = python.replace(".", "")
        return any(
            name in ("py3", f"py{short}", f"cp{short}")
            or (abi == "abi3" and re.fullmatch(r"cp3\d{1,3}", name) and int(name[3:]) <= int(short[1:]))
            for name in interpreters.split(".")
        ) and any(name == "any" or (system in name and name.endswith(machine)) for name in platforms.split("."))

    return [
        _found(ArchiveFault.OTHER_PACKAGE, name=package, given=", ".join(tags), python=python, platform=nodes)
        for package, tags in sorted(tags_of.items())
        if python and tags and not any(map(fits, tags))
    ]


def _build_paths(listing: _Listing) -> Iterator[Fault]:
    """Yield a fault for each script and path file with a path of the machine that made the archive."""
    for name, head in sorted(listing.heads.items()):
        first = head.partition(b"\n")[0].decode(errors="replace")
        if posixpath.basename(name).startswith("__editable__"):
            yield _found(ArchiveFault.EDITABLE, name=posixpath.basename(name)[13:].split("-")[0])
        elif first.startswith("#!/") and "python" in first and not first[2:].startswith(("/usr/bin/", "/bin/")):
            yield _found(ArchiveFault.BUILD_PATH, name=name, target=first[2:].split()[0])
        elif name.endswith(".pth") and (path := re.search(rb"^/\S+", head, re.MULTILINE)):
            yield _found(ArchiveFault.BUILD_PATH, name=name, target=path[0].decode(errors="replace"))

"""Committed output: the plan in the job file, the names beside the output, and the pure decision at the start.

A training writes into a working folder next to its output. The coordinator commits it: it seals the folder under a name
that no task knows, puts `SUCCESS_FILE` into it, and renames it to the output. `runtime.master.commit` carries that out.

References
----------
docs/design.md, section 5. Hadoop's FileOutputCommitter and its ``_SUCCESS``; TensorFlow Serving's folders of versions.
"""

import json
import re
from typing import Any, Callable, Collection, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

#: The marker of a result, as Hadoop's jobs and Oozie's data sets name it.
SUCCESS_FILE = "_SUCCESS"
#: The pointer file among versions: it holds the number of the latest one.
LATEST_FILE = "LATEST"
#: The result that a commit replaces, inside the sealed folder until the new one has its place.
REPLACED = "_ytf_previous"
OFF, NEW, REPLACE, VERSION = MODES = ("off", "new", "replace", "version")
#: What lies beside an output. A claim is a file, the right to commit; renamed to a marker, it becomes `SUCCESS_FILE`.
CLAIM, MARKER, WORK, SEALED, KEPT, POINTER = KINDS = ("claim", "marker", "work", "sealed", "kept", "pointer")
#: Bytes that the names beside an output add to its own; HDFS and most file systems allow 255 in all.
LONGEST_NAME = 255 - 110
#: Largest `SUCCESS_FILE` that is read, bytes: some 300,000 files.
MOST_SUCCESS = 32 * 1024 * 1024
#: Instead of a training, in the names of an application without identity.
_ALONE = "alone"


class CommitPlan(NamedTuple):
    """How the output of a job is committed, in the job file.

    Attributes
    ----------
    mode : str
        ``new``, ``replace`` or ``version``.
    path : str
        The output in its file system, absolute, without a slash at the end.
    location : str
        What stands before the path in the output's URL; empty for a path of the nodes.
    training : str
        Sixteen hexadecimal digits of the identity; empty without one: then the folder belongs to the application.
    generation : int
    version : int
        The number of the version; 0 for the next one.
    keep : int
        The number of versions that stay.
    """

    mode: str
    path: str
    location: str = ""
    training: str = ""
    generation: int = 0
    version: int = 0
    keep: int = 5

    @property
    def folder(self) -> str:
        """The folder of the names beside the result: that of the versions, or the one above the output."""
        return self.path if self.mode == VERSION else self.path.rpartition("/")[0] or "/"

    def beside(self, kind: str, application_id: str, nonce: str = "") -> str:
        """Return the path of one of `KINDS` of an application; readers of Hadoop pass over it."""
        words = (self.training or _ALONE, str(self.generation), application_id, *filter(None, [nonce]))
        return "%s/_%s.%s-%s" % (self.folder.rstrip("/"), self.path.rpartition("/")[2], kind, "-".join(words))

    def place_of(self, entry: "Beside") -> str:
        """Return the path of what lies beside the output."""
        return "%s/%s" % (self.folder.rstrip("/"), entry.name)

    def working_url(self, application_id: str) -> str:
        """Return the folder into which the tasks of an application write, as they get it in DTF_OUTPUT_PATH."""
        return self.location + self.beside(WORK, application_id)

    def result(self, version: int = 0) -> str:
        """Return the path of the result."""
        return "%s/%d" % (self.path, version) if self.mode == VERSION else self.path


def training_of(tags: Iterable[str]) -> Tuple[str, int]:
    """Return the hash and the generation in the tags of an identity; an empty text and 0 without one."""
    found = {match[1]: match[2] for tag in tags if (match := re.match(r"(tfyg?)-([0-9a-f]+)(?:-\d+)?\Z", tag))}
    return (found["tfy"], int(found["tfyg"])) if "tfy" in found and "tfyg" in found else ("", 0)


def split_location(output: str) -> Optional[Tuple[str, str]]:
    """Return what stands before the path in an output's URL, and its path without a slash at the end.

    The result is None where there is no rename that happens at once or not at all: for any path but ``hdfs://`` and an
    absolute path of the nodes.
    """
    match = re.match(r"(hdfs://[^/]*)?(/.*)", output, re.DOTALL)
    return (match[1] or "", match[2].rstrip("/") or "/") if match else None


class Beside(NamedTuple):
    """One of `KINDS` beside an output, read from its name."""

    name: str
    kind: str
    training: str
    generation: int
    application_id: str

    @property
    def age(self) -> Tuple[int, int, int]:
        """The sort key of applications of one training, oldest first."""
        first, second = self.application_id.split("_")[1:]
        return self.generation, int(first), int(second)


class Success(NamedTuple):
    """What `SUCCESS_FILE` says about who has committed, and what.

    Attributes
    ----------
    application_id : str
    training : str
    generation : int
    report : mapping
        The report of the application, as `JobReport.to_dict` returns it.
    files : sequence of tuple of str and int
        Name and bytes of each file.
    version : int
        0 for an output without versions.
    """

    application_id: str
    training: str
    generation: int
    report: Mapping[str, Any]
    files: Sequence[Tuple[str, int]] = ()
    version: int = 0


def dump_success(success: Success) -> bytes:
    """Return the content of `SUCCESS_FILE`."""
    files = [{"name": name, "bytes": size} for name, size in success.files]
    return json.dumps({"schema": 1, **success._asdict(), "files": files}, indent=1, ensure_ascii=True).encode()


def read_success(content: Optional[bytes]) -> Optional[Success]:
    """Return what a `SUCCESS_FILE` says; None if another program wrote it, such as Hadoop's empty one."""
    try:
        document = json.loads(content or b"")
        return Success(
            str(document["application_id"]),
            str(document["training"]),
            int(document["generation"]),
            dict(document["report"]),
            tuple((str(file["name"]), int(file["bytes"])) for file in document["files"]),
            int(document["version"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def exists_message(result: str) -> str:
    """Return why a result has no place."""
    return "%s exists; delete it, give another output, or let commit be replace or version" % result


def zone_message(plan: CommitPlan, is_encrypted: Callable[[str], bool]) -> str:
    """Return why an output that is an encryption zone has no result; empty for any other output.

    HDFS compares the zones of the folders above source and target only. A rename to the place of a zone succeeds, and
    the result is not encrypted.
    """
    if plan.mode == VERSION or not is_encrypted(plan.path) or is_encrypted(plan.folder):
        return ""
    return (
        "%s is an encryption zone, and a result that takes its place is not encrypted; " % (plan.location + plan.path)
        + "give a folder in it, or let commit be version"
    )


def find_beside(plan: CommitPlan, names: Iterable[str]) -> List[Beside]:
    """Return what lies beside an output, of all trainings, the oldest of each training first."""
    pattern = re.compile(
        r"_%s\.(%s)-([0-9a-f]{16}|%s)-(\d{1,18})-((?:application|local)_\d{1,18}_\d{1,18})(?:-[0-9a-f]+)?\Z"
        % (re.escape(plan.path.rpartition("/")[2]), "|".join(KINDS), _ALONE)
    )
    found = (
        Beside(name, match[1], "" if match[2] == _ALONE else match[2], int(match[3]), match[4])
        for name in names
        if (match := pattern.match(name))
    )
    return sorted(found, key=lambda one: (one.training, one.age, one.name))


def find_results(plan: CommitPlan, list_folder: Callable[[str], Iterable[Any]]) -> List[Tuple[int, str]]:
    """Return version and path of each result, the lowest version first; without versions 0 and the place of the result.

    Parameters
    ----------
    plan : CommitPlan
    list_folder : callable
        Returns the entries of a folder, each a `FileStatus`.
    """
    if plan.mode != VERSION:
        return [(0, plan.path)]
    names = (status.name for status in list_folder(plan.path) if status.is_directory)
    versions = (name for name in names if name.isascii() and name.isdigit() and len(name) < 19)
    return sorted((int(name), "%s/%s" % (plan.path, name)) for name in versions)


class Start(NamedTuple):
    """What an application does with its output before its tasks start.

    Attributes
    ----------
    action : str
        ``train``; ``succeed``, because this generation has committed; ``finish`` a commit that was cut short;
        ``superseded`` by a newer generation; ``yield`` to a newer application of this one; ``exists``: a result that
        may not be replaced.
    application_id : str
        Whose result, or which newer application; empty if there is none.
    takes : sequence of tuple of Beside and str
        Renames that come first: of which entry, to the application's own of which kind. CLAIM: that claim is deleted.
    """

    action: str
    application_id: str = ""
    takes: Sequence[Tuple[Beside, str]] = ()


def decide_start(
    plan: CommitPlan,
    application_id: str,
    beside: Sequence[Beside],
    complete: Collection[str],
    results: Sequence[Optional[Success]],
    occupied: bool,
) -> Start:
    """Return the first row of the table that fits.

    ================================================================  ======================================
    found                                                             do
    ================================================================  ======================================
    a result of this training and generation                          succeed
    a result, or an entry beside it, of a newer generation            superseded
    an entry of a newer application of this generation                yield to it
    a sealed folder with its `SUCCESS_FILE`, of this generation       take it and finish the commit
    a result that may not be replaced                                 exists
    claims of older applications                                      delete them: these can't commit any more
    folders of older generations                                      take them out of the way, and keep them
    the folder of an older application of this generation             take it: its checkpoints are resumed
    otherwise                                                         train
    ================================================================  ======================================

    Parameters
    ----------
    plan : CommitPlan
    application_id : str
    beside : sequence of Beside
        As `find_beside` returns it.
    complete : collection of str
        Names of the sealed folders that have their `SUCCESS_FILE`.
    results : sequence of Success or None
        What the results say: the output, or the versions; None for one of another program.
    occupied : bool
        Whether the place of the result is taken, and the result may not be replaced.
    """
    own = Beside("", CLAIM, plan.training, plan.generation, application_id)
    mine = [one for one in beside if plan.training and one.training == plan.training]
    theirs = [one for one in results if one and plan.training and one.training == plan.training]
    done = [one for one in theirs if one.generation == plan.generation]
    if done:
        return Start("succeed", done[-1].application_id)
    newer = [one.application_id for one in theirs if one.generation > plan.generation]
    newer += [one.application_id for one in mine if one.generation > plan.generation]
    if newer:
        return Start("superseded", newer[-1])
    later = [one.application_id for one in mine if one.age > own.age]
    if later:
        return Start("yield", later[-1])
    folders = [one for one in mine if one.kind in (WORK, SEALED) and one.age < own.age]
    same = [one for one in folders if one.generation == plan.generation]
    finished = [one for one in same if one.name in complete]
    if finished:
        return Start("finish", finished[-1].application_id, ((finished[-1], SEALED),))
    if occupied:
        return Start("exists")
    claims = [(one, CLAIM) for one in mine if one.kind == CLAIM and one.age < own.age]
    takes = [(one, WORK if one in same[-1:] else KEPT) for one in folders]
    return Start("train", takes=(*claims, *takes))

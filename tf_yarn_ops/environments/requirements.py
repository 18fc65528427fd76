"""``requirements://``: the environment of a file of requirements, built once and kept in a cache of this machine.

Nothing is built unless a job names such an environment.
"""

import hashlib
import json
import logging
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import Fault, GeneralFault, why_unreadable
from ..job.document import expand_home
from ..job.parts import Environment
from ..job.spec import JobSpec
from ..runtime.common.clock import DAY
from ..runtime.common.values import read_text_file
from ..staging.prune import UNUSED_DAYS
from ..validation import check_faults, invalid, noting, this_machine
from .pack import PackFault, Packing, pack_environment

logger = logging.getLogger(__name__)
#: What takes long, shown without --verbose too.
transfers = logging.getLogger("tf_yarn_ops.transfers")

_LOCK_INTERVAL = 0.5
#: Files of requirements that name each other, one below the other.
_MOST_DEPTH = 20


def with_built_environment(
    spec: JobSpec, folder: str | None = None, checkpoint: Callable[[], object] = lambda: None
) -> JobSpec:
    """Return the job with the archives of its ``requirements://``; build an archive if the cache lacks it.

    Parameters
    ----------
    spec : JobSpec
        A job with other environments is returned as it is.
    folder : str, optional
        Folder for the archives. Processes that need the same one at the same time wait for one of them to build it.
        Default: ``tf_yarn_ops/environments`` below the user's cache folder.
    checkpoint : callable, optional
        Called several times a second; an error that it raises ends the call. Default: nothing.

    Raises
    ------
    SpecInvalid
        The file is missing, names a folder of this machine, or can't be installed.
    """
    own = os.environ.get("XDG_CACHE_HOME")
    cache = Path(folder) if folder else (Path(own) if own else Path.home() / ".cache") / "tf_yarn_ops" / "environments"
    faults: list[Fault] = []
    built = spec.environments
    for where, environment in spec.environments.items():
        if environment.scheme == "requirements":
            with noting(faults, where):
                file = Path(expand_home(environment.location))
                built[where] = Environment("archive", str(_build(file, cache, checkpoint)))
    check_faults(faults)
    return spec.with_environments(built)


def _build(file: Path, cache: Path, checkpoint: Callable[[], object]) -> Path:
    packing = Packing(
        echo=lambda line: (transfers if line.startswith("*") else logger).info("%s", line), checkpoint=checkpoint
    )
    facts = [list(_content(file)), platform.python_version(), packing.platform]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    archive = cache / digest / "environment.tar.gz"
    cache.mkdir(parents=True, exist_ok=True)
    if cache.stat().st_mode & stat.S_IWOTH:
        raise invalid(PackFault.OPEN_CACHE, folder=cache)
    with _locked(cache / f"{digest}.lock", checkpoint):
        if archive.is_file():
            with suppress(OSError):  # another user's
                os.utime(archive)
        else:
            transfers.info("building the environment of %s, once for its present content", file)
            _delete_unused(cache)
            pack_environment(file, archive, packing)
    return archive


def _content(file: Path, depth: int = 0) -> Iterator[str]:
    """Yield the text of a file of requirements, and of the files that it names."""
    if depth > _MOST_DEPTH:
        raise invalid(PackFault.TOO_DEEP, file=file, most=_MOST_DEPTH)
    try:
        text = read_text_file(file)
    except FileNotFoundError as error:
        raise invalid(PackFault.NO_FILE, file=file, machine=this_machine(file)) from error
    except (OSError, ValueError) as error:
        raise invalid(GeneralFault.UNREADABLE_FILE, file=str(file), error=why_unreadable(error)) from error
    yield text
    for line in text.splitlines():
        first, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if first in ("-r", "-c", "--requirement", "--constraint"):
            yield from _content(file.parent / rest.strip(), depth + 1)
        elif first in ("-e", "--editable") or first.startswith((".", "/", "file:")):
            raise invalid(PackFault.LOCAL_PACKAGE, line=line.strip())


@contextmanager
def _locked(file: Path, checkpoint: Callable[[], object]) -> Iterator[None]:
    try:
        import fcntl
    except ImportError as error:
        raise invalid(PackFault.NO_FLOCK) from error

    # Another user's in a shared cache can be locked too, but not opened for writing.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_CREAT, 0o644)) as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                checkpoint()
                time.sleep(_LOCK_INTERVAL)
        yield


def _delete_unused(cache: Path) -> None:
    for archive in cache.glob("*/environment.tar.gz"):
        with suppress(OSError):  # another user's, in a shared cache
            if archive.stat().st_mtime < time.time() - UNUSED_DAYS * DAY:
                archive.unlink()
                archive.parent.rmdir()

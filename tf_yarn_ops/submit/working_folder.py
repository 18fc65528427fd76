"""`lay_out`: a working directory on this machine, with what YARN localizes into that of a container."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ..environments.unpack import unpack_archive
from ..errors import SpecInvalid
from ..hadoop.cluster import Cluster
from ..job.spec import JobSpec
from ..runtime.common.file_storage import PIECE
from .application import place_environments, user_files
from .container_environment import ContainerEnvironment
from .preflight import local_path


def lay_out(
    spec: JobSpec, folder: Path, cluster: Cluster, checkpoint: Callable[[], object] = lambda: None
) -> ContainerEnvironment:
    """Link the local files of a job, copy those in HDFS, and unpack its archives; return the job's environment.

    Parameters
    ----------
    spec : JobSpec
    folder : Path
        An empty folder.
    cluster : Cluster
        Whose identity reads HDFS.
    checkpoint : callable, optional
        Called between files and pieces of them; raises an error to end the call. Default: nothing ends it.

    Raises
    ------
    SpecInvalid
        A file in HDFS does not exist, or changes while it is copied. An archive can't be unpacked, or would write
        outside its folder.
    RestUnavailable
        A file is neither here nor in an HDFS that can be reached.
    """
    environments = place_environments(spec)
    for name, (source, kind) in user_files(spec, *environments.values()).items():
        checkpoint()
        local, target = local_path(source), folder / name
        with tempfile.TemporaryDirectory(dir=folder) as passing:
            path = local or _fetch(cluster, source, Path(passing), checkpoint)
            if kind == "archive" and not path.is_dir():
                unpack_archive(path, target, checkpoint)
            elif local:
                target.symlink_to(path.absolute())
            else:
                path.rename(target)
    return environments[""]


def _fetch(cluster: Cluster, url: str, folder: Path, checkpoint: Callable[[], object]) -> Path:
    """Copy a file of HDFS into a folder; return the path of the copy."""
    files, path = cluster.open_path(url)
    copy = folder / path.rpartition("/")[2]
    with closing(files), copy.open("wb") as file:
        found = files.status(path)
        if found is None or found.is_directory:
            raise SpecInvalid(f"{url} is no file, so the client's task can't get it")
        while file.tell() < found.length and (piece := files.read(path, file.tell(), PIECE)):
            file.write(piece)
            checkpoint()
        if file.tell() != found.length:
            raise SpecInvalid(f"{url} was changed while it was copied; submit again when nothing writes to it")
    return copy

"""Translate the environment of a job for its containers: PATH, an archive, variables for Docker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ..job.parts import DockerSettings, Environment, mounted_path
from ..runtime.common.contract import ENVIRONMENT_FOLDER

#: The interpreter of a job without an environment, by its name on PATH.
ANY_PYTHON = "python3"


@dataclass(frozen=True)
class ContainerEnvironment:
    """The environment of a job inside a container.

    Attributes
    ----------
    interpreter : str
        The Python that runs agent and coordinator.
    path : tuple of str
        Folders that come first on PATH; relative ones lie in the working directory.
    archives : mapping of str to str
        Name in the working directory to source.
    variables : mapping of str to str
        Variables for YARN, in the container's launch environment.
    docker_image : str or None
    """

    interpreter: str = ANY_PYTHON
    path: tuple[str, ...] = ()
    archives: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    docker_image: str | None = None


def build_container_environment(
    environment: Environment | None,
    paths: Sequence[str | None] = (),
    folders: Sequence[str] = (),
    folder: str = ENVIRONMENT_FOLDER,
    docker: DockerSettings | None = None,
) -> ContainerEnvironment:
    """Return the environment of a job inside a container.

    Parameters
    ----------
    environment : Environment or None
        None for the nodes' own Python.
    paths : sequence of str or None, optional
        Input and output, in this order. Docker containers mount those of the nodes (`mounted_path`).
    folders : sequence of str, optional
        Further folders of the nodes to mount read-only into Docker containers. The YARN-DTF design mounts those of
        HADOOP_HOME, HADOOP_CONF_DIR and JAVA_HOME. YARN expands no variables in mounts, so these are paths.
    folder : str, optional
        Where an archive is unpacked in the working directory. Default `ENVIRONMENT_FOLDER`.
    docker : DockerSettings, optional
        Default: YARN's own.

    References
    ----------
    Hadoop's "Launching Applications Using Docker Containers" for YARN_CONTAINER_RUNTIME_*;
    seed 001, ``--docker_image``, for the mounts.
    """
    if environment is None:
        return ContainerEnvironment()
    location = environment.location
    if environment.scheme == "python":
        return ContainerEnvironment(interpreter=location, path=(str(PurePosixPath(location).parent),))
    if environment.scheme in ("venv", "conda"):
        return ContainerEnvironment(interpreter=f"{location}/bin/python", path=(f"{location}/bin",))
    if environment.scheme in ("archive", "requirements"):  # the latter only where nothing is submitted
        binaries = f"{folder}/bin"
        return ContainerEnvironment(interpreter=f"{binaries}/python", path=(binaries,), archives={folder: location})
    return ContainerEnvironment(
        docker_image=location, variables=docker_variables(location, paths, folders, docker or DockerSettings())
    )


def docker_variables(
    image: str, paths: Sequence[str | None], folders: Sequence[str], docker: DockerSettings
) -> dict[str, str]:
    """Return YARN's variables for a Docker container.

    Agents announce the name of their node, which leads to a container only in the network ``host``. Folders and the
    input path are mounted read-only, the output path writable, if they are paths of the nodes.
    """
    mounts = dict.fromkeys(folders, "ro") | {  # Docker refuses a path that is mounted twice
        mounted: mode
        for path, mode in zip(paths, ("ro", "rw"), strict=False)
        if path and (mounted := mounted_path(path))
    }
    wanted = {
        "IMAGE": image,
        "CONTAINER_NETWORK": "host",
        "RUNTIME": docker.runtime,
        "TMPFS_MOUNTS": ",".join(docker.tmpfs),
        "DELAYED_REMOVAL": "true" if docker.delayed_removal else None,
        "MOUNTS": ",".join(f"{path}:{path}:{mode}" for path, mode in mounts.items()),
    }
    return {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        **{f"YARN_CONTAINER_RUNTIME_DOCKER_{name}": value for name, value in wanted.items() if value},
    }

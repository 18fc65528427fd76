"""From the environment argument to what containers need: PATH, an archive, Docker's variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .parts import Environment
from .runtime.contract import ENVIRONMENT_FOLDER

#: What the seed mounts into Docker containers, next to local input and output paths.
DOCKER_MOUNTS = ("HADOOP_HOME", "HADOOP_CONF_DIR", "JAVA_HOME")


@dataclass(frozen=True)
class Placed:
    """What an environment means inside a container.

    Attributes
    ----------
    interpreter : str
        What runs agent and coordinator.
    path : tuple of str
        Folders that come first on PATH; relative ones are below the working directory.
    archives : mapping of str to str
        Name in the working directory to source.
    variables : mapping of str to str
        For YARN, in the container's launch environment.
    docker_image : str or None
    """

    interpreter: str = "python3"
    path: tuple[str, ...] = ()
    archives: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    docker_image: str | None = None


def place(environment: Environment | None, paths: tuple[str | None, ...] = ()) -> Placed:
    """Give what an environment means inside a container.

    Parameters
    ----------
    environment : Environment or None
        None: what the nodes have.
    paths : tuple of str or None, optional
        Input and output; those that are local paths are mounted into Docker containers.

    References
    ----------
    Hadoop's "Launching Applications Using Docker Containers" for YARN_CONTAINER_RUNTIME_*;
    seed 001, ``--docker_image``, for the mounts.
    """
    if environment is None:
        return Placed()
    location = environment.location
    if environment.scheme == "python":
        return Placed(interpreter=location, path=(str(PurePosixPath(location).parent),))
    if environment.scheme in ("venv", "conda"):
        return Placed(interpreter=f"{location}/bin/python", path=(f"{location}/bin",))
    if environment.scheme == "archive":
        binaries = f"{ENVIRONMENT_FOLDER}/bin"
        return Placed(interpreter=f"{binaries}/python", path=(binaries,), archives={ENVIRONMENT_FOLDER: location})
    return Placed(docker_image=location, variables=docker_variables(location, paths))


def docker_variables(image: str, paths: tuple[str | None, ...]) -> dict[str, str]:
    """Give YARN's variables for a Docker container with the seed's mounts.

    Hadoop's folders are mounted read-only where the node has them (YARN expands
    ``$HADOOP_HOME`` and so on there); input read-only, output writable, unless they are URIs.
    """
    mounts = [f"${name}:${name}:ro" for name in DOCKER_MOUNTS]
    for path, mode in zip(paths, ("ro", "rw"), strict=False):
        if path and path.startswith("/"):
            mounts.append(f"{path}:{path}:{mode}")
    return {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": image,
        "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": ",".join(mounts),
    }

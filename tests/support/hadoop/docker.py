"""A Docker engine of a cluster's own, images of this machine's files, and the properties by which YARN uses them.

The engine has its own folders and socket, and no network but the host's. It needs root.
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError

#: The daemon that runs containers, and the user of this machine that jobs in Docker run as: YARN refuses root.
DOCKERD, USER = "dockerd", "nobody"
#: Where `./dev` unpacks Debian's packages.
UNPACKED = Path(__file__).resolve().parents[3] / ".ytf" / "docker"
#: Python's packages of this machine, which containers may mount.
PACKAGES = Path(sysconfig.get_path("purelib"))
#: Hosts of images: YARN trusts the first.
TRUSTED, UNTRUSTED = "local", "foreign"
#: The image whose containers get this much memory from the engine.
SMALL, SMALL_MIB = f"{TRUSTED}/small:1", 96
#: Name and password of a registry's user, and bcrypt's hash of the password.
LOGIN = "reader:pass-of-the-tests"
_HASHED = "$2b$04$KjTtx/CMVgbb0t0G4fUNnuvnDiAiOWNkrBBtwiI/OAZUpBXu0dBg."
#: A further runtime of the engine.
NVIDIA = "nvidia"
_TOOLS = [
    "bash",
    "sh",
    "cat",
    "chmod",
    "cp",
    "env",
    "find",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "ps",
    "rm",
    "sleep",
    "touch",
    "true",
]
#: Folders of Python's library that no image needs.
_UNUSED = {
    "site-packages",
    "dist-packages",
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "pydoc_data",
}
_EXECUTOR = "yarn.nodemanager.container-executor.class"
_DOCKER = "yarn.nodemanager.runtime.linux.docker"


@dataclass(frozen=True)
class Engine:
    """A Docker engine in a folder."""

    folder: Path

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    @property
    def cfg(self) -> Path:
        return self.folder / "container-executor.cfg"

    @property
    def runs(self) -> Path:
        """The command lines that have started containers."""
        return self.folder / "runs"

    @property
    def input(self) -> Path:
        """Folder that YARN may mount read-only."""
        return self.folder / "input"

    @property
    def output(self) -> Path:
        """Folder that YARN may mount; everybody may write to it."""
        return self.folder / "output"

    @property
    def executor(self) -> Path:
        return self.folder / "container-executor"

    def run(self, *words: str | Path, stdin: int = subprocess.DEVNULL) -> str:
        """Return what a command of ``docker`` prints.

        Raises
        ------
        MiniClusterError
            It failed; the message has its answer.
        """
        program = [find_program("docker"), "--host", self.host]
        ran = subprocess.run([*program, *words], stdin=stdin, capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            raise MiniClusterError(f"docker {words[0]} failed (exit {ran.returncode}): {ran.stderr.strip()}")
        return ran.stdout

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as tried:
            return tried.connect_ex(self.host.removeprefix("unix://")) == 0

    def remove_containers(self) -> None:
        """End all containers."""
        if self.answers() and (containers := self.run("ps", "--all", "--quiet").split()):
            self.run("rm", "--force", *containers)


@contextlib.contextmanager
def start_registry(engine: Engine) -> Iterator[str]:
    """Run a registry that wants a login, trusted by YARN; yield its address. `LOGIN` is its only user."""
    folder = engine.folder / "registry"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ":".join(map(str, free.getsockname()))
    (folder / "users").write_text(f"{LOGIN.partition(':')[0]}:{_HASHED}\n")
    config = {
        "version": "0.1",
        "log": {"accesslog": {"disabled": True}, "level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "tests", "path": str(folder / "users")}},
    }
    (folder / "config.yml").write_text(json.dumps(config))
    cfg = engine.cfg.read_text()
    engine.cfg.write_text(cfg.replace(f"registries={TRUSTED}", f"registries={TRUSTED},{address}"))
    program = find_program("docker-registry")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", folder / "config.yml"], stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or _listens(address), what="the registry listens")
        if process.poll() is not None:
            raise MiniClusterError(f"the registry has ended: {(folder / 'log').read_text(errors='replace')}")
        yield address
    finally:
        process.kill()
        process.wait()
        engine.cfg.write_text(cfg)


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as one:
        return one.connect_ex((host, int(port))) == 0


def write_client_config(file: Path, registry: str) -> Path:
    """Write what ``docker login`` would write for a registry of `start_registry`, and another one's login."""
    other = {"other.example.com": {"auth": base64.b64encode(b"me:the-other-password").decode()}}
    login = {registry: {"auth": base64.b64encode(LOGIN.encode()).decode()}}
    file.write_text(json.dumps({"auths": other | login}))
    return file


def find_program(name: str) -> str:
    """Return a program of Docker: of this machine, or as `./dev` has unpacked it.

    Raises
    ------
    MiniClusterError
        There is none.
    """
    path = os.pathsep.join([*_folders(), os.environ.get("PATH", os.defpath)])
    if found := shutil.which(name, path=path):
        return found
    raise MiniClusterError(f"{name} is missing: `./dev hadoop up --docker` fetches it with apt-get")


def check_engine() -> None:
    """Raise a `MiniClusterError` if no engine can run here."""
    if os.getuid() != 0:
        raise MiniClusterError("a Docker engine runs as root only: leave out --docker, or become root")
    find_program(DOCKERD)


def start_engine(engine: Engine, marks: tuple[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start the engine in a session of its own.

    Parameters
    ----------
    engine : Engine
    marks : tuple of str
        Words by which the process is found on its command line.
    log : Path
    """
    config = engine.folder / "dockerd.json"
    values = {
        "data-root": str(engine.folder / "data"),
        "exec-root": str(engine.folder / "exec"),
        "pidfile": str(engine.folder / "docker.pid"),
        "hosts": [engine.host],
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        # A machine without a GPU has no runtime of NVIDIA's: this one shows that a request reaches the engine.
        "runtimes": {NVIDIA: {"path": find_program("runc")}},
        "log-level": "warn",
    }
    config.write_text(json.dumps(values, indent=1))
    (engine.folder / "docker.pid").unlink(missing_ok=True)  # of an engine that was killed
    path = os.pathsep.join([*_folders(), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    with log.open("ab") as output:
        # dockerd knows no free words: its own name is one mark, the value of --label the other.
        return subprocess.Popen(
            [marks[0], "--label", marks[1], "--config-file", config],
            executable=find_program(DOCKERD), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": path}, cwd=engine.folder, start_new_session=True,
        )  # fmt: skip


def _folders() -> Iterable[str]:
    return (str(UNPACKED / "usr" / name) for name in ("bin", "sbin"))


def build_docker_properties(engine: Engine, executor: str) -> dict[str, str]:
    """Return the properties by which a NodeManager runs containers in Docker; none has a network by default.

    Parameters
    ----------
    engine : Engine
    executor : str
        The class of the NodeManager's executor.
    """
    linux = "yarn.nodemanager.linux-container-executor"
    return {
        _EXECUTOR: executor,
        f"{linux}.path": str(engine.executor),
        f"{linux}.nonsecure-mode.limit-users": "false",
        "yarn.nodemanager.runtime.linux.allowed-runtimes": "default,docker",
        f"{_DOCKER}.allowed-container-networks": "host,none",
        f"{_DOCKER}.default-container-network": "none",
        f"{_DOCKER}.allowed-container-runtimes": f"runc,{NVIDIA}",
        f"{_DOCKER}.delayed-removal.allowed": "true",
    }


def write_executor(engine: Engine, readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Write the stand-in for ``container-executor`` and its configuration.

    Parameters
    ----------
    engine : Engine
    readable, writable : iterable of Path
        What YARN may mount besides the engine's folders of input and output.
    """
    for folder in (engine.folder, engine.input, engine.output):
        folder.mkdir(exist_ok=True)
    engine.output.chmod(0o777)
    readable, writable = (engine.input, PACKAGES, *readable), (engine.output, *writable)
    program = Path(__file__).with_name("container_executor.py")
    engine.executor.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {program} {engine.cfg} "$@"\n')
    engine.executor.chmod(0o755)
    engine.cfg.write_text(f"""\
[docker]
module.enabled=true
docker.binary={find_program("docker")}
docker.host={engine.host}
docker.runs={engine.runs}
docker.allowed.networks=host
docker.allowed.runtimes={NVIDIA}
docker.trusted.registries={TRUSTED}
docker.allowed.ro-mounts={",".join(map(str, readable))}
docker.allowed.rw-mounts={",".join(map(str, writable))}
[{SMALL}]run=--memory={SMALL_MIB}m --memory-swap={SMALL_MIB}m
""")


def import_images(engine: Engine) -> None:
    """Make the images of the tests: with Python, and without what their names say."""
    if engine.run("images", "--quiet"):
        return
    shell, python = list(list_programs(_TOOLS)), list(list_python())
    without_json = [entry for entry in python if "json" not in entry[0]]
    for name, files in {
        "python": shell + python + list(_list_tensorboard(engine)),
        "nopython": shell,
        "nolibrary": shell + without_json,
        "nobash": [entry for entry in shell if not entry[0].endswith("/bash")] + python,
    }.items():
        _import(engine, f"{TRUSTED}/{name}:1", files)
    for name in (SMALL, f"{UNTRUSTED}/python:1"):
        engine.run("tag", f"{TRUSTED}/python:1", name)


def _list_tensorboard(engine: Engine) -> Iterator[tuple[str, Path]]:
    """Yield TensorBoard's program, and the libraries of the packages; these are mounted from `PACKAGES`."""
    program = engine.folder / "tensorboard"
    program.write_text("#!/usr/bin/python3\nfrom tensorboard.main import run_main\nrun_main()\n")
    program.chmod(0o755)
    yield "usr/bin/tensorboard", program
    libraries = list_libraries([PACKAGES / "tensorflow/python/_pywrap_tensorflow_internal.so"])
    yield from (entry for entry in libraries if not entry[1].is_relative_to(PACKAGES))


def list_programs(names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of programs and of their libraries: path in an image, and file of this machine."""
    found = [Path(path) for name in names if (path := shutil.which(name, path="/usr/bin:/bin"))]
    yield from ((f"usr/bin/{path.name}", path) for path in found)
    yield from list_libraries(found)


def list_python() -> Iterator[tuple[str, Path]]:
    """Yield the files of this Python with its library, as ``python3`` of ``/usr``.

    With the bytecode: without it, each start in a container would compile what it imports.
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program = Path(sys.base_prefix, "bin", version).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    modules = [
        path
        for path in library.rglob("*")
        if path.is_file() and not _UNUSED & {*path.parts} and not path.parent.name.startswith("config-")
        and (path.suffix != ".pyc" or path.name.endswith(f".{sys.implementation.cache_tag}.pyc"))
    ]  # fmt: skip
    yield "usr/bin/python3", program
    yield from ((f"usr/lib/{version}/{path.relative_to(library)}", path) for path in modules)
    yield from list_libraries([program, *(path for path in modules if path.suffix == ".so")])


def list_libraries(files: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the shared libraries of programs."""
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True).stdout
    for path in sorted({word for word in listed.split() if word.startswith("/") and not word.endswith(":")}):
        folder = "lib64" if "/ld-linux" in path else "usr/lib"
        yield f"{folder}/{Path(path).name}", Path(path).resolve()


def _import(engine: Engine, name: str, files: Iterable[tuple[str, Path]]) -> None:
    process = subprocess.Popen(
        [find_program("docker"), "--host", engine.host, "import", "-", name],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    with process.stdin, tarfile.open(fileobj=process.stdin, mode="w|", dereference=True) as tar:
        for folder in ("tmp", "etc", "usr/lib", "usr/bin"):
            made = tarfile.TarInfo(folder)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(made)
        for path, target in (("bin", "usr/bin"), ("lib", "usr/lib")):
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for path, file in dict(files).items():
            tar.add(file, path, filter=_readable)
    if process.wait(120) != 0:
        raise MiniClusterError(f"docker import of {name} failed")


def _readable(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.mode |= 0o444
    file.uid = file.gid = 0
    return file

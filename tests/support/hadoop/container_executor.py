"""A stand-in for Hadoop's native ``container-executor`` that runs Docker containers on a real engine, as root.

    python container_executor.py CFG ARGUMENT...

CFG is a ``container-executor.cfg`` as Hadoop documents it, with a few keys of this program: ``docker.host``,
``docker.runs`` for a file that gets the command lines, and ``[IMAGE]run`` for more options of ``docker run``, such as a
memory limit. Programs outside Docker stay root; what runs in Docker is the job's user.

References
----------
Hadoop's ``container-executor/impl/main.c`` and ``utils/docker-util.c``; "Launching Applications Using Docker Containers".
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_COULD_NOT_START, _NO_PROCESS, _INVALID_COMMAND = 7, 9, 29
_SEPARATOR = "%"
#: Hadoop 3.4.3, ``DockerLinuxContainerRuntime``, as ``docker-util.c`` has it.
_IMAGE = re.compile(r"^(([a-zA-Z0-9.-]+)(:\d+)?/)?([a-z0-9_./-]+)(:[\w.-]+)?(@.+)?$")


def read_values(path):
    """Return the values of a command file or of the configuration; the names of sections do not matter."""
    lines = (line.strip().partition("=") for line in Path(path).read_text().splitlines())
    return {name.strip(): value.strip() for name, equals, value in lines if equals and not name.startswith("#")}


def fail(code, text):
    print(text, file=sys.stderr, flush=True)
    sys.exit(code)


def split(values, name):
    return [value for value in values.get(name, "").split(",") if value]


class Docker:
    """The engine, as far as the administrator's configuration lets YARN use it."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.program = [cfg["docker.binary"], "--host", cfg["docker.host"]]

    def inspect(self, container, field):
        words = [*self.program, "inspect", "--format", f"{{{{.State.{field}}}}}", container]
        return subprocess.run(words, capture_output=True, text=True).stdout.strip()

    def command(self, file):
        """Return the command line for a command file of the NodeManager."""
        values = read_values(file)
        name, verb = values.get("name"), values["docker-command"]
        words = {
            "run": lambda: self._run(values),
            "inspect": lambda: ["inspect", f"--format={values['format']}", name],
            "stop": lambda: ["stop", f"--time={values.get('time', 10)}", name],
            "kill": lambda: ["kill", f"--signal={values.get('signal', 'KILL')}", name],
            "rm": lambda: ["rm", name],
            "start": lambda: ["start", name],
            "images": lambda: ["images", values["image"]],
            "pull": lambda: ["pull", values["image"]],
        }
        if verb not in words:
            fail(_INVALID_COMMAND, f"Invalid docker command {verb}")
        config = [f"--config={values['docker-config']}"] if "docker-config" in values else []
        return [*self.program, *config, *words[verb]()]

    def _run(self, values):
        image = values["image"]
        if not _IMAGE.match(image):
            fail(_INVALID_COMMAND, f"Image name '{image}' doesn't match docker image name pattern")
        if values.get("net") not in split(self.cfg, "docker.allowed.networks"):
            fail(_INVALID_COMMAND, "Could not find requested network in allowed networks")
        words = [
            "run",
            f"--name={values['name']}",
            f"--user={values['user']}",
            f"--net={values['net']}",
            "--cap-drop=ALL",
        ]
        words += ["-d"] * (values.get("detach") == "true")
        if "runtime" in values:
            if values["runtime"] not in split(self.cfg, "docker.allowed.runtimes"):
                fail(_INVALID_COMMAND, "Could not find requested runtime in allowed runtimes")
            words.append(f"--runtime={values['runtime']}")
        words += [f"--tmpfs={mount}" for mount in split(values, "tmpfs")]
        trusted = image.partition("/")[0] in split(self.cfg, "docker.trusted.registries")
        if trusted:
            words += [f"--volume={mount}" for mount in self._mounts(values)]
            words += [f"--cap-add={name}" for name in split(values, "cap-add")]
        options = ("workdir", "hostname", "cgroup-parent")
        words += [f"--{option}={values[option]}" for option in options if option in values]
        words += [word for group in split(values, "group-add") for word in ("--group-add", group)]
        words += ["--env-file", values["environ"]] if "environ" in values else []
        return [*words, *self.cfg.get(f"[{image}]run", "").split(), image, *split(values, "launch-command")]

    def _mounts(self, values):
        given = split(values, "mounts")
        given += [f"{mount}:{mode}" for mode in ("ro", "rw") for mount in split(values, f"{mode}-mounts")]
        writable = split(self.cfg, "docker.allowed.rw-mounts")
        readable = [*writable, *split(self.cfg, "docker.allowed.ro-mounts")]
        for mount in given:
            source, mode = mount.split(":")[0], mount.rpartition(":")[2]
            if not os.path.exists(source):
                fail(_INVALID_COMMAND, f"Invalid docker mount '{mount}', realpath=(null)")
            real = Path(os.path.realpath(source))
            allowed = readable if mode.startswith("ro") else writable
            if not any(real.is_relative_to(os.path.realpath(path)) for path in allowed):
                fail(_INVALID_COMMAND, f"Invalid docker {mode[:2]} mount '{mount}', realpath={real}")
        return given


def own(user, path):
    os.chown(path, user.pw_uid, user.pw_gid)


def make_folders(user, application, local_dirs, log_dirs, container="."):
    name = user.pw_name
    for entry in local_dirs.split(_SEPARATOR):
        for path in (Path(entry, "usercache", name, "filecache"),
                     Path(entry, "usercache", name, "appcache", application, container)):  # fmt: skip
            path.mkdir(parents=True, exist_ok=True)
            own(user, path)
    for entry in log_dirs.split(_SEPARATOR):
        path = Path(entry, application, container)
        path.mkdir(parents=True, exist_ok=True)
        own(user, path)


def localize(docker, user, application, container, tokens, local_dirs, log_dirs, *program):
    make_folders(user, application, local_dirs, log_dirs)
    cache = Path(local_dirs.split(_SEPARATOR)[0], "usercache", user.pw_name)
    os.chdir(cache / "appcache" / application)
    shutil.copy(tokens, ".")
    sys.exit(subprocess.run(program).returncode)


def prepare(user, application, container, folder, script, tokens, words):
    """Make a container's folders and files; return the words that follow those about HTTPS."""
    if words[0] in ("--http", "--https"):
        words = words[1:] if words[0] == "--http" else words[3:]
    pid_file, local_dirs, log_dirs, *rest = words
    make_folders(user, application, local_dirs, log_dirs, container)
    # The real one localizes as the user. The program that does it here may not have ended yet, but has this container's.
    for entry in local_dirs.split(_SEPARATOR):
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", Path(entry, "usercache", user.pw_name)])
    for source, name in ((script, "launch_container.sh"), (tokens, "container_tokens")):
        own(user, shutil.copy(source, Path(folder, name)))
    Path(folder, "launch_container.sh").chmod(0o700)
    os.chdir(folder)
    return pid_file, rest


def write(path, text):
    Path(f"{path}.new").write_text(str(text))
    os.replace(f"{path}.new", path)


def launch(docker, user, application, container, folder, script, tokens, *words):
    pid_file, rest = prepare(user, application, container, folder, script, tokens, words)
    for file in rest[0].partition("=")[2].split(_SEPARATOR):
        if file and file != "none":
            Path(file).write_text(str(os.getpid()))
    write(pid_file, os.getpid())
    os.setsid()
    os.execv("/bin/bash", ["bash", "launch_container.sh"])


def launch_docker(docker, user, application, container, folder, script, tokens, *words):
    pid_file, rest = prepare(user, application, container, folder, script, tokens, words)
    code = _COULD_NOT_START
    words = docker.command(rest[0])
    with open(docker.cfg["docker.runs"], "a") as runs:
        print(*words, file=runs)
    if subprocess.run(words).returncode == 0:
        pid = docker.inspect(container, "Pid")
        if pid not in ("", "0"):
            write(pid_file, pid)
        waited = subprocess.run([*docker.program, "wait", container], capture_output=True, text=True)
        code = int(waited.stdout.strip() or -1)
    write(f"{pid_file}.exitcode", code)
    sys.exit(code & 255)


def signal(docker, user, pid, number):
    try:
        os.killpg(int(pid), int(number))
    except ProcessLookupError:
        sys.exit(_NO_PROCESS)


def delete(docker, user, target, *folders):
    for path in (os.path.join(folder, target) for folder in folders or ("",)):
        shutil.rmtree(path, ignore_errors=True)


def run_docker(docker, file):
    words = docker.command(file)
    os.execv(words[0], words)


_COMMANDS: dict[str, Callable[..., None]] = {
    "0": localize, "1": launch, "2": signal, "3": delete, "4": launch_docker,
}  # fmt: skip


def main(cfg, first, *words):
    docker = Docker(read_values(cfg))
    if first == "--run-docker":
        run_docker(docker, *words)
    elif first == "--inspect-docker-container":
        os.execv(docker.program[0], [*docker.program, "inspect", *words])
    elif first == "--remove-docker-container":
        os.execv(docker.program[0], [*docker.program, "rm", "--force", words[-1]])
    elif first != "--checksetup":
        _, command, *rest = words
        _COMMANDS[command](docker, pwd.getpwnam(first), *rest)


if __name__ == "__main__":
    main(*sys.argv[1:])

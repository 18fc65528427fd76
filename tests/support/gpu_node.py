"""``nvidia-smi`` and ``container-executor`` of a node with two GPUs, on their command lines; needs neither card nor root.

    python gpu_node.py CGROUPS nvidia-smi|container-executor [ARGUMENT...]

CGROUPS is a folder of plain files in place of the kernel's. ``container-executor`` does as the NodeManager's own user
what Hadoop's does as the job's: it notes a container's first process and the devices that YARN denies it.
``nvidia-smi`` shows each process the devices that its container is not denied, or those of ``--id``.

References
----------
Hadoop's ``container-executor/impl/main.c`` and ``modules/gpu/gpu-module.c``.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

#: UUID by minor number.
GPUS = {0: "GPU-aaaa", 1: "GPU-bbbb"}
_DEVICE = """<gpu><product_name>Stand-in</product_name><uuid>{}</uuid><minor_number>{}</minor_number>
<fb_memory_usage><total>16000 MiB</total><used>0 MiB</used><free>16000 MiB</free></fb_memory_usage>
<utilization><gpu_util>0 %</gpu_util></utilization>
<temperature><gpu_temp>30 C</gpu_temp></temperature></gpu>"""
_SEPARATOR = "%"
_INVALID_CONTAINER_PID = 9


def list_ancestors():
    """Yield this process and those that it comes from."""
    pid = os.getpid()
    while pid > 0:
        yield str(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def list_visible(groups):
    """Return the GPUs that the cgroup of this process is not denied."""
    processes, denied = set(list_ancestors()), ""
    for file in groups.glob("*/cgroup.procs"):
        if file.read_text() in processes:
            denied = file.with_name("devices.deny").read_text()
    return {minor: uuid for minor, uuid in GPUS.items() if f"c 195:{minor} rwm\n" not in denied}


def show_gpus(groups, *words):
    """Act as ``nvidia-smi``."""
    gpus = list_visible(groups)
    if chosen := next((word.partition("=")[2] for word in words if word.startswith("--id=")), None):
        gpus = {minor: uuid for minor, uuid in gpus.items() if uuid in chosen.split(",")}
    if "-x" in words:
        devices = "".join(_DEVICE.format(uuid, minor) for minor, uuid in gpus.items())
        print(f"<nvidia_smi_log><driver_version>1</driver_version>{devices}</nvidia_smi_log>")
    for number, uuid in enumerate(gpus.values() if "-x" not in words else ()):
        print(f"GPU {number}: Stand-in (UUID: {uuid})" if "-L" in words else f"{uuid}, 50, 1000, 16000")


def execute(groups, *words):
    """Act as ``container-executor``."""
    if words[0] == "--module-gpu":
        values = dict(zip(words[1::2], words[2::2], strict=True))
        denied = filter(None, values.get("--excluded_gpus", "").split(","))
        (groups / values["--container_id"] / "devices.deny").write_text(
            "".join(f"c 195:{minor} rwm\n" for minor in denied)
        )
    elif words[0] != "--checksetup":
        _, user, command, *rest = words
        _COMMANDS[command](user, *rest)


def make_folders(user, application, local_dirs, log_dirs, container="."):
    local = [
        Path(entry, "usercache", user, "appcache", application, container) for entry in local_dirs.split(_SEPARATOR)
    ]
    for folder in (*local, *(Path(entry, application, container) for entry in log_dirs.split(_SEPARATOR))):
        folder.mkdir(parents=True, exist_ok=True)
    return local[0]


def localize(user, application, _, tokens, local_dirs, log_dirs, *program):
    os.chdir(make_folders(user, application, local_dirs, log_dirs))
    shutil.copy(tokens, ".")
    os.execv(program[0], program)


def launch(user, application, container, folder, script, tokens, _, pid_file, local_dirs, log_dirs, resources):
    make_folders(user, application, local_dirs, log_dirs, container)
    os.chdir(folder)
    shutil.copy(script, "launch_container.sh")
    shutil.copy(tokens, "container_tokens")
    for file in (f"{pid_file}.new", *resources.partition("=")[2].split(_SEPARATOR)):
        Path(file).write_text(str(os.getpid()))
    os.replace(f"{pid_file}.new", pid_file)
    os.setsid()
    os.execv("/bin/bash", ["bash", "launch_container.sh"])


def signal(_, pid, number):
    try:
        os.killpg(int(pid), int(number))
    except ProcessLookupError:
        sys.exit(_INVALID_CONTAINER_PID)


def delete(_, target, *folders):
    for path in (os.path.join(folder, target) for folder in folders or ("",)):
        shutil.rmtree(path, ignore_errors=True)


_COMMANDS: dict[str, Callable[..., None]] = {"0": localize, "1": launch, "2": signal, "3": delete}
_PROGRAMS = {"nvidia-smi": show_gpus, "container-executor": execute}

if __name__ == "__main__":
    _PROGRAMS[sys.argv[2]](Path(sys.argv[1], "devices", "hadoop-yarn"), *sys.argv[3:])

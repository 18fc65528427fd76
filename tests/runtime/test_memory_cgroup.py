"""The memory cgroup of an agent by the kernel's files; `tests/submit/test_docker_cluster.py` has a real one."""

import os
import signal

import pytest

from tf_yarn_ops.runtime.agent import memory_cgroup
from tf_yarn_ops.runtime.agent.memory_cgroup import MemoryCgroup

CONTAINER = "container_e01_1700000000000_0001_01_000002"
V1, V2 = "memory.oom_control", "memory.events"


def make_process(folder, cgroup, root, kind, options="rw"):
    """Make the files of a process in /proc whose cgroup file system lies in the folder."""
    (folder / "cgroup").write_text(cgroup)
    mount = f"30 25 0:26 {root} {folder}/fs rw,nosuid shared:9 - {kind} cgroup {options}\n"
    (folder / "mountinfo").write_text(f"25 1 0:1 / / rw - ext4 /dev/vda rw\n{mount}")
    return str(folder)


def set_counter(folder, name, kills, limit, peak):
    folder.mkdir(parents=True, exist_ok=True)
    files = {V1: ("memory.limit_in_bytes", "memory.max_usage_in_bytes"), V2: ("memory.max", "memory.peak")}[name]
    (folder / name).write_text(f"low 0\noom_kill {kills}\n" if name == V2 else f"under_oom 0\noom_kill {kills}\n")
    for file, value in zip(files, (limit, peak), strict=True):
        (folder / file).write_text(f"{value}\n")


@pytest.mark.parametrize(
    "cgroup, root, kind, options, place, name",
    [
        ("4:memory:/docker/ab\n1:cpu:/\n", "/docker/ab", "cgroup", "rw,memory", "", V1),
        (f"4:memory:/hadoop-yarn/{CONTAINER}\n", "/", "cgroup", "rw,memory", f"hadoop-yarn/{CONTAINER}", V1),
        ("0::/\n", "/", "cgroup2", "rw", "", V2),
        (f"0::/yarn/{CONTAINER}/x:y\n", "/", "cgroup2", "rw", f"yarn/{CONTAINER}/x:y", V2),
        ("0::/other\n", "/docker/ab", "cgroup2", "rw", "", V2),
    ],
)
def test_a_kill_for_memory_is_found_in_each_version(tmp_path, cgroup, root, kind, options, place, name):
    folder = tmp_path / "fs" / place
    set_counter(folder, name, 3, 64 << 20, 60 << 20)
    memory = MemoryCgroup(make_process(tmp_path, cgroup, root, kind, options))
    memory.begin()
    assert memory.kill_of(None, signal.SIGKILL) is None, "those before do not count"
    set_counter(folder, name, 5, 64 << 20, 64 << 20)
    assert memory.kill_of(None, signal.SIGKILL) == {"kills": 2, "limit": 64.0, "peak": 64.0}
    assert memory.kill_of(137, None) and memory.kill_of(0, None) is None
    memory.begin()
    assert memory.kill_of(None, signal.SIGKILL) is None


@pytest.mark.parametrize("limit", ["max", 2**63 - 4096])
def test_a_limit_that_is_not_set_is_none(tmp_path, limit):
    memory = MemoryCgroup(make_process(tmp_path, "0::/\n", "/", "cgroup2"))
    assert memory.kill_of(None, signal.SIGKILL) is None, "without the kernel's files"
    set_counter(tmp_path / "fs", V2, 0, limit, 1)
    memory = MemoryCgroup(str(tmp_path))
    set_counter(tmp_path / "fs", V2, 1, limit, "unknown")
    assert memory.kill_of(None, signal.SIGKILL) == {"kills": 1, "limit": None, "peak": None}


def test_a_failure_is_for_memory_where_only_the_container_is_in_the_cgroup(tmp_path, monkeypatch):
    set_counter(tmp_path / "fs" / CONTAINER, V2, 0, 1, 1)
    process = make_process(tmp_path, f"0::/{CONTAINER}\n", "/", "cgroup2")
    shared = MemoryCgroup(process)
    monkeypatch.setenv("CONTAINER_ID", CONTAINER)
    own = MemoryCgroup(process)
    set_counter(tmp_path / "fs" / CONTAINER, V2, 1, 1, 1)
    assert own.kill_of(3, None) and shared.kill_of(3, None) is None, "a neighbour's process may have been killed"


def test_a_kill_long_before_the_failure_does_not_count(tmp_path, monkeypatch):
    set_counter(tmp_path / "fs", V2, 0, 1, 1)
    memory = MemoryCgroup(make_process(tmp_path, "0::/\n", "/", "cgroup2"))
    set_counter(tmp_path / "fs", V2, 1, 1, 1)
    now = 1000.0
    monkeypatch.setattr(memory_cgroup.time, "monotonic", lambda: now)
    memory.poll()
    now += 61
    assert memory.kill_of(None, signal.SIGKILL) is None


@pytest.mark.parametrize("cgroup", ["", "nonsense\n", "0::/\n", "4:memory:/\n"])
def test_without_a_memory_cgroup_nothing_is_found(tmp_path, cgroup):
    memory = MemoryCgroup(make_process(tmp_path, cgroup, "/", "cgroup", "rw,cpu"))
    assert memory.kill_of(None, signal.SIGKILL) is None
    assert MemoryCgroup(f"/proc/{2**22 + 1}").kill_of(137, None) is None
    MemoryCgroup(f"/proc/{os.getpid()}").poll()

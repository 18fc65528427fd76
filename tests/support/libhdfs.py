"""libhdfs.so, which Hadoop's jars lack: built once from Hadoop's source, which a crate of Rust's registry carries."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from support.azkaban_site import made_once
from tf_yarn_ops.minicluster.java import find_java

#: Toolchains and the registry's settings are in the user's own home, whatever HOME says.
ENVIRON = {**os.environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir}
#: hdfs-sys 0.3.0 has libhdfs of Hadoop 3.3; the others are those that it needs, as old as it is.
_CARGO = """\
[package]
name = "libhdfs"
version = "0.0.0"
[lib]
path = "lib.rs"
[dependencies]
hdfs-sys = "=0.3.0"
cc = "=1.0.79"
java-locator = "=0.1.3"
glob = "=0.3.1"
lazy_static = "=1.4.0"
"""


def libhdfs_folder(environ):
    """Return the folder with libhdfs.so for the Java of these variables."""
    java = find_java(environ).home

    def make(folder):
        (folder / "Cargo.toml").write_text(_CARGO)
        (folder / "lib.rs").touch()
        _run([find_cargo(), "vendor", "--quiet", "crates"], folder)
        source = folder / "crates/hdfs-sys/libhdfs/hdfs_3_3"
        headers = [
            source.parent,
            source,
            source / "include",
            source / "os",
            source / "os/posix",
            java / "include",
            java / "include/linux",
        ]
        _run(
            [
                "gcc",
                "-shared",
                "-fPIC",
                "-O2",
                "-w",
                "-fcommon",
                "-o",
                "libhdfs.so",
                *(f"-I{header}" for header in headers),
                *sorted(source.glob("*.c")),
                *sorted(source.glob("os/posix/*.c")),
                f"-L{java}/lib/server",
                "-ljvm",
            ],
            folder,
        )
        shutil.rmtree(folder / "crates")

    return made_once("libhdfs", [Path(__file__)], make)


def find_cargo():
    """Return the first cargo on PATH that runs: one of rustup may have no toolchain."""
    found = [path for folder in os.get_exec_path() if (path := shutil.which("cargo", path=folder))]
    works = [
        path for path in found if subprocess.run([path, "--version"], capture_output=True, env=ENVIRON).returncode == 0
    ]
    return works[0]


def _run(command, folder):
    ran = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env=ENVIRON,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]

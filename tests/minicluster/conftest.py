"""Fixtures of the minicluster's tests that need no Java."""

import subprocess
import sys

import pytest

from support.machines import make_machine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with Java 17 and a Maven that makes one jar and counts its calls."""
    return make_machine(tmp_path, monkeypatch)


@pytest.fixture
def dying(machine):
    """A machine whose Java answers with its version, and runs no daemon; the NodeManager ends behind the others."""
    java = machine / "jdk" / "bin" / "java"
    java.write_text(
        java.read_text()
        + 'case "$*" in *-Dproc_nm*) exec sleep 60 ;; esac\n'
        + 'case "$1" in -Xmx*) echo "Exception: no luck"; exit 3 ;; esac\n'
    )
    return machine


@pytest.fixture
def spawn():
    """Return a function that starts a Python process, and returns when it has printed its first line."""
    started = []

    def start(code, *arguments, **options):
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, **options)
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()

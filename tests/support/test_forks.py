"""Tests of the processes from which others are forked."""

import subprocess

import pytest

from support.forks import starting


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_starter_ends_whatever_its_block_raises(monkeypatch):
    started, popen = [], subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **options: started.append(popen(*words, **options)) or started[0]
    )
    with pytest.raises(KeyError), starting():
        raise KeyError
    assert started[0].returncode == 0

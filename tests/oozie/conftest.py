"""Fixtures of Oozie: a folder with jobs to pack."""

import pytest

from support.oozie_package import FLOW, JOB, JOBS, SMALL


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "job.yaml": JOB,
        "small.yaml": SMALL,
        "jobs.yaml": JOBS,
        "train.py": "print()",
        "flow.xml": FLOW,
        "extra.sh": "true\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path

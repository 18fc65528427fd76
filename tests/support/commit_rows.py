"""Commits that every HDFS has to take in the same way, by a NameNode, an HttpFS, or a pair: in this process."""

import pytest

from tf_yarn_ops.runtime.common.committed_output import CommitPlan, read_success
from tf_yarn_ops.runtime.master.commit import OutputCommit, ResultExists


def read(files, path):
    return files.read_appended(path, 0, files.status(path).length, 1 << 20)


def train(files, plan, number, content=b"model"):
    """Train and commit in one process; return the commit."""
    made = OutputCommit(plan, f"application_1700000000000_{number:04d}", files)
    assert made.prepare() is None
    files.makedirs(f"{made.working_url}/variables", 0o755)
    files.create(f"{made.working_url}/variables/model", content, 0o644)
    made.commit({"reason": "SUCCEEDED"})
    return made


def commits_whole_and_once(files, parent):
    """Each mode, twice; nothing is left beside the results."""
    plan = CommitPlan("new", f"{parent}/new", "", "a" * 16)
    assert train(files, plan, 1).path == f"{parent}/new"
    late = OutputCommit(
        plan._replace(training="b" * 16, path=f"{parent}/other"), "application_1700000000000_0002", files
    )
    assert late.prepare() is None
    files.makedirs(f"{parent}/other", 0o755)
    with pytest.raises(ResultExists, match="other exists"):
        late.commit({})
    assert files.list(f"{parent}/other") == []
    files.delete(late.working_url)
    for number in (3, 4):
        train(files, CommitPlan("replace", f"{parent}/replace", "", f"{number:016d}"), number, b"x" * number)
        success = read_success(read(files, f"{parent}/replace/_SUCCESS"))
        assert success.files == (("variables/model", number),)
        assert [status.name for status in files.list(f"{parent}/replace")] == ["_SUCCESS", "variables"]
        train(files, CommitPlan("version", f"{parent}/version", "", f"{number:016d}", keep=1), number)
    assert {status.name for status in files.list(f"{parent}/version")} == {"2", "LATEST"}
    assert read(files, f"{parent}/version/LATEST") == b"2\n"
    assert {status.name for status in files.list(parent)} == {"new", "other", "replace", "version"}


def moves_into_nothing(files, parent):
    """A rename to a folder that exists is refused, also if the folder has appeared after the look."""
    for name in ("source", "target"):
        files.makedirs(f"{parent}/{name}/{name}-child", 0o755)
    real, seen = files.exists, []

    def too_early(path):
        seen.append(path)
        return len(seen) > 1 and real(path)

    for looks in (real, too_early):
        files.exists = looks
        with pytest.raises(FileExistsError):
            files.move(f"{parent}/source", f"{parent}/target")
        assert [status.name for status in files.list(f"{parent}/source")] == ["source-child"]
        assert [status.name for status in files.list(f"{parent}/target")] == ["target-child"]
    del files.exists
    for source, target in (("gone", "new"), ("source", "gone/new")):
        with pytest.raises(FileNotFoundError):
            files.move(f"{parent}/{source}", f"{parent}/{target}")
    files.move(f"{parent}/source", f"{parent}/new")
    assert [status.name for status in files.list(f"{parent}/new")] == ["source-child"]

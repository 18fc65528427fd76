"""Which files of the launcher's machine a job may name."""

import pytest

from support.azkaban_keys import limits

pytestmark = pytest.mark.slow


OUTSIDE = " is outside the project, and this site lets jobs name files of their project only; "


@pytest.mark.parametrize(
    "own",
    [
        {"tf.spec": "{}"},
        {"tf.spec": "link"},
        {"tf.script": "{}"},
        {"tf.files.1": "x={}"},
        {"tf.files.1": "file://{}"},
        {"tf.files.1": "FILE://{}"},
        {"tf.files.1": "link"},
        {"tf.archives.1": "../secret.zip"},
        {"tf.environment": "../secret.zip"},
        {"tf.source": ".."},
        {"tf.entry_point": "../secret", "tf.command": ""},
        {"src_dir": "..", "tony.worker.command": "x"},
    ],
    ids=str,
)
def test_a_job_names_files_of_its_project_only(azkaban, yarn, tmp_path, own):
    (tmp_path / "secret").write_text("s3cret: [")
    (tmp_path / "secret.zip").write_text("s3cret")
    job = azkaban({name: text.format(tmp_path / "secret") for name, text in own.items()})
    (job.folder / "link").symlink_to(tmp_path / "secret")
    job.start("--secure")
    assert job.end() == 2
    assert OUTSIDE in job.lines[-1] and "(and" not in job.lines[-1] and f" {next(iter(own))}: " in job.lines[-1]
    assert not any("s3cret" in line for line in job.lines) and yarn.requests == []


def test_a_file_outside_the_project_is_not_looked_for(azkaban):
    job = azkaban({"tf.files.1": "/no/such/file", "tf.files.2": "missing.py"}).start("--secure")
    assert job.end() == 2
    assert [line.partition(": ")[0].strip(" -") for line in job.lines[1:3]] == ["tf.files.1", "tf.files.2"]
    assert OUTSIDE in job.lines[1] and "there is no missing.py" in job.lines[2]


def test_the_whole_project_and_the_sites_own_files_may_be_named(azkaban, tmp_path):
    """The .job lies in a folder of the project, which lies in the folder of the execution."""
    folder = tmp_path / "42"
    (folder / "jobs").mkdir(parents=True)
    (folder / "shared.py").touch()
    (tmp_path / "own.py").touch()
    own = {
        "tf.files.1": "../shared.py",
        "tf.dry_run": "true",
        "azkaban.job.attachment.file": str(folder / "jobs" / "_job.42.train.attach"),
    }
    path = limits(tmp_path, f"defaults: {{tf.files.2: {tmp_path}/own.py}}\n")
    job = azkaban(own, folder="42/jobs").start("--secure", "--limits", path)
    assert job.end() == 0, job.lines
    (tmp_path / "secret").touch()
    for text, words, code in (("files: any\n", ["--secure"], 0), ("files: project\n", [], 2)):
        job = azkaban({"tf.files.1": "../secret", "tf.dry_run": "true"}).start(
            *words, "--limits", limits(tmp_path, text)
        )
        assert job.end() == code, job.lines

"""Applications as files: golden documents, Oozie's schemas, folders here and in the cluster, and the server on the wire."""

import subprocess
import sys
import tarfile

import javaproperties
import yaml

from support.oozie_package import ADDRESSES, JOB, run
from support.programs import ROOT


def test_a_folder_gets_the_application_and_loses_files_of_an_earlier_one(place):
    (place / "data").mkdir()
    (place / "data" / "run.sh").write_text("true")
    (place / "data" / "run.sh").chmod(0o755)
    (place / "job.yaml").write_text(JOB.replace("{train.py: train.py}", "{train.py: train.py, d: data}"))
    done = run("package", "job.yaml", "--frequency", "1d", "--out", "app", *ADDRESSES)
    assert done.returncode == 0, done.stderr
    files = {"workflow.xml", "coordinator.xml", "job.properties", "job.yaml", "launch.sh", "files.tar.gz"}
    assert {path.name for path in (place / "app").iterdir()} == files
    assert "next: ytf oozie run app" in done.stderr and done.stdout == ""
    with tarfile.open(place / "app" / "files.tar.gz") as archive:
        modes = {member.name: member.mode & 0o777 for member in archive if member.isfile()}
    assert set(modes) == {"files/train.py", "files/d/run.sh"} and modes["files/d/run.sh"] == 0o755
    document = yaml.safe_load((place / "app" / "job.yaml").read_text())
    assert document["files"] == {"train.py": "files/files/train.py", "d": "files/files/d"}

    (place / "job.yaml").write_text(JOB)
    assert (
        run(
            "package", "jobs.yaml", "--frequency", "1d", "--property", "models=/m", "--out", "app", *ADDRESSES
        ).returncode
        == 0
    )
    names = ("features", "wide", "deep", "small")
    assert {path.name for path in (place / "app").iterdir()} == {
        "workflow.xml",
        "coordinator.xml",
        "job.properties",
        "launch.sh",
        "files-features.tar.gz",
        "files-deep.tar.gz",
        *(f"job-{name}.yaml" for name in names),
    }
    assert run("package", "small.yaml", "--out", "app", *ADDRESSES).returncode == 0
    assert {path.name for path in (place / "app").iterdir()} == files - {"coordinator.xml", "files.tar.gz"}

    (place / "other").mkdir()
    (place / "other" / "mine").touch()
    refused = run("package", "job.yaml", "--out", "other", *ADDRESSES)
    assert (refused.returncode, [path.name for path in (place / "other").iterdir()]) == (2, ["mine"])
    assert "out: other has files, and no application of ours; give an empty or a new folder" in refused.stderr


LAUNCH = ROOT / "tf_yarn_ops" / "oozie" / "launch.sh"


def launch(folder, python, **env):
    return subprocess.run(
        ["bash", str(LAUNCH), python],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", **env},
    )


def test_node_without_interpreter_or_package_names_the_option(tmp_path):
    none = launch(tmp_path, "/nowhere/python")
    assert (
        none.returncode == 2
        and "has no interpreter '/nowhere/python'; pack the application again with --python" in none.stderr
    )
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/bash\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    lacks = launch(tmp_path, str(bare))
    assert lacks.returncode == 2 and "ModuleNotFoundError" in lacks.stderr
    assert "--python /opt/tf/bin/python, or with --pex, so that the package travels" in lacks.stderr
    assert none.stdout == lacks.stdout == ""
    kept = javaproperties.loads("hadoopJobs:" + (tmp_path / "externalChildIDs").read_text())
    assert (kept["reason"], kept["message"]) == ("SPEC_INVALID", lacks.stderr.splitlines()[-1])


def test_the_log_of_the_check_never_stands_among_the_outputs(tmp_path):
    loud = tmp_path / "python"
    loud.write_text('#!/bin/bash\n[ "$1" = -c ] && echo noise || echo "action $*"\n')
    loud.chmod(0o755)
    ran = launch(tmp_path, str(loud))
    assert (ran.stdout, ran.stderr) == ("action -m tf_yarn_ops.oozie.action\n", "noise\n")

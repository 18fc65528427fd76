"""What Python finds at its start in a container: our hooks, and the environment's own `sitecustomize`."""

import os
import subprocess
import sys

import pytest

from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.contract import JOB_FILE, PROGRAM_PATH, RUNTIME_FILE, dump_job
from tf_yarn_ops.runtime.common.processes import STACK_SIGNAL
from tf_yarn_ops.submit.application import build_runtime_job
from tf_yarn_ops.submit.runtime_zip import runtime_zip


@pytest.fixture
def container(tmp_path):
    """Return a function that runs a program with what a container has, and returns what it prints."""
    folder = tmp_path / "container"
    folder.mkdir()
    (folder / RUNTIME_FILE).write_bytes(runtime_zip())
    job = build_runtime_job(JobSpec(tasks={"worker": 1}, command="x"))
    (folder / JOB_FILE).write_bytes(dump_job(job._replace(user="ann", namenodes={"": ("http://127.0.0.1:1",)})))

    def run(program, *path, **variables):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": ":".join(map(str, [folder / PROGRAM_PATH, *path])),
                **variables,
            },
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    return run


def test_the_sitecustomize_of_the_environment_runs(container, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('own', __name__, __file__)")
    assert container("import sitecustomize, sys; print(sys.path[1])", own) == (
        f"own sitecustomize {own}/sitecustomize.py\n{own}\n"
    )


def test_start_imports_no_library_and_leaves_other_modules_alone(container):
    program = "import sys; print(sorted({'json', 'ssl', 'fsspec', 'urllib.request'} & set(sys.modules)))"
    assert container(program) == "[]\n"


@pytest.mark.slow
def test_a_program_in_another_folder_finds_the_job_file(container):
    program = "import fsspec; files = fsspec.filesystem('hdfs'); print(files._hdfs._urls, files._hdfs._logins)"
    assert container(program) == "['http://127.0.0.1:1'] [('user.name', 'ann')]\n"
    assert "('user.name', 'bob')" in container(program, HADOOP_USER_NAME="bob")
    other = program.replace("'hdfs'", "'hdfs', host='other', port=8020")
    assert container(other).startswith("['http://other:9870']")


@pytest.mark.slow
def test_libhdfs_stays_in_charge_where_there_is_a_class_path(container):
    program = "import fsspec; print(fsspec.registry.get('hdfs'), fsspec.available_protocols().count('hdfs'))"
    assert "HdfsFileSystem" in container(program)
    assert container(program, CLASSPATH="/hadoop.jar") == "None 1\n"


def test_a_library_that_cannot_be_served_is_imported_all_the_same(container, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "fsspec.py").write_text("answer = 42")
    found = container("import fsspec; print(fsspec.answer)", tmp_path / "own")
    assert "42\n" in found and "tf_yarn_ops: fsspec is not served: " in found


@pytest.mark.parametrize(("before", "printed"), [("", "False True\n"), ("gc.disable(); ", "False False\n")])
def test_tensorflow_is_imported_without_garbage_collection(container, tmp_path, before, printed):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tensorflow.py").write_text("import gc\nprint(gc.isenabled(), end=' ')")
    assert container(f"import gc; {before}import tensorflow; print(gc.isenabled())", tmp_path / "own").startswith(
        printed
    )


def test_signal_of_the_agent_is_that_of_the_program(container):
    program = f"import os, signal; os.kill(os.getpid(), {STACK_SIGNAL}); print('alive')"
    assert "most recent call first" in (printed := container(program)) and "alive" in printed


def test_import_that_fails_leaves_garbage_collection_on(container, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tensorflow.py").write_text("raise ImportError('no libcuda')")
    program = "import gc\ntry: import tensorflow\nexcept ImportError as error: print(error, gc.isenabled())"
    assert container(program, tmp_path / "own") == "no libcuda True\n"

"""What a job runs, and which files travel with it."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.azkaban_keys import ONE, read
from tf_yarn_ops.job.spec import JobSpec

PROGRAMS = [
    ({"tf.entry_point": "train.py"}, "python3 train.py", {"script": "train.py"}),
    ({"tf.entry_point": "./train.py", "tf.python": "/opt/my env/python"}, "'/opt/my env/python' train.py",
     {"script": "./train.py"}),
    ({"tf.entry_point": "/opt/train.py"}, "python3 /opt/train.py", {}),
    ({"tf.entry_point": "src/mnist.py", "tf.files.1": "src"}, "python3 src/mnist.py", {"files": {"src": "src"}}),
    ({"tf.entry_point": "mnist.py", "tf.source": "src"}, "python3 mnist.py",
     {"files": {"mnist.py": "src/mnist.py", "models": "src/models"}}),
    ({"tf.entry_point": "train.py", "tf.script": "src/mnist.py"}, "python3 train.py",
     {"script": "src/mnist.py", "files": {"train.py": "train.py"}}),
    ({"tf.entry_point": "train.py", "tf.args": "--x $Y", "tf.args.2": "c", "tf.args.10": "d", "tf.args.1": "a b"},
     "python3 train.py --x $Y 'a b' c d", {"script": "train.py"}),
    ({"tf.command": "run  this", "tf.args.1": ""}, "run  this ''", {}),
    ({"tf.command": "cd x\nrun  this\n", "tf.args": "--epochs 3\r\n", "tf.args.1": "a"}, "cd x\nrun  this --epochs 3 a", {}),
    ({"tf.command": "run", "tf.source": "hdfs:///code.zip"}, "cp -R tf_source/. . && run",
     {"archives": {"tf_source": "hdfs:///code.zip"}}),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "command", "document"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_what_runs_and_what_travels(properties, command, document, project):
    assert read({**ONE, **properties}, project) == JobSpec.from_dict(
        {"command": command, "tasks": {"worker": 1}, **document}
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5))
def test_arguments_and_variables_arrive_byte_for_byte(tmp_path_factory, texts):
    from tf_yarn_ops.azkaban.properties import format_properties, parse_properties, repair_mojibake

    texts = [text for text in texts if repair_mojibake(text) is None]
    given_ = {f"tf.args.{number}": text for number, text in enumerate(texts)}
    given_ |= {f"tf.env.V{number}": text for number, text in enumerate(texts)}
    job = read(
        parse_properties(format_properties({**ONE, **given_, "tf.command": "printf '%s\\0' x"})), tmp_path_factory
    )
    run = subprocess.run(["bash", "-c", job.command], capture_output=True, check=True)
    assert run.stdout.decode().split("\0")[1:-1] == texts
    assert list(job.env.values()) == texts


NASTY = "blank  \"double\" 'single' $HOME ${X} $(id) `id` , ; \\ \nline\ttab ü 漢字 🙂 # ! = :"


def test_paths_and_commands_keep_every_byte(project):
    job = read({**ONE, "tf.command": NASTY, "tf.input": NASTY, "tf.output": f" {NASTY} ", "tf.name": NASTY}, project)
    assert (job.command, job.input, job.output, job.name) == (NASTY, NASTY, f" {NASTY} ", NASTY)

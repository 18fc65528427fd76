"""The whole environment of TensorFlow travels to the nodes of a real cluster: uploaded once, unpacked once, trained in."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.azkaban_site import made_once
from support.source import PACKAGE, ROOT
from tf_yarn_ops.environments.check import check_archive
from tf_yarn_ops.environments.pack import pack_environment
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.staging.prune import list_cache

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(1500)]

#: Trains if it is called with a word: TensorFlow takes most of the time.
PROGRAM = """\
import json, os, sys
found = {"home": os.path.realpath(sys.prefix), "library": os.path.realpath(json.__file__)}
if sys.argv[1:]:
    import tensorflow as tf
    from tensorflow.python.platform import build_info
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.range(32.0)[:, None] / 32, tf.range(32.0) / 32, verbose=0, epochs=2)
    found["version"] = tf.__version__
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump(found, file)
"""


@pytest.fixture(scope="module")
def archive():
    """Return the packed environment. The cache keeps what this code packs of these versions: it takes a minute of CPU."""

    def make(folder):
        (folder / "requirements.txt").write_text(f"-c {ROOT / 'constraints.txt'}\ntensorflow-cpu\ntensorboard\n")
        pack_environment(folder / "requirements.txt", folder / "tf.tar.gz")

    code = [PACKAGE / "environments" / name for name in ("pack.py", "description.py", "pip_settings.py")]
    sources = [Path(__file__), ROOT / "constraints.txt", PACKAGE / "staging" / "archive.py", *code]
    return made_once("tensorflow-packed-python{}.{}.{}".format(*sys.version_info), sources, make) / "tf.tar.gz"


def test_whole_environment_of_tensorflow_has_no_fault(archive):
    report = check_archive(archive)
    assert (report.faults, report.doubts) == ((), ())
    assert report.packed > 300 << 20 and report.unpacked > 1 << 30


def test_whole_environment_is_uploaded_and_unpacked_once(minicluster, archive, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    launcher = Launcher(
        discover(minicluster.resourcemanager_url, environ={}), environ={**os.environ, **minicluster.environ}
    )
    spec = JobSpec(
        command="python $DTF_TASK_SCRIPT train",
        script=str(tmp_path / "program.py"),
        environment=str(archive),
        tasks={"chief": {"memory": 1024}, "worker": {"memory": 256, "command": "python $DTF_TASK_SCRIPT"}},
        deadlines={"registration": 0, "heartbeat": 0},
    )

    def staged():
        return {file.path: file.used_at for file in list_cache(launcher.session.staging()) if file.name == archive.name}

    try:
        first = launcher.run(spec, timeout=1200)
        assert first.reason is Reason.SUCCEEDED, first.message
        uploaded = staged()
        second = launcher.run(replace(spec, command="python $DTF_TASK_SCRIPT"), timeout=600)
        assert second.reason is Reason.SUCCEEDED, second.message
    finally:
        launcher.close()
    assert len(uploaded) == 1 and staged().keys() == uploaded.keys()
    home = Path(first.metrics["home"])
    assert home == Path(second.metrics["home"]) and "filecache" in home.parts
    assert first.metrics["library"].startswith(f"{home}/lib/") and first.metrics["version"]
    copies = [path for path in minicluster.directory.rglob(archive.name) if path.is_dir()]
    assert copies == [home], copies

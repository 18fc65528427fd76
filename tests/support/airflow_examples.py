"""What the tests of dags_examples share: a copy of the DAGs as a data engineer makes one, and the data in HDFS."""

import getpass
import os
import runpy
import sys
from datetime import datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path

import numpy as np

from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.webhdfs import WebHdfs

ROOT = Path(__file__).parents[2]
DAGS = ROOT / "dags_examples"
#: Seconds for one training, from the start of its DAG run, on a machine that does much else.
TRAINING = 400
TODAY = datetime.now(timezone.utc).date()
#: The days that the retraining has missed; the first one is its start date.
DAYS = [(TODAY - timedelta(days=days)).isoformat() for days in (2, 1, 0)]
#: How the copies are edited: the retraining catches up from the first of these days, on ``local://`` and with data of
#: this machine; its worker waits, as a trigger that ends before the scheduler has seen the worker's exit fails the try.
#: The search tries two candidates, and all train without TensorFlow, which takes most of the time of a start.
EDITS = (
    *((name, f'script=f"{{DIGITS}}/{program}.py"', f'script="{ROOT}/tests/support/{stand_in}.py"')
      for name, program, stand_in in (("asset_serving.py", "single", "softmax_training"),
                                      ("asset_serving.py", "predict", "softmax_prediction"),
                                      ("first_training.py", "multi_worker", "softmax_training"),
                                      ("hyperparameter_search.py", "single", "softmax_training"),
                                      ("scheduled_retraining.py", "single", "softmax_training"))),
    ("hyperparameter_search.py", "[0.1, 0.03, 0.005, 0.001, 0.00001], [32, 128]", "[0.1, 0.00001], [128]"),
    ("scheduled_retraining.py", "pendulum.datetime(2026, 1, 1, ", "pendulum.datetime({}, {}, {}, ".format(
        *(int(part) for part in DAYS[0].split("-")))),
    ("scheduled_retraining.py", "catchup=False,", "catchup=True,"),
    ("scheduled_retraining.py", 'deferrable=True,', 'deferrable=False, tf_yarn_conn_id="local",'),
    *(("scheduled_retraining.py", f"digits_folder }}}}/{name}/", f"local_folder }}}}/{name}/") for name in ("days", "models")),
)  # fmt: skip


def copy_dags(folder, edits=()):
    """Put the DAG files into a folder, edited as their new owner would; the programs stay beside them.

    Parameters
    ----------
    edits : tuples of file name, old and new text
    """
    dags = folder / "dags_examples"
    dags.mkdir(parents=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    for file in DAGS.glob("*.py"):
        text = file.read_text()
        for name, old, new in edits:
            if name == file.name:
                assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
                text = text.replace(old, new)
        (dags / file.name).write_text(text)
    return dags


class Lake:
    """A folder of the minicluster's HDFS."""

    def __init__(self, minicluster, name):
        user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self.path = f"/user/{user}/{name}"
        self.url = f"{minicluster.default_filesystem}{self.path}"
        self._files = WebHdfs((minicluster.namenode_url,), SimpleAuthentication(user), 10.0)

    def write(self, name, arrays):
        content = BytesIO()
        np.savez(content, **arrays)
        self._files.delete(f"{self.path}/{name}")
        assert self._files.create(f"{self.path}/{name}", content.getvalue(), 0o644)

    def read(self, url):
        assert url.startswith(f"{self.url}/"), url
        return self._files.read(f"{self.path}/{url.removeprefix(self.url).lstrip('/')}")

    def files(self, url):
        """The names of the files right below a folder."""
        return [status.name for status in self._files.list(f"{self.path}/{url.removeprefix(self.url).lstrip('/')}")]


def digits():
    """The arrays that prepare.py writes."""
    return runpy.run_path(str(ROOT / "examples/digits/prepare.py"))["load"]()


def variables(**values):
    """Airflow Variables as the environment names them; the nodes are this machine, and their Python is ours."""
    return {
        f"AIRFLOW_VAR_{name.upper()}": value
        for name, value in {"tf_environment": f"venv://{sys.prefix}", **values}.items()
    }

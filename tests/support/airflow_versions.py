"""Other versions of Airflow than that of .venv: an environment for each, made once below the cache folder."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import cloudpickle

from support.airflow_site import FEW_VERSIONS, plain_environ
from support.azkaban_site import made_once
from support.framework_environments import PINS
from support.programs import ROOT
from tf_yarn_ops.environments.pip_settings import read_pip_settings

#: What each of them is installed with; a newer package of the same index may break an older Airflow.
_PINS = Path(__file__).parent / "airflow_pins"
#: The version of .venv.
NEWEST = version("apache-airflow")
#: All versions, the oldest first.
VERSIONS = (*sorted((file.stem for file in _PINS.glob("*.txt")), key=lambda name: [*map(int, name.split("."))]), NEWEST)
_PYTHON = "python{}.{}".format(*sys.version_info)
_SECONDS = 600


class Airflow:
    """A version of Airflow, with the checkout as its package ``tf-yarn-ops``.

    Parameters
    ----------
    number : str
        One of `VERSIONS`.
    folder : Path
        For the description of the package.
    """

    def __init__(self, number, folder):
        assert number in VERSIONS, f"no rows for Airflow {number}, only for {', '.join(VERSIONS)}"
        self.number = number
        self.version = tuple(map(int, number.split(".")[:2]))
        self._environ = {}
        if number == NEWEST:
            self.python, self._database = sys.executable, None
            self._environ = {"PYTHONPATH": str(_lineage_provider())}
            return
        made = made_once(f"airflow-{number}-{_PYTHON}", [_PINS / f"{number}.txt"], self._make)
        self.python, self._database = made / "venv" / "bin" / "python", made / "home" / "airflow.db"
        # Its entry point is how Airflow knows the decorator, the links and the hook.
        description = Path(str(distribution("tf-yarn-ops").locate_file("."))).glob("tf_yarn_ops-*.dist-info")
        for part in description:
            shutil.copytree(part, folder / part.name)
        shutil.copytree(Path(cloudpickle.__file__).parent, folder / "cloudpickle")  # for functions
        self._environ = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}

    def _make(self, folder):
        """Install the version and make an empty database."""
        venv, home = folder / "venv", folder / "home"
        _run([sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, venv])
        _run(
            [
                sys.executable,
                "-m",
                "uv",
                "pip",
                "sync",
                "--quiet",
                "--python",
                venv / "bin" / "python",
                _PINS / f"{self.number}.txt",
            ],
            env=os.environ | read_pip_settings(os.environ),
        )
        _run(
            [venv / "bin" / "python", "-m", "airflow", "db", "migrate"],
            env={**plain_environ(), "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
        )

    def environ(self, home, database):
        """Return the environment of an Airflow in a folder, with a copy of an empty database.

        Parameters
        ----------
        home : Path
            Its folder ``dags`` has the DAGs.
        database : Path or None
            Of the newest version; an older one has its own.
        """
        shutil.copy(self._database or database, home / "airflow.db")
        if self.number == NEWEST:
            (home / "config").mkdir()
            shutil.copy(FEW_VERSIONS, home / "config" / "airflow_local_settings.py")
        transport = {"type": "file", "log_file_path": str(home / "lineage"), "append": True}
        return {
            **plain_environ(), **self._environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"), "NO_PROXY": "127.0.0.1,localhost",
        }  # fmt: skip


def _lineage_provider():
    """Return a folder with Airflow's provider for OpenLineage, beside the packages of .venv."""
    pins = PINS / "openlineage.txt"

    def make(folder):
        words = ["install", "--quiet", "--no-deps", "--target", folder, "--requirements", pins]
        _run([sys.executable, "-m", "uv", "pip", *words], env=os.environ | read_pip_settings(os.environ))

    return made_once(f"openlineage-{_PYTHON}", [pins], make)


def _run(words, **options):
    ran = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        **options,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]

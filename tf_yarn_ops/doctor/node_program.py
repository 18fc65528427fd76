"""The program of the tiny application: it runs on a node, by the Python of a job, and reports what it finds there.

Standard library of Python 3.9 only; it travels as text.
"""

import importlib.util
import json
import os
import platform
import subprocess
import sys
from importlib import metadata

PACKAGE_NAMES = ("tensorflow", "tensorflow-cpu", "tf-nightly", "keras", "torch", "jax", "numpy", "grpcio", "protobuf")
#: Whether an image has the libraries that these load shows only at their import.
IMPORTED = ("tensorflow", "torch", "jax")

found = {}
for name in PACKAGE_NAMES:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        continue
imported, broken = [], {}
for name in IMPORTED if os.environ.get("DTF_DOCKER_IMAGE") else ():
    try:
        if importlib.util.find_spec(name):
            importlib.import_module(name)
            imported.append(name)
    except Exception as error:
        broken[name] = f"{type(error).__name__}: {error}"[:300]
try:
    shown = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30).stdout
    gpus = [line for line in shown.decode("utf-8", "replace").splitlines() if line.startswith("GPU ")]
except (OSError, subprocess.SubprocessError):
    gpus = []
facts = {
    "python": platform.python_version(),
    "executable": sys.executable,
    "host": platform.node(),
    "system": platform.platform(),
    "user": os.environ.get("USER", ""),
    "packages": found,
    "imported": imported,
    "broken": broken,
    "gpus": gpus,
}
with open(os.environ["YTF_RESULT_FILE"], "w", encoding="utf-8") as file:
    json.dump(facts, file)

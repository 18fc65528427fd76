"""The program of the tiny application: it runs on a node, by the Python of a job, and reports what it finds there.

Standard library of Python 3.9 only; it travels as text.
"""

import json
import os
import platform
import sys
from importlib import metadata

PACKAGE_NAMES = ("tensorflow", "tensorflow-cpu", "tf-nightly", "keras", "numpy", "grpcio", "protobuf")

found = {}
for name in PACKAGE_NAMES:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        continue
facts = {
    "python": platform.python_version(),
    "executable": sys.executable,
    "host": platform.node(),
    "system": platform.platform(),
    "user": os.environ.get("USER", ""),
    "packages": found,
}
with open(os.environ["YTF_RESULT_FILE"], "w", encoding="utf-8") as file:
    json.dump(facts, file)

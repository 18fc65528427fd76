"""Describe the environment of the Python that runs this file: ``PYTHON -I description.py`` prints JSON.

Standard library of Python 3.9 only: any interpreter runs it, without this package.
"""

import json
import os
import platform
import sys
import sysconfig
from importlib import metadata
from typing import Any


def describe_distribution(found: Any, prefix: str) -> dict[str, Any]:
    """Return the name and origin of an installed distribution, and its files as paths below the prefix."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    files = [os.path.relpath(os.path.normpath(found.locate_file(file)), prefix) for file in found.files or ()]
    return {
        "name": found.metadata["Name"],
        "version": found.version,
        "url": origin.get("url", ""),
        "editable": origin.get("dir_info", {}).get("editable", False),
        "files": [file for file in files if not file.startswith("..")],
    }


def describe_environment() -> dict[str, Any]:
    """Return the interpreter, its folders and its distributions."""
    return {
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "interpreter": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
        "library": sysconfig.get_path("stdlib"),
        "packages": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
        "distributions": [describe_distribution(found, sys.prefix) for found in metadata.distributions()],
    }


if __name__ == "__main__":
    json.dump(describe_environment(), sys.stdout)

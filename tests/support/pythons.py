"""Interpreters of other releases of Python, where the machine has them."""

import glob
import os
import shutil
import subprocess
import sys

#: Where pyenv and uv keep interpreters that are not on PATH; first beside the interpreter that runs the tests.
FOLDERS = (
    os.path.join(os.path.dirname(sys.base_prefix), "{release}.*/bin/python"),
    "~/.pyenv/versions/{release}.*/bin/python",
    "~/.local/share/uv/python/cpython-{release}.*/bin/python",
)


def find_python(release):
    """Return the path of an interpreter of a release such as ``3.9``; None if the machine has none."""
    on_path = shutil.which(f"python{release}")
    elsewhere = [path for pattern in FOLDERS for path in glob.glob(os.path.expanduser(pattern.format(release=release)))]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{release}')"
    for path in filter(None, [on_path, *elsewhere]):
        if subprocess.run([path, "-c", check], capture_output=True, timeout=60).returncode == 0:
            return path
    return None

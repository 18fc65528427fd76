"""Skein comes without what it never uses, also where there is no setuptools, and leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = "import sys; from tf_yarn_ops.runtime.common.fast_import import import_skein; "


def run(script):
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True)
    return ran.stdout.split()


def test_skein_comes_without_setuptools():
    assert run(OURS + "skein = import_skein(); "
               "print(skein.__version__, 'setuptools' in sys.modules, 'distutils' in sys.modules)")[1:] == ["False", "False"]


def test_skein_comes_on_a_python_that_has_no_distutils():
    """As from 3.12 on, in an environment without setuptools."""
    assert run("import sys\n"
               "class NoDistutils:\n"
               "    def find_spec(self, name, path=None, target=None):\n"
               "        if name.partition('.')[0] in ('distutils', 'setuptools'):\n"
               "            raise ModuleNotFoundError(name)\n"
               "sys.meta_path.insert(0, NoDistutils())\n"
               "try:\n"
               "    import skein\n"
               "except ModuleNotFoundError as error:\n"
               "    print(error)\n"
               "for name in [name for name in sys.modules if name.partition('.')[0] == 'skein']:\n"
               "    del sys.modules[name]\n"
               "from tf_yarn_ops.runtime.common.fast_import import import_skein\n"
               "print(import_skein().__name__)") == ["distutils", "skein"]


def test_others_get_the_real_modules_afterwards():
    assert run(OURS + "import_skein(); import_skein(); import distutils.version; print(distutils.version.__file__ != '')") == ["True"]


def test_what_is_imported_already_is_given():
    assert run("import skein; " + OURS + "print(import_skein() is skein)") == ["True"]

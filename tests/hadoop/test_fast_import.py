"""Skein and httpx come without what they never use, and leave nothing behind."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(script):
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True)
    return ran.stdout.split()


def test_skein_comes_without_setuptools():
    script = ("import sys; from tf_yarn_ops.hadoop.fast_import import import_skein; skein = import_skein(); "
              "print(skein.__version__, 'setuptools' in sys.modules, 'distutils' in sys.modules)")
    assert run(script)[1:] == ["False", "False"]


def test_httpx_comes_without_its_command_line():
    script = ("import sys; from tf_yarn_ops.hadoop.fast_import import import_httpx; httpx = import_httpx(); "
              "print(httpx.Client.__name__, 'rich' in sys.modules, 'httpx._main' in sys.modules)")
    assert run(script) == ["Client", "False", "False"]


def test_others_get_the_real_modules_afterwards():
    script = ("from tf_yarn_ops.hadoop.fast_import import import_httpx, import_skein; import_skein(); import_httpx(); "
              "import_skein(); import httpx._main, rich.console; print('fine')")
    assert run(script) == ["fine"]


def test_what_is_imported_already_is_given():
    script = ("import skein, httpx; from tf_yarn_ops.hadoop.fast_import import import_httpx, import_skein; "
              "print(import_skein() is skein, import_httpx() is httpx)")
    assert run(script) == ["True", "True"]


def test_a_dry_run_imports_neither_setuptools_nor_a_client_of_http():
    script = ("import sys; from tf_yarn_ops.cli.submit import submit; "
              "submit(['--dry_run', '-r', 'worker:1', 'true'], standalone_mode=False); "
              "print('setuptools' in sys.modules, 'httpx' in sys.modules)")
    assert run(script)[-2:] == ["False", "False"]

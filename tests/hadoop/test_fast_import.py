"""httpx comes without what it never uses, and leaves nothing behind; Skein: tests/runtime/test_import_skein.py."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = "import sys; from tf_yarn_ops.hadoop.fast_import import import_httpx; "


def run(script):
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True)
    return ran.stdout.split()


def test_httpx_comes_without_its_command_line():
    script = "httpx = import_httpx(); print(httpx.Client.__name__, 'rich' in sys.modules, 'httpx._main' in sys.modules)"
    assert run(OURS + script) == ["Client", "False", "False"]


def test_others_get_the_real_modules_afterwards():
    assert run(OURS + "import_httpx(); import_httpx(); import httpx._main, rich.console; print('fine')") == ["fine"]


def test_what_is_imported_already_is_given():
    assert run("import httpx; " + OURS + "print(import_httpx() is httpx)") == ["True"]


def test_a_dry_run_imports_neither_setuptools_nor_a_client_of_http():
    script = ("import sys; from tf_yarn_ops.cli.submit import submit; "
              "submit(['--dry_run', '-r', 'worker:1', 'true'], standalone_mode=False); "
              "print('setuptools' in sys.modules, 'httpx' in sys.modules)")
    assert run(script)[-2:] == ["False", "False"]

"""httpx comes without what it never uses, and leaves nothing behind; Skein: tests/runtime/test_import_skein.py."""

from support.fresh_python import words_of

OURS = "import sys; from tf_yarn_ops.hadoop.fast_import import import_httpx; "


def test_httpx_comes_without_its_command_line():
    script = "httpx = import_httpx(); print(httpx.Client.__name__, 'rich' in sys.modules, 'httpx._main' in sys.modules)"
    assert words_of(OURS + script) == ["Client", "False", "False"]


def test_others_get_the_real_modules_afterwards():
    assert words_of(OURS + "import_httpx(); import_httpx(); import httpx._main, rich.console; print('fine')") == [
        "fine"
    ]


def test_what_is_imported_already_is_given():
    assert words_of("import httpx; " + OURS + "print(import_httpx() is httpx)") == ["True"]


def test_a_dry_run_imports_neither_setuptools_nor_a_client_of_http():
    script = (
        "import sys; from tf_yarn_ops.cli.submit import submit; "
        "submit(['--dry_run', '-r', 'worker:1', 'true'], standalone_mode=False); "
        "print('setuptools' in sys.modules, 'httpx' in sys.modules)"
    )
    assert words_of(script)[-2:] == ["False", "False"]

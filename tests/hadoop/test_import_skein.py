"""Skein comes without what it never uses, also where there is no setuptools, and leaves nothing behind."""

import pytest

from support.fresh_python import words_of

OURS = "import sys; from tf_yarn_ops.hadoop.fast_import import import_skein; "


def test_skein_comes_without_setuptools():
    script = "skein = import_skein(); print(skein.__version__, 'setuptools' in sys.modules, 'distutils' in sys.modules)"
    assert words_of(OURS + script)[1:] == ["False", "False"]


WITHOUT_DISTUTILS = """\
import sys

class NoDistutils:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("distutils", "setuptools"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoDistutils())
try:
    import skein
except ModuleNotFoundError as error:
    print(error)
for name in [name for name in sys.modules if name.partition(".")[0] == "skein"]:
    del sys.modules[name]
from tf_yarn_ops.hadoop.fast_import import import_skein
print(import_skein().__name__)
"""


def test_skein_comes_on_a_python_that_has_no_distutils():
    """As from 3.12 on, in an environment without setuptools."""
    assert words_of(WITHOUT_DISTUTILS) == ["distutils", "skein"]


@pytest.mark.slow
def test_others_get_the_real_modules_afterwards():
    assert words_of(
        OURS + "import_skein(); import_skein(); import distutils.version; print(bool(distutils.version.__file__))"
    ) == ["True"]


@pytest.mark.slow
def test_what_is_imported_already_is_given():
    assert words_of("import skein; " + OURS + "print(import_skein() is skein)") == ["True"]


def test_grpc_is_imported_by_the_first_call_only():
    script = (
        "skein = import_skein(); print('grpc' in sys.modules); "
        "skein.core.grpc.insecure_channel('127.0.0.1:1').close(); import grpc.aio; print(grpc is sys.modules['grpc'])"
    )
    assert words_of(OURS + script) == ["False", "True"]


def test_a_thread_that_imports_grpc_meanwhile_gets_the_real_one():
    script = (
        "import threading; done = threading.Event(); threading.Thread(target=done.wait).start(); "
        "skein = import_skein(); print('grpc' in sys.modules, skein.core.grpc is sys.modules['grpc']); done.set()"
    )
    assert words_of(OURS + script) == ["True", "True"]

"""Python imports this module at its start, from the runtime zip on PYTHONPATH; then it imports the environment's own.

When the program imports one of `_LIBRARIES`, that library learns to open ``hdfs://``, or JAX its job, and no garbage is
collected meanwhile. At a signal of the agent the program writes its stacks into its log. Every release of Python can
read this file; an old one gets nothing.
"""

import faulthandler
import gc
import os
import sys

#: Our modules by the library that they serve.
_LIBRARIES = {
    "fsspec": "fsspec_files",
    "jax": "jax_cluster",
    "pyarrow.fs": "pyarrow_files",
    "tensorflow": "tensorflow_files",
}
#: libhdfs needs a CLASSPATH, and serves these libraries.
_OF_LIBHDFS = ("fsspec", "pyarrow.fs")
#: `common.processes.STACK_SIGNAL`, whose module would load ctypes.
_STACK_SIGNAL = 50


def _serve(module):  # type: ignore[no-untyped-def]  # readable by Python 2
    """Register ``hdfs://``, or the job, with a library; a fault must not fail the program."""
    import importlib

    try:
        importlib.import_module("_ytf_runtime.program." + _LIBRARIES[module.__name__]).register(module)
    except Exception as error:
        sys.stderr.write("tf_yarn_ops: %s is not served: %r\n" % (module.__name__, error))


class _Finder:
    """Finds the libraries as Python does, and calls `_serve` after their import."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        """Return the spec of a library; None for other modules."""
        if name not in _LIBRARIES or (name in _OF_LIBHDFS and "CLASSPATH" in os.environ):
            return None
        others = (
            finder.find_spec(name, path, target)
            for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec")
        )
        spec = next((spec for spec in others if spec), None)
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute:

            def exec_module(module):  # type: ignore[no-untyped-def]
                # TensorFlow's import makes half a million objects and no garbage: collecting is a fifth of its time.
                collects = gc.isenabled()
                gc.disable()
                try:
                    execute(module)
                finally:
                    if collects:
                        gc.enable()
                if module.__name__ == name:
                    _serve(module)  # type: ignore[no-untyped-call]

            setattr(loader, "exec_module", exec_module)  # noqa: B010
        return spec


def _start():  # type: ignore[no-untyped-def]
    """Begin to look for imports; the runtime gets a name of its own: the environment may have another release of it."""
    import importlib.machinery
    import importlib.util
    import types

    try:
        faulthandler.register(_STACK_SIGNAL, file=2)
    except (OSError, ValueError):
        pass  # a program without standard error
    own = os.path.dirname(__file__)
    runtime = types.ModuleType("_ytf_runtime")
    runtime.__path__ = [os.path.join(os.path.dirname(own), "tf_yarn_ops", "runtime")]
    sys.modules[runtime.__name__] = runtime
    sys.meta_path.insert(0, _Finder())
    sys.path[:] = [entry for entry in sys.path if entry != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec and spec.loader:
        sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if sys.version_info >= (3, 9):
    _start()  # type: ignore[no-untyped-call]

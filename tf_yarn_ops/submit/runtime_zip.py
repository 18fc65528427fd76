"""The runtime zip: `runtime/`; the same sources give the same bytes.

Coordinator and agents need this zip and a Python of 3.9 or later. It travels with each job through the cache.

The zip holds each source and its byte code for the submitting Python. A node with the same release of Python uses the
byte code, which saves an agent 10 ms of CPU and the coordinator 130 ms. Another release compiles the source, because
the magic number of the byte code differs.

References
----------
PEP 552 (unchecked hash-based byte code); Lib/zipimport.py, ``_zip_searchorder``.
"""

import functools
import importlib.util
import io
import marshal
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from .yarn_request import skein_jar

_RUNTIME = Path(__file__).parent.parent / "runtime"
#: The files of the job's page.
_ASSETS = (".html", ".css", ".js")
#: Our page in place of Skein's own, under Skein's names of the resources.
_OVERVIEW, _KEY_VALUE_STORE = "overview.mustache.html", "kv.mustache.html"
#: Fixed, so that the same sources make the same zip.
_EPOCH = (2000, 1, 1, 0, 0, 0)
#: The last format without references between objects: these depend on what else the process holds.
_MARSHAL = 2
#: The class of Skein that gives the resources of a request their names in YARN.
_REQUEST_CLASS = "com/anaconda/skein/MsgUtils.class"


@functools.cache
def runtime_zip(renamed: tuple[tuple[str, str], ...] = (), level: int = 1) -> bytes:
    """Return the zip's content.

    Parameters
    ----------
    renamed : tuple of (str, str), optional
        Names of resources in Skein's request, each with the name that takes its place. The
        zip is first in the class path. Default: none; Skein's class serves as it is.
    level : int, optional
        zlib's level. Default: 1, half the time of zlib's own default for a few KiB more. 0 suits a zip that stays here.
    """
    sources = {
        f"tf_yarn_ops/runtime/{path.relative_to(_RUNTIME).as_posix()}": path for path in sorted(_RUNTIME.rglob("*.py"))
    }
    members = {name: path.read_bytes() for name, path in sources.items()}
    members |= {f"{name}c": _byte_code(name, path, members[name]) for name, path in sources.items()}
    # The package's own first module would import the client.
    members["tf_yarn_ops/__init__.py"] = b""
    members |= {
        f"tf_yarn_ops/runtime/{path.relative_to(_RUNTIME).as_posix()}": path.read_bytes()
        for path in sorted(_RUNTIME.rglob("*"))
        if path.suffix in _ASSETS and path.name != _OVERVIEW
    }
    # The zip is first in the class path of Skein's application master, whose pages, which check no view ACL, then only
    # lead to the job's page.
    members[_OVERVIEW] = members[_KEY_VALUE_STORE] = (_RUNTIME / "common" / _OVERVIEW).read_bytes()
    # Without byte code: every Python has to be able to read these files.
    members["__main__.py"] = (_RUNTIME / "entry.py").read_bytes()
    members["program/sitecustomize.py"] = (_RUNTIME / "program" / "sitecustomize.py").read_bytes()
    if renamed:
        with zipfile.ZipFile(skein_jar()) as jar:
            content = jar.read(_REQUEST_CLASS)
        for name, instead in renamed:  # a class file has its length before each constant
            content = content.replace(_constant(name), _constant(instead))
        members[_REQUEST_CLASS] = content
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED, level)
    return target.getvalue()


def _constant(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _byte_code(name: str, path: Path, source: bytes) -> bytes:
    """Return a module's byte code as an unchecked hash-based ``.pyc``.

    The compiled modules beside the sources are used where they are, which takes a tenth of the time of a compilation.
    """
    if sys.flags.optimize:  # they lack the assertions
        code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    else:
        code = _renamed(SourceFileLoader(name, str(path)).get_code(name), name)
    return (
        importlib.util.MAGIC_NUMBER
        + b"\x01\0\0\0"  # hash-based, not checked: source and byte code travel in one file
        + importlib.util.source_hash(source)
        + marshal.dumps(code, _MARSHAL)
    )


def _renamed(code: CodeType | None, name: str) -> CodeType:
    """Return the code with `name` as its file: its traces and bytes do not depend on where the package lies."""
    assert code is not None, "a source always has code"
    constants = tuple(_renamed(value, name) if isinstance(value, CodeType) else value for value in code.co_consts)
    return code.replace(co_filename=name, co_consts=constants)

"""The runtime zip: `runtime/` and the pure-Python part of skein and yaml; the same sources give the same bytes.

Agents need this zip and an interpreter, the coordinator also grpcio and protobuf. It travels with each job through the
cache.

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
import zipfile
from pathlib import Path

_RUNTIME = Path(__file__).parent.parent / "runtime"
#: Fixed, so that the same sources make the same zip.
_EPOCH = (2000, 1, 1, 0, 0, 0)
#: The last format without references between objects: these depend on what else the process holds.
_MARSHAL = 2
#: Half the time of zlib's default, for a few KiB more.
_COMPRESSION = 1


@functools.cache
def runtime_zip() -> bytes:
    """Return the zip's content."""
    members = {"tf_yarn_ops/__init__.py": b""}
    members |= {f"tf_yarn_ops/runtime/{path.relative_to(_RUNTIME).as_posix()}": path.read_bytes()
                for path in sorted(_RUNTIME.rglob("*.py"))}
    for package in ("skein", "yaml"):
        root = package_folder(package)
        for path in sorted(root.rglob("*.py")):
            if "test" not in path.relative_to(root).parts:
                members[f"{package}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    # Added after the byte code: every Python has to be able to read this file.
    members |= {f"{name}c": _byte_code(name, content) for name, content in members.items()}
    members["__main__.py"] = (_RUNTIME / "entry.py").read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED, _COMPRESSION)
    return target.getvalue()


def _byte_code(name: str, source: bytes) -> bytes:
    """Return a module's byte code as an unchecked hash-based ``.pyc``."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    flags = 1  # hash-based, not checked: source and byte code travel in one file
    return (importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + importlib.util.source_hash(source)
            + marshal.dumps(code, _MARSHAL))


def package_folder(name: str) -> Path:
    """Return the folder of an installed package; raise ModuleNotFoundError with the command that installs it."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed; pip install {name}")
    return Path(found.origin).parent

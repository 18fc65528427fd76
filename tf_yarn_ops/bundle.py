"""The runtime zip: `runtime/` and the pure-Python part of skein and yaml, the same bytes every time.

It is all that agents and coordinator need next to an interpreter (and, for the
coordinator, grpcio and protobuf), and travels with each job through the cache.
"""

import functools
import importlib.util
import io
import zipfile
from pathlib import Path

#: Fixed, so that the same sources make the same zip.
_EPOCH = (2000, 1, 1, 0, 0, 0)


@functools.cache
def runtime_zip() -> bytes:
    """Give the zip's content; the same sources give the same bytes."""
    members = {
        "__main__.py": _runtime("entry.py").read_bytes(),
        "tf_yarn_ops/__init__.py": b"",
    }
    members |= {f"tf_yarn_ops/runtime/{path.name}": path.read_bytes() for path in sorted(_runtime("").glob("*.py"))}
    for package in ("skein", "yaml"):
        root = _package(package)
        for path in sorted(root.rglob("*.py")):
            if "test" not in path.relative_to(root).parts:
                members[f"{package}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _runtime(name: str) -> Path:
    return Path(__file__).parent / "runtime" / name


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed; pip install {name}")
    return Path(found.origin).parent

"""The package's own source, as the tests of its layout read it."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tf_yarn_ops"
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    """Return a file's name below the package: ``runtime/common/report``."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


@functools.cache
def tree_of(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def nodes_of(path):
    """Return all nodes of the syntax tree of a file, as `ast.walk` gives them: to walk takes longer than to parse."""
    return tuple(ast.walk(tree_of(path)))


@functools.cache
def imported_modules(path):
    """Return the absolute names of all modules that a file imports, anywhere in it, for types too."""
    return tuple(dict.fromkeys(_imports_of(path)))


def _imports_of(path):
    package = ("tf_yarn_ops", *path.relative_to(PACKAGE).parts[:-1])
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                inner = PACKAGE.joinpath(*base[1:], alias.name) if base[0] == "tf_yarn_ops" else None
                is_module = inner is not None and (inner.with_suffix(".py").is_file() or inner.is_dir())
                yield ".".join([*base, alias.name] if is_module else base)

"""The house keeps its own rules: who imports whom, what ships to the cluster, what is documented."""

import ast
import functools
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tf_yarn_ops"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: design.md section 8. A room imports rooms of its own row and of the rows above.
STAIRCASE = (
    ("runtime",),
    ("errors", "requirement"),
    ("readers", "parts", "spec", "specfile"),
    ("environment", "application", "bundle", "request"),
    ("imports", "negotiation", "uploading", "authentication", "configuration", "site", "transport", "resourcemanager", "cluster"),
    ("filesystem", "webhdfs", "resource", "directory", "staging", "folder", "sweep", "cache"),
    ("certificate", "preflight", "queues", "placement", "status", "tracking", "submission"),
    ("restsubmitter", "skeinsubmitter", "skeinchild"),
    ("logs",),
    ("launcher", "submitting", "repeating", "identity", "claims", "ensuring", "waiting", "watching", "killing"),
    ("cli", "airflow", "azkaban"),
)
RANK = {room: rank for rank, rooms in enumerate(STAIRCASE) for room in rooms}
#: Beside the staircase: the embedded Hadoop knows the errors and nothing else of the house.
ALLOWED_ELSEWHERE = {"minicluster": {"minicluster", "errors"}}
#: The only module of the runtime that may import skein: it talks to Skein's application master.
SKEIN_IN_RUNTIME = {"skein"}


def name_of(path):
    """Give a file's name below the package: ``runtime/report``."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def imported_modules(path):
    """Give the absolute names of all modules that a file imports, anywhere in it."""
    return tuple(imports_of(path))


def imports_of(path):
    package = ("tf_yarn_ops", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            if base == ["tf_yarn_ops"]:
                yield from (f"tf_yarn_ops.{alias.name}" for alias in node.names)
            else:
                yield ".".join(base)


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path):
    room = room_of(path)
    if room == "__init__":
        return
    own = {name.split(".")[1] for name in imported_modules(path) if name.startswith("tf_yarn_ops.")} - {"__version__"}
    if room in ALLOWED_ELSEWHERE:
        assert own <= ALLOWED_ELSEWHERE[room]
        return
    assert room in RANK, f"{room} has no row in STAIRCASE; add it here and to docs/design.md section 8"
    minicluster = {"minicluster"} if room == "cli" else set()
    wrong = {other for other in own - minicluster if RANK.get(other, len(RANK)) > RANK[room]}
    assert not wrong, f"{room} must not import {', '.join(sorted(wrong))}"


def rooms_of_the_design():
    """Give the rows of design.md section 8 as (rooms, description with its further lines)."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    listing = page.partition("## 8.")[2].partition("```\n")[2].partition("```")[0]
    found = []
    for line in listing.splitlines()[1:]:
        if re.match(r"  \S", line):
            rooms, _, description = line.strip().partition("  ")
            found.append((rooms.replace("/", "").split(), description))
        elif line.startswith("   "):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line}")
    return found


def test_the_rooms_of_the_design_are_those_of_the_staircase():
    *rows, last = STAIRCASE
    expected = [*map(set, rows), *({room} for room in (*last, *ALLOWED_ELSEWHERE))]
    assert [set(rooms) for rooms, _ in rooms_of_the_design()] == expected
    assert all(len(rooms) == len(set(rooms)) for rooms, _ in rooms_of_the_design())


@pytest.mark.parametrize("package", ["runtime", "cli", "airflow", "azkaban", "minicluster"])
def test_the_design_names_each_module_of_a_package(package):
    (described,) = [description for rooms, description in rooms_of_the_design() if rooms == [package]]
    modules = {path.stem for path in (PACKAGE / package).glob("*.py")} - {"__init__", "__main__"}
    assert modules <= set(re.findall(r"\w+", described)), modules - set(re.findall(r"\w+", described))


def test_a_wrong_import_would_be_seen():
    assert RANK["launcher"] > RANK["spec"] > RANK["runtime"]
    assert "tf_yarn_ops.errors" in set(imported_modules(PACKAGE / "spec.py"))


@pytest.mark.parametrize("path", sorted((PACKAGE / "runtime").glob("*.py")), ids=name_of)
def test_runtime_is_standard_library_only(path):
    foreign = {name.split(".")[0] for name in imported_modules(path)} - set(sys.stdlib_module_names) - {"tf_yarn_ops"}
    outside = {name for name in imported_modules(path)
               if name.startswith("tf_yarn_ops.") and not name.startswith("tf_yarn_ops.runtime")}
    assert not outside
    assert foreign <= SKEIN_IN_RUNTIME


def test_one_module_of_the_runtime_knows_skein():
    knows = [path.name for path in (PACKAGE / "runtime").glob("*.py")
             if any(name.split(".")[0] == "skein" for name in imported_modules(path))]
    assert len(knows) <= 1, knows


@pytest.mark.parametrize("path", sorted((PACKAGE / "runtime").glob("*.py")), ids=name_of)
def test_runtime_is_python_3_9(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    if "from __future__ import annotations" in source:
        return
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            unions = [part for part in ast.walk(annotation)
                      if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)] if annotation else []
            assert not unions, f"{path.name}:{node.lineno}: X | Y needs Python 3.10; write Optional or Union"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_imports_tensorflow_and_airflow_stays_in_its_room(path):
    foreign = {name.split(".")[0] for name in imported_modules(path)}
    assert not foreign & {"tensorflow", "keras", "tensorboard"}
    assert "airflow" not in foreign or room_of(path) == "airflow"


@pytest.mark.parametrize("module", ["tf_yarn_ops", "tf_yarn_ops.spec", "tf_yarn_ops.cli"])
def test_import_is_light(module):
    heavy = ("skein", "grpc", "httpx", "hdfs", "requests", "cryptography", "rich", "tensorflow")
    script = f"import sys, {module}; print(*[name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (run.stdout.split(), run.stderr) == ([], "")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_print_and_no_bare_except(path):
    faults = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            faults.append(f"line {node.lineno}: print; use logging, in the command line click.echo")
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            faults.append(f"line {node.lineno}: bare except")
    assert not faults


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_have_docstrings(path):
    tree = tree_of(path)
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named and not node.name.startswith("_") and not ast.get_docstring(node):
            missing.append(node.name)
    assert not missing


def test_logging_is_not_configured_on_import():
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                assert not ast.unparse(node.value.func).endswith("basicConfig"), path.name


@pytest.mark.parametrize("word", ["up", "testing", "lint me"])
def test_dev_refuses_what_it_does_not_know(word):
    run = subprocess.run([ROOT / "dev", word], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert f"'{word}' is not a command" in run.stderr


def test_dev_lists_its_commands():
    run = subprocess.run([ROOT / "dev"], capture_output=True, text=True, timeout=60, check=True)
    for command in ("demo", "test", "lint", "bench", "venv"):
        assert f"./dev {command}" in run.stdout


def call_dev(function, folder, java=None):
    """Call a function of ./dev where PATH has no package manager, no Python and no Maven."""
    for name in ("bash", "cat", "dirname", "mkdir", "sed", "head", "id"):
        (folder / name).symlink_to(shutil.which(name))
    env = {"PATH": str(folder), "HOME": str(folder)}
    if java:
        (folder / "bin").mkdir()
        (folder / "bin" / "java").write_text(f"#!/bin/bash\necho 'openjdk version \"{java}\"' >&2\n")
        (folder / "bin" / "java").chmod(0o755)
        env["JAVA_HOME"] = str(folder)
    return subprocess.run(["bash", "-c", f". '{ROOT}/dev' >/dev/null && {function}"], capture_output=True, text=True,
                          timeout=60, env=env)


@pytest.mark.parametrize(("function", "java", "says"), [
    ("ensure_java", "1.8.0_392", r"Java 11, 17 or 21 is needed, found JAVA_HOME=\S+ release '8'; install "
                                 r"openjdk-17-jdk-headless \(apt-get\) or java-17-openjdk-devel \(dnf\), or set JAVA_HOME"),
    ("ensure_java", "24.0.1", r"Java 11, 17 or 21 is needed, found JAVA_HOME=\S+ release '24'; install .*"),
    ("ensure_java", "17.0.9", r"Maven is needed to fetch Hadoop once; install the package maven"),
    ("find_python", None, r"no Python of at least 3.10 on PATH; install python3.11 \(.*\)"),
])
def test_dev_says_in_one_line_what_to_install_where_it_can_not_do_so(tmp_path, function, java, says):
    ran = call_dev(function, tmp_path, java)
    assert ran.returncode == 2 and re.fullmatch(rf"dev: {says}\n", ran.stderr), ran.stderr


def test_the_package_installs_with_its_programs_and_data(tmp_path):
    """What pip takes from it: a wheel with both programs, the type marker and the files that are no Python."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "tf_yarn_ops", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "setup.py", "-q", "bdist_wheel"], cwd=tmp_path, check=True, timeout=120,
                   capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("dist/tf_yarn_ops-*.whl"))) as wheel:
        names = set(wheel.namelist())
        said = {Path(name).name: wheel.read(name).decode() for name in names if ".dist-info/" in name}
    assert {path.relative_to(ROOT).as_posix() for path in MODULES} <= names
    assert {"tf_yarn_ops/py.typed", "tf_yarn_ops/minicluster/pom.xml"} <= names
    assert "ytf-submit = tf_yarn_ops.cli:submit_main" in said["entry_points.txt"]
    assert re.search(r"^ytf = tf_yarn_ops\.cli:main$", said["entry_points.txt"], re.M)
    assert "Requires-Python: >=3.10" in said["METADATA"]
    assert {"airflow", "tensorflow", "s3", "kerberos", "dev"} <= set(re.findall(r"Provides-Extra: (\w+)", said["METADATA"]))


def test_readme_and_ci_name_the_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "./dev demo" in readme and "./dev test" in readme
    assert "./dev lint" in ci and "./dev test" in ci

"""The layout keeps its law: imports between rooms, what ships to the cluster, what is documented."""

import ast
import functools
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.packages import product_wheel
from support.source import MODULES, PACKAGE, ROOT, imported_modules, name_of, nodes_of, tree_of

RUNTIME = sorted((PACKAGE / "runtime").rglob("*.py"))
#: docs/design.md, section "Rooms". A room imports itself and the rooms that its row names, and no other.
CORE = (
    "runtime.common",
    "runtime.tensorboard",
    "errors",
    "programs",
    "validation",
    "yaml_text",
    "kinds",
    "declaration",
    "job",
    "hadoop",
    "staging",
    "environments",
    "history",
    "follow",
    "submit",
    "terminal",
    "launch",
    "doctor",
)
ALLOWED = {
    **{room: set(CORE[:number]) for number, room in enumerate(CORE)},
    "hadoop": {"runtime.common", "errors", "validation", "yaml_text", "kinds", "declaration"},
    "runtime.agent": {"runtime.common", "runtime.tensorboard"},
    "runtime.page": {"runtime.common"},
    "runtime.program": {"runtime.common"},
    "runtime.master": {"runtime.common", "runtime.page"},
    "runtime.entry": {"runtime.agent", "runtime.master", "runtime.tensorboard"},
    "terminal": {"runtime.common", "errors"},
    **{door: {*CORE, "history", "terminal"} for door in ("airflow", "azkaban", "oozie")},
    "ui": {*CORE, "history", "terminal", "runtime.page"},
    "cli": {*CORE, "history", "terminal", "minicluster"},
    "minicluster": {"errors", "programs"},
}
#: The only foreign packages of the runtime: the coordinator talks to Skein's application master, and one module serves
#: the fsspec of the user's program.
FOREIGN_IN_RUNTIME = {"skein", "fsspec"}


def room_of(module):
    """Return the room of a module's dotted name below the package: ``runtime.common`` of ``runtime.common.report``."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "runtime" else parts[0]


def dotted(path):
    """Return a file's dotted name below the package; a room's own name for its ``__init__``."""
    return name_of(path).replace("/", ".").removesuffix(".__init__")


FILES = {dotted(path): path for path in MODULES if path != PACKAGE / "__init__.py"}
ROOMS = sorted({room_of(module) for module in FILES} - {"runtime"})


@functools.cache
def imports():
    """Return each module with the modules of the package that it imports, for types too."""
    return {
        module: {
            name.removeprefix("tf_yarn_ops.") for name in imported_modules(path) if name.startswith("tf_yarn_ops.")
        }
        - {module}
        for module, path in FILES.items()
    }


@functools.cache
def imports_of_rooms():
    """Return each room with the other rooms that it imports."""
    graph = imports()
    return {
        room: {room_of(other) for module in graph if room_of(module) == room for other in graph[module]} - {room}
        for room in ROOMS
    }


def circles(graph):
    """Return the groups of nodes that reach each other."""

    def reachable(start):
        seen, todo = set(), [start]
        while todo:
            for other in graph.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reach = {node: reachable(node) for node in graph}
    return {
        frozenset(other for other in reach[node] if node in reach.get(other, ()))
        for node in graph
        if node in reach[node]
    }


def test_a_room_imports_only_the_rooms_that_its_row_names():
    assert ROOMS and set(ROOMS) <= set(ALLOWED), "add a row here and to docs/design.md"
    imported = imports_of_rooms()
    assert {room: sorted(imported[room] - ALLOWED[room]) for room in ROOMS if imported[room] - ALLOWED[room]} == {}


def test_no_module_is_part_of_a_circle_of_imports():
    assert not circles(imports())


def test_a_circle_would_be_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}


def test_a_wrong_import_would_be_seen():
    assert "errors" in imports()["job.spec"] and "launch" not in ALLOWED["follow"]


#: Modules whose tests are in the file of another one: they are values, or run only as a part of it.
TESTED_IN = {
    "runtime/test_program.py": ["runtime.program.places", "runtime.program.sitecustomize"],
    "runtime/test_program_cluster.py": [
        "runtime.common.hdfs_file",
        "runtime.program.fsspec_files",
        "runtime.program.pyarrow_files",
        "runtime.program.tensorflow_files",
    ],
    "hadoop/test_delegation.py": ["hadoop.kms"],
    "airflow/test_decorator.py": ["airflow.exceptions"],
    "airflow/test_trigger.py": ["airflow.following"],
    "azkaban/test_jobtype.py": ["azkaban.__main__"],
    "azkaban/test_install.py": ["azkaban.commands"],
    "cli/test_cli_cluster.py": ["cli.cache", "doctor.node_program"],
    "cli/test_client.py": ["runtime.agent.client_task", "submit.working_folder"],
    "cli/test_tensorboard.py": ["runtime.tensorboard.tensorboard_program"],
    "doctor/test_examination.py": ["doctor.known"],
    "doctor/test_reach.py": ["doctor.probe"],
    "environments/test_pack.py": ["cli.env", "environments.description"],
    "follow/test_lease.py": ["follow.session"],
    "hadoop/test_resourcemanager.py": ["hadoop.security.authentication"],
    "job/test_options.py": ["declaration", "kinds"],
    "minicluster/test_hadoop.py": ["minicluster.health"],
    "oozie/test_oozie_cluster.py": ["oozie.pex"],
    "oozie/test_request.py": ["oozie.data", "oozie.package_options"],
    "secure/test_oozie.py": ["hadoop.security.container_tokens"],
    "runtime/test_agent.py": ["runtime.common.processes"],
    "runtime/test_contact.py": ["runtime.common.link"],
    "runtime/test_coordinator.py": ["runtime.common.mutual_tls", "runtime.entry"],
    "runtime/test_exec_relay.py": ["runtime.agent.exec_process", "runtime.common.exec_session"],
    "runtime/test_file_storage.py": ["hadoop.filesystem", "runtime.common.hdfs"],
    "runtime/test_lifecycle.py": ["runtime.common.roles"],
    "runtime/test_page.py": ["runtime.page.drawing"],
    "runtime/test_tensorboard_task.py": [
        "runtime.tensorboard.front",
        "runtime.tensorboard.page_script",
        "runtime.master.tunnel",
    ],
    "submit/test_local_submitter.py": [
        "runtime.master.local_containers",
    ],
}


def test_each_module_has_a_file_of_tests():
    elsewhere = {module: file for file, modules in TESTED_IN.items() for module in modules}
    own = {
        module: f"{module.partition('.')[0]}/test_{module.rpartition('.')[2]}.py"
        if "." in module
        else f"test_{module}.py"
        for module, path in FILES.items()
        if path.name != "__init__.py"
    }
    there = {module for module, file in own.items() if (ROOT / "tests" / file).is_file()}
    lacks = {module: file for module, file in own.items() if module not in there | elsewhere.keys()}
    assert not lacks, f"write these files of tests, or name in TESTED_IN where the module is tested: {lacks}"
    assert not elsewhere.keys() - (own.keys() - there), "these modules have a file of their own, or are gone"
    assert all((ROOT / "tests" / file).is_file() for file in TESTED_IN)


def test_the_design_names_each_room():
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rooms = [room for room in ROOMS if "." not in room]
    assert rooms and [room for room in rooms if not re.search(rf"^\s*{room}(/|\.py)", design, re.M)] == []


def test_runtime_is_standard_library_only():
    for path in RUNTIME:
        foreign = (
            {name.split(".")[0] for name in imported_modules(path)} - set(sys.stdlib_module_names) - {"tf_yarn_ops"}
        )
        outside = {
            name
            for name in imported_modules(path)
            if name.startswith("tf_yarn_ops.") and not name.startswith("tf_yarn_ops.runtime")
        }
        assert not outside, path
        assert foreign <= FOREIGN_IN_RUNTIME, path


def test_one_module_of_the_runtime_knows_skein():
    knows = [
        path.name
        for path in (PACKAGE / "runtime").rglob("*.py")
        if any(name.split(".")[0] == "skein" for name in imported_modules(path))
    ]
    assert len(knows) <= 1, knows


def test_runtime_is_python_3_9():
    for path in RUNTIME:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source, str(path), feature_version=(3, 9))
        if "from __future__ import annotations" not in source:
            check_annotations(path, tree)


def check_annotations(path, tree):
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            unions = (
                [
                    part
                    for part in ast.walk(annotation)
                    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)
                ]
                if annotation
                else []
            )
            assert not unions, f"{path.name}:{node.lineno}: X | Y needs Python 3.10; write Optional or Union"


def test_nothing_imports_tensorflow_and_airflow_stays_in_its_room():
    for path in MODULES:
        foreign = {name.split(".")[0] for name in imported_modules(path)}
        assert not foreign & {"tensorflow", "keras", "tensorboard"}, path
        assert "airflow" not in foreign or room_of(dotted(path)) == "airflow", path


def test_one_module_knows_where_names_of_airflow_lie():
    """These two lie at the same place in all versions; the second belongs to another package."""
    same = ("airflow.triggers.base", "airflow.providers.openlineage")
    knows = {
        path.name
        for path in MODULES
        if room_of(dotted(path)) == "airflow"
        for name in imported_modules(path)
        if name.split(".")[0] == "airflow" and not name.startswith(same)
    }
    assert knows == {"versions.py"}


@pytest.mark.parametrize(
    "module", ["tf_yarn_ops", "tf_yarn_ops.job.spec", "tf_yarn_ops.cli.submit", "tf_yarn_ops.cli.ytf"]
)
def test_import_is_light(module):
    clients = ("skein", "grpc", "httpx", "hdfs", "requests", "cryptography", "rich", "tensorflow")
    heavy = (*clients, "ssl", "socket", "hashlib")
    script = f"import sys, {module}; print(*[name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (run.stdout.split(), run.stderr) == ([], "")


def test_no_print_and_no_bare_except():
    faults = []
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                faults.append(f"{path}:{node.lineno}: print; use logging, in the command line click.echo")
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                faults.append(f"{path}:{node.lineno}: bare except")
    assert not faults


def test_public_names_have_docstrings():
    missing = []
    for path in MODULES:
        tree = tree_of(path)
        missing += [] if ast.get_docstring(tree) else [f"{path}: the module"]
        for node in tree.body:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and not node.name.startswith("_") and not ast.get_docstring(node):
                missing.append(f"{path}: {node.name}")
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
    for command in ("demo", "test", "lint", "docs", "bench", "venv"):
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
    return subprocess.run(
        ["bash", "-c", f". '{ROOT}/dev' >/dev/null && {function}"], capture_output=True, text=True, timeout=60, env=env
    )


@pytest.mark.parametrize(
    ("function", "java", "says"),
    [
        (
            "ensure_java",
            "1.8.0_392",
            r"JAVA_HOME=\S+ has Java '8'; the tests need 11 to 25: unset JAVA_HOME, or point it at such a JDK",
        ),
        (
            "ensure_java",
            "26.0.1",
            r"JAVA_HOME=\S+ has Java '26'; the tests need 11 to 25: .*",
        ),
        (
            'ensure_program "${FIREFOX[@]}"',
            None,
            r"the tests of web pages need Firefox; install the package firefox-esr \(apt-get\) or firefox \(dnf\)",
        ),
        ("find_python", None, r"no Python of 3.10 to 3.13 on PATH; install python3.11 \(.*\)"),
    ],
)
def test_dev_names_in_one_line_what_to_install(tmp_path, function, java, says):
    ran = call_dev(function, tmp_path, java)
    assert ran.returncode == 2 and re.fullmatch(rf"dev: {says}\n", ran.stderr), ran.stderr


@pytest.mark.slow
def test_the_package_installs_with_its_programs_and_data(tmp_path):
    """What pip takes from it: a wheel with both programs, the type marker and the files that are no Python."""
    with zipfile.ZipFile(product_wheel(tmp_path / "source")) as wheel:
        names = set(wheel.namelist())
        said = {Path(name).name: wheel.read(name).decode() for name in names if ".dist-info/" in name}
    assert {path.relative_to(ROOT).as_posix() for path in MODULES} <= names
    assert {"tf_yarn_ops/py.typed", "tf_yarn_ops/minicluster/pom.xml", "tf_yarn_ops/ui/templates/list.html"} <= names
    assert "tf_yarn_ops/airflow/operator.pyi" in names
    assert "ytf-submit = tf_yarn_ops.cli:submit_main" in said["entry_points.txt"]
    assert re.search(r"^ytf = tf_yarn_ops\.cli:main$", said["entry_points.txt"], re.M)
    assert "Requires-Python: >=3.10" in said["METADATA"]
    assert {"airflow", "tensorflow", "s3", "ui", "dev"} <= set(re.findall(r"Provides-Extra: (\w+)", said["METADATA"]))


def test_readme_and_ci_name_the_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "./dev demo" in readme and "./dev test" in readme
    assert "./dev lint" in ci and "./dev docs" in ci and "./dev test" in ci

"""The commands ``yarn``, ``hdfs`` and ``hadoop``."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from support.machines import make_settings, write_script
from tf_yarn_ops.minicluster.shims import COMMANDS, build_shims


@pytest.fixture
def shims(tmp_path):
    """A folder of shims whose Java prints its arguments, one a line."""
    (tmp_path / "jars").mkdir()
    for name in ("b.jar", "a.jar"):
        (tmp_path / "jars" / name).touch()
    write_script(tmp_path / "jdk" / "bin" / "java", 'for argument in "$@"; do echo "$argument"; done\n')
    settings = replace(make_settings(tmp_path / "cluster"), hadoop=tmp_path, java_home=tmp_path / "jdk")
    for name, text in build_shims(settings).items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


def run_shim(shims, program, *arguments, **environ):
    command = ["/bin/sh", str(shims / "bin" / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nonexistent", **environ})


@pytest.mark.parametrize("program", COMMANDS)
def test_classpath_is_answered_without_java(shims, program):
    shutil.rmtree(shims / "jdk")
    ran = run_shim(shims, program, "classpath", "--glob")
    assert ran.stdout == f"{shims}/cluster/conf:{shims}/jars/a.jar:{shims}/jars/b.jar\n"
    assert (ran.returncode, ran.stderr) == (0, "")
    assert run_shim(shims, program, "classpath").stdout == f"{shims}/cluster/conf:{shims}/jars/*\n"


@pytest.mark.parametrize(
    ("program", "command", "main_class"),
    [(program, command, target) for program, table in COMMANDS.items() for command, target in table.items()],
)
def test_commands_run_their_class_with_arguments_as_typed(shims, program, command, main_class):
    lines = run_shim(shims, program, command, "a b", "$HOME", "*").stdout.splitlines()
    name, _, again = main_class.partition(" ")
    expected = [name, *([command] if again else []), "a b", "$HOME", "*"]
    assert lines[lines.index("-cp") + 1 :] == [f"{shims}/jars/*:{shims}/cluster/conf", *expected]


def test_shims_obey_the_environment(shims):
    write_script(shims / "other" / "bin" / "java", 'echo other "$HADOOP_CONF_DIR" "$@"\n')
    environ = {"JAVA_HOME": f"{shims}/other", "HADOOP_CONF_DIR": "/site", "HADOOP_CLIENT_OPTS": "-Da=1 -Db=2"}
    said = run_shim(shims, "yarn", "node", **environ).stdout
    assert said.startswith("other /site -Xmx256m ")
    assert f" -Da=1 -Db=2 -cp {shims}/jars/*:/site " in said


def test_unknown_command_names_the_known_ones(shims):
    ran = run_shim(shims, "hdfs", "balancer")
    assert ran.returncode == 2
    assert ran.stderr == (
        "hdfs: unknown command 'balancer'; this minicluster knows: classpath dfs haadmin dfsadmin fsck getconf version\n"
    )

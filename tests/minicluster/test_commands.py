"""``ytf minicluster``, with a Java that dies, or none."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from support.machines import make_settings
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, daemons, installation
from tf_yarn_ops.minicluster.commands import minicluster

SLEEP = "import sys, time; print(flush=True); time.sleep(600)"


def test_a_daemon_that_dies_on_the_way_is_reported_with_its_last_lines(dying):
    with pytest.raises(MiniClusterError) as caught:
        MiniCluster(dying / "one", light=True).up()
    first, second, *_, last = str(caught.value).splitlines()
    assert first == "the ResourceManager ended during the start (exit 3)"
    assert second == f"the last lines of {dying}/one/logs/rm.log:"
    assert last == "  Exception: no luck"
    assert daemons.find_all(dying / "one") == ()


def test_daemons_whose_folder_was_removed_are_ended_first(dying, spawn):
    orphan = spawn(SLEEP, "-Dproc_rm", f"-Dytf.minicluster={dying}/one")
    with pytest.raises(MiniClusterError, match="the ResourceManager ended during the start"):
        MiniCluster(dying / "one", light=True).up()
    assert orphan.wait(60) == -signal.SIGTERM


def test_a_format_that_fails_is_reported_and_done_again_next_time(dying):
    for _ in range(2):
        with pytest.raises(MiniClusterError, match=r"(?s)HDFS was not formatted \(exit 3\).*format\.log.*no luck"):
            MiniCluster(dying / "one").up()


def test_commands_end_with_the_error_and_not_with_a_traceback(dying):
    ran = CliRunner().invoke(minicluster, ["up", "--light", "--dir", str(dying / "one")])
    assert ran.exit_code == 1
    assert "starting ResourceManager (rm)\n" in ran.stderr
    assert "Error: the ResourceManager ended during the start (exit 3)\n" in ran.stderr
    assert ran.stdout == ""


def test_folder_without_cluster_is_reported(machine):
    directory = machine / "cache" / "minicluster"
    fault = f"there is no cluster in {directory}: start one with `ytf minicluster up`"
    for use in (MiniCluster.attach, lambda: MiniCluster().environ, lambda: MiniCluster().resourcemanager_url):
        with pytest.raises(MiniClusterError) as caught:
            use()
        assert str(caught.value) == fault
    ran = CliRunner().invoke(minicluster, ["env"])
    assert (ran.exit_code, ran.stderr) == (1, f"Error: {fault}\n")
    ran = CliRunner().invoke(minicluster, ["status"])
    assert (ran.exit_code, ran.stdout) == (3, f"there is no cluster in {directory}\n")
    ran = CliRunner().invoke(minicluster, ["status", "--json"])
    assert json.loads(ran.stdout) == {"directory": str(directory), "ready": False}
    ran = CliRunner().invoke(minicluster, ["down"])
    assert (ran.exit_code, ran.stderr) == (0, f"nothing runs in {directory}\n")
    assert not directory.exists()


def test_variable_names_the_default_folder(machine, monkeypatch):
    monkeypatch.setenv("YTF_MINICLUSTER_DIR", str(machine / "mine"))
    assert MiniCluster().directory == machine / "mine"


def test_env_is_what_a_shell_can_eval(machine):
    (machine / "one").mkdir()
    settings = installation.prepare_folder(replace(make_settings(machine / "one"), java_home=machine / "jdk"))
    ran = CliRunner().invoke(minicluster, ["env", "--dir", str(machine / "one")])
    script = ran.stdout + "command -v yarn; echo $YTF_RESOURCEMANAGER $HADOOP_CONF_DIR $JAVA_HOME\n"
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == [
        f"{machine}/one/bin/yarn",
        f"http://127.0.0.1:{settings.ports['rm-web']}",
        f"{machine}/one/conf",
        f"{machine}/jdk",
    ]


@pytest.mark.parametrize("nodes", [0, -1, 9])
def test_the_number_of_nodes_is_bounded(nodes):
    with pytest.raises(MiniClusterError, match=f"a minicluster has 1 to 8 nodes, not {nodes}"):
        MiniCluster(nodes=nodes)


def test_the_package_is_cheap_to_import():
    script = "import sys, tf_yarn_ops.minicluster; print('tf_yarn_ops.minicluster.hadoop' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"

"""``ytf minicluster``, with a Java that dies, or none."""

import json
import signal
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from shutil import disk_usage

import pytest
from click.testing import CliRunner

from support.machines import make_settings
from support.programs import YTF
from support.waiting import until
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, artefacts, cluster_folder, daemons

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
    ran = CliRunner().invoke(ytf, ["minicluster", "up", "--light", "--dir", str(dying / "one")])
    assert isinstance(ran.exception, MiniClusterError) and ran.exception.reason.exit_code == 4
    assert "starting ResourceManager (rm)\n" in ran.stderr
    assert str(ran.exception).startswith("the ResourceManager ended during the start (exit 3)\n")
    assert ran.stdout == ""


@pytest.mark.parametrize("user", [0, 1000])
def test_cluster_of_root_warns_that_every_user_is_root_through_it(dying, monkeypatch, user):
    monkeypatch.setattr("os.geteuid", lambda: user)
    ran = CliRunner().invoke(ytf, ["minicluster", "up", "--light", "--dir", str(dying / "one")])
    assert ("every user of this machine can run programs as root" in ran.stderr) is (user == 0)


def test_full_disk_of_the_cache_is_refused_before_the_fetch(machine, monkeypatch):
    usage = namedtuple("usage", "total used free")(100 * 10**6, 20 * 10**6, 80 * 10**6)  # type: ignore[call-arg]
    with monkeypatch.context() as patch:
        patch.setattr(
            artefacts.shutil, "disk_usage", lambda path: usage if path == machine / "cache" else disk_usage(path)
        )
        ran = CliRunner().invoke(ytf, ["minicluster", "up", "--dir", str(machine / "one")])
    assert str(ran.exception) == (
        f"the disk of the cache {machine}/cache has 80 MB free, Hadoop needs 90 MB: free some, or set YTF_CACHE"
    )
    assert list((machine / "cache").iterdir()) == [] and not (machine / "calls").exists()


@pytest.mark.slow
def test_up_that_is_ended_while_it_fetches_leaves_nothing(dying):
    maven = dying / "bin" / "mvn"
    whole = maven.read_text()
    maven.write_text(whole + f"echo $$ > {dying}/maven\nexec sleep 600\n")
    command = [*YTF, "minicluster", "up", "--light", "--dir", dying / "one"]
    up = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pid = int(until(lambda: (dying / "maven").exists() and (dying / "maven").read_text(), what="the start of Maven"))
    up.terminate()
    assert up.wait(60) == 143, up.stderr.read()
    assert list((dying / "cache").iterdir()) == [] and not Path(f"/proc/{pid}").exists()
    maven.write_text(whole)
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert "fetching Hadoop 3.4.3 (once, 90 MB)" in again.stderr and "the ResourceManager ended" in again.stderr
    assert [path.name for path in (dying / "cache").iterdir()] == ["hadoop-3.4.3"]


def test_folder_without_cluster_is_reported(machine):
    directory = machine / "cache" / "minicluster"
    fault = f"there is no cluster in {directory}: start one with `ytf minicluster up`"
    for use in (MiniCluster.attach, lambda: MiniCluster().environ, lambda: MiniCluster().resourcemanager_url):
        with pytest.raises(MiniClusterError) as caught:
            use()
        assert str(caught.value) == fault
    ran = CliRunner().invoke(ytf, ["minicluster", "env"])
    assert isinstance(ran.exception, MiniClusterError) and str(ran.exception) == fault
    ran = CliRunner().invoke(ytf, ["minicluster", "status"])
    assert (ran.exit_code, ran.stdout) == (3, f"there is no cluster in {directory}\n")
    ran = CliRunner().invoke(ytf, ["minicluster", "status", "--json"])
    assert json.loads(ran.stdout) == {"directory": str(directory), "ready": False}
    ran = CliRunner().invoke(ytf, ["minicluster", "down"])
    assert (ran.exit_code, ran.stderr) == (0, f"nothing runs in {directory}\n")
    assert not directory.exists()


def test_variable_names_the_default_folder(machine, monkeypatch):
    monkeypatch.setenv("YTF_MINICLUSTER_DIR", str(machine / "mine"))
    assert MiniCluster().directory == machine / "mine"


def test_env_is_what_a_shell_can_eval(machine):
    (machine / "one").mkdir()
    settings = cluster_folder.prepare_folder(replace(make_settings(machine / "one"), java_home=machine / "jdk"))
    ran = CliRunner().invoke(ytf, ["minicluster", "env", "--dir", str(machine / "one")])
    script = ran.stdout + "command -v yarn; echo $YTF_RESOURCEMANAGER $HADOOP_CONF_DIR $JAVA_HOME\n"
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == [
        f"{machine}/one/bin/yarn",
        f"http://127.0.0.1:{settings.ports['rm-web']}",
        f"{machine}/one/conf",
        f"{machine}/jdk",
    ]


@pytest.mark.parametrize("light", [False, True])
def test_status_shows_the_default_file_system(machine, light):
    (machine / "one").mkdir()
    settings = cluster_folder.prepare_folder(
        replace(make_settings(machine / "one", light=light), java_home=machine / "jdk")
    )
    ran = CliRunner().invoke(ytf, ["minicluster", "status", "--dir", str(machine / "one")])
    shown = "viewfs://minicluster" if light else f"hdfs://127.0.0.1:{settings.ports['nn']}"
    assert ran.exit_code == 3 and f"Default file system   {shown}\n" in ran.stdout


@pytest.mark.parametrize("nodes", [0, -1, 9])
def test_the_number_of_nodes_is_bounded(nodes):
    with pytest.raises(MiniClusterError, match=f"a minicluster has 1 to 8 nodes, not {nodes}"):
        MiniCluster(nodes=nodes)


def test_the_package_is_cheap_to_import():
    script = "import sys, tf_yarn_ops.minicluster; print('tf_yarn_ops.minicluster.hadoop' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"

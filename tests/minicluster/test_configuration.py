"""The embedded Hadoop without Java: settings, shims, ports, processes, and what it says when something is missing."""

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import xml.etree.ElementTree
import zipfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import (
    MiniCluster,
    additions,
    artefacts,
    class_archive,
    configuration,
    daemons,
    installation,
    labels,
    ports,
    processes,
    state,
    versions,
)
from tf_yarn_ops.minicluster.commands import minicluster
from tf_yarn_ops.minicluster.java import Java, find_java, parse_feature_release
from tf_yarn_ops.minicluster.shims import COMMANDS, build_shims

SLEEP = "import sys, time; print(flush=True); time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def make_settings(directory=Path("/clusters/one"), nodes=1, light=False, stock=False, labels=None, classes=None,
                  ha=False, **others):
    names = configuration.port_names(nodes, light, ha=ha)
    return configuration.Settings(
        directory=directory,
        hadoop=Path("/cache/hadoop"),
        java_home=Path("/opt/jdk"),
        user="ada",
        ports={name: 10000 + number for number, name in enumerate(names)},
        memory=16384,
        nodes=nodes,
        light=light,
        stock=stock,
        labels=labels or {},
        classes=classes,
        ha=ha,
        **others,
    )


def read_xml(text):
    root = xml.etree.ElementTree.fromstring(text)
    return {entry.findtext("name"): entry.findtext("value") for entry in root}


def read_site(name, **options):
    return read_xml(configuration.build_configuration(make_settings(**options))[name])


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def write_java(folder, version, home=None):
    home = home or folder
    write_script(
        folder / "bin" / "java",
        f'echo "    java.home = {home}" >&2\necho "    java.version = {version}" >&2\n',
    )
    return folder / "bin"


# ---------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("core-site.xml", "fs.defaultFS", "hdfs://127.0.0.1:10005"),
        ("hdfs-site.xml", "dfs.namenode.safemode.extension", "0"),
        ("hdfs-site.xml", "dfs.permissions.enabled", "true"),
        ("hdfs-site.xml", "dfs.replication", "1"),
        ("yarn-site.xml", "yarn.nodemanager.vmem-check-enabled", "false"),
        ("yarn-site.xml", "yarn.nodemanager.pmem-check-enabled", "true"),
        ("yarn-site.xml", "yarn.nodemanager.container-monitor.interval-ms", "3000"),
        ("yarn-site.xml", "yarn.scheduler.minimum-allocation-mb", "64"),
        ("yarn-site.xml", "yarn.nodemanager.resource.memory-mb", "16384"),
        ("yarn-site.xml", "yarn.nodemanager.resource.cpu-vcores", "32"),
        ("yarn-site.xml", "yarn.nodemanager.resource-type.yarn.io/gpu", "2"),
        ("yarn-site.xml", "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "200"),
        ("yarn-site.xml", "yarn.resourcemanager.recovery.enabled", "true"),
        ("yarn-site.xml", "yarn.resourcemanager.fs.state-store.uri", "file:///clusters/one/rm"),
        ("yarn-site.xml", "yarn.node-attribute.fs-store.root-dir", "file:///clusters/one/rm/node-attributes"),
        ("yarn-site.xml", "yarn.nodemanager.recovery.enabled", "true"),
        ("yarn-site.xml", "yarn.resourcemanager.connect.retry-interval.ms", "1000"),
        ("yarn-site.xml", "yarn.nm.liveness-monitor.expiry-interval-ms", "20000"),
        ("yarn-site.xml", "yarn.log-aggregation-enable", "true"),
        ("yarn-site.xml", "yarn.nodemanager.delete.debug-delay-sec", "0"),
        ("yarn-site.xml", "yarn.application.classpath", "/cache/hadoop/jars/*,/clusters/one/conf"),
        ("yarn-site.xml", "yarn.resourcemanager.scheduler.monitor.enable", "true"),
        ("resource-types.xml", "yarn.resource-types", "yarn.io/gpu"),
        ("capacity-scheduler.xml", "yarn.scheduler.capacity.root.queues", "default,low"),
        ("capacity-scheduler.xml", "yarn.scheduler.capacity.maximum-am-resource-percent", "1.0"),
        (
            "capacity-scheduler.xml",
            "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments",
            "100",
        ),
        (
            "yarn-site.xml",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
            "99.0",
        ),
    ],
)
def test_settings(file, name, value):
    assert read_site(file)[name] == value


def test_stock_keeps_hadoops_heartbeat_threads_and_assignments():
    assert "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms" not in read_site("yarn-site.xml", stock=True)
    assert "yarn.nodemanager.log-container-debug-info.enabled" not in read_site("yarn-site.xml", stock=True)
    files = {name: read_xml(text) for name, text in configuration.build_configuration(make_settings(stock=True)).items() if ".xml" in name}
    assert not [name for values in files.values() for name in values if name.endswith(("thread-count", "handler.count"))]
    assert not any("offswitch" in name for name in read_site("capacity-scheduler.xml", stock=True))


def test_light_has_no_hdfs_and_mounts_a_folder():
    files = configuration.build_configuration(make_settings(light=True))
    assert "hdfs-site.xml" not in files
    core = read_xml(files["core-site.xml"])
    assert core["fs.defaultFS"] == "viewfs://minicluster"
    assert core["fs.viewfs.mounttable.minicluster.linkMergeSlash"] == "file:///clusters/one/files"
    assert read_xml(files["yarn-site.xml"])["yarn.nodemanager.remote-app-log-dir"].startswith("file:///clusters/one/")
    assert not any(name.startswith(("nn", "dn")) for name in make_settings(light=True).ports)


def test_capacities_of_the_queues_add_up():
    site = read_site("capacity-scheduler.xml")
    assert sum(int(site[f"yarn.scheduler.capacity.root.{queue}.capacity"]) for queue in ("default", "low")) == 100


def test_jvm_options_reach_containers_by_the_white_list_only():
    site = read_site("yarn-site.xml")
    assert {"JAVA_HOME", "HADOOP_CONF_DIR", "PATH", "LANG", "TZ", "JDK_JAVA_OPTIONS"} <= set(
        site["yarn.nodemanager.env-whitelist"].split(",")
    )
    assert "yarn.nodemanager.admin-env" not in site


def test_a_pair_is_named_and_has_one_store():
    yarn, hdfs = (read_site(f"{name}-site.xml", ha=True) for name in ("yarn", "hdfs"))
    assert yarn["yarn.resourcemanager.ha.rm-ids"] == "rm,rm2"
    assert yarn["yarn.resourcemanager.store.class"].endswith(".ZKRMStateStore")
    assert "yarn.resourcemanager.webapp.address" not in yarn, "each one has its own"
    assert read_site("core-site.xml", ha=True)["fs.defaultFS"] == "hdfs://minicluster"
    assert hdfs["dfs.ha.namenodes.minicluster"] == "nn,nn2"
    assert hdfs["dfs.namenode.shared.edits.dir"] == "file:///clusters/one/nn-shared"
    assert hdfs["dfs.namenode.name.dir.minicluster.nn"] != hdfs["dfs.namenode.name.dir.minicluster.nn2"]
    zookeeper = configuration.build_configuration(make_settings(ha=True))["zoo.cfg"]
    port = make_settings(ha=True).ports["zk"]
    assert yarn["hadoop.zk.address"] == f"127.0.0.1:{port}"
    assert {f"clientPort={port}", "clientPortAddress=127.0.0.1"} <= set(zookeeper.splitlines())


@pytest.mark.parametrize(("light", "names"), [
    (False, ["zk", "nn", "nn2", "dn", "rm", "rm2", "nm"]), (True, ["zk", "rm", "rm2", "nm"])])
def test_both_of_a_pair_are_told_which_one_they_are(light, names):
    settings = make_settings(ha=True, light=light)
    listed = {daemon.name: daemon.arguments for daemon in daemons.list_daemons(settings)}
    assert list(listed) == names
    assert listed["rm2"] == ("-Dyarn.resourcemanager.ha.id=rm2",)
    if not light:
        assert listed["nn2"] == ("-Ddfs.ha.namenode.id=nn2",)
    alone = {daemon.name: daemon.arguments for daemon in daemons.list_daemons(make_settings())}
    assert alone["rm"] == alone["nn"] == ()


def test_each_resourcemanager_of_a_pair_reads_which_one_it_is():
    """Also the proxy for applications' pages, which does not see the arguments of the command line."""
    settings = make_settings(ha=True)
    for name in ("rm", "rm2"):
        text = configuration.build_configuration(settings)[f"{name}/yarn-site.xml"]
        assert read_xml(text)["yarn.resourcemanager.ha.id"] == name
        assert f'href="{settings.configuration}/yarn-site.xml"' in text
        daemon = next(one for one in daemons.list_daemons(settings) if one.name == name)
        words = daemons.build_command(settings, daemon)
        assert f":{settings.configuration}/{name}:{settings.configuration}:" in words[words.index("-cp") + 1]


@pytest.mark.parametrize("ha", [False, True])
@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_every_address_is_a_port_of_its_own_on_this_machine(nodes, light, ha):
    settings = make_settings(nodes=nodes, light=light, ha=ha)
    sites = [read_xml(text) for name, text in configuration.build_configuration(settings).items() if ".xml" in name and "/" not in name]
    sites += [configuration.build_node_properties(settings, name) for name in configuration.node_names(nodes)]
    addresses = [value for site in sites for name, value in site.items() if re.search(r"address(\.minicluster)?(\.\w+2?)?$", name)]
    assert sorted(addresses) == sorted(f"127.0.0.1:{port}" for port in settings.ports.values())


def test_two_nodes_share_no_folder():
    settings = make_settings(nodes=2)
    first, second = (configuration.build_node_properties(settings, name) for name in ("nm", "nm2"))
    assert not set(first.values()) & set(second.values())
    assert read_site("yarn-site.xml", nodes=2)["yarn.scheduler.include-port-in-node-name"] == "true"


def test_labels_are_on_only_where_a_node_has_one():
    assert not any("label" in name for file in ("yarn-site.xml", "capacity-scheduler.xml") for name in read_site(file))
    labels = {"nm": "cpu", "nm2": "gpu"}
    assert read_site("yarn-site.xml", nodes=2, labels=labels)["yarn.node-labels.enabled"] == "true"
    scheduler = read_site("capacity-scheduler.xml", nodes=2, labels=labels)
    prefix = "yarn.scheduler.capacity.root"
    for label in ("cpu", "gpu"):
        for queue in ("", ".default"):
            assert scheduler[f"{prefix}{queue}.accessible-node-labels.{label}.capacity"] == "100"
    assert scheduler[f"{prefix}.low.accessible-node-labels"] == " "


def test_labels_are_read_and_checked_all_at_once():
    assert labels.read_labels(["nm2=gpu", "nm = cpu"]) == {"nm2": "gpu", "nm": "cpu"}
    with pytest.raises(MiniClusterError, match="NODE=LABEL, such as nm2=gpu, not as 'gpu', 'nm2'"):
        labels.read_labels(["gpu", "nm=x", "nm2"])
    with pytest.raises(MiniClusterError, match="a node has at most one label in YARN; given: nm=a, nm=b"):
        labels.read_labels(["nm=a", "nm=b"])
    labels.check_labels({"nm": "a-B_9"}, 1)
    with pytest.raises(MiniClusterError, match="no node 'nm3', only nm, nm2; '-x' cannot be a node label"):
        labels.check_labels({"nm3": "gpu", "nm2": "-x"}, 2)


def test_values_survive_xml():
    values = {"a": "<b> & \"c\" 'd'", "ü": "ß\n"}
    assert read_xml(configuration.render_xml(values)) == values


# ---------------------------------------------------------------- daemons


def test_command_lines():
    settings = make_settings(nodes=2)
    commands = {d.name: daemons.build_command(settings, d) for d in daemons.list_daemons(settings)}
    assert list(commands) == ["nn", "dn", "rm", "nm", "nm2"]
    heaps = {name: next(flag for flag in command if flag.startswith("-Xmx")) for name, command in commands.items()}
    assert heaps == {"nn": "-Xmx256m", "dn": "-Xmx192m", "rm": "-Xmx384m", "nm": "-Xmx384m", "nm2": "-Xmx384m"}
    for name, command in commands.items():
        assert command[0] == "/opt/jdk/bin/java"
        assert {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dproc_{name}"} <= set(command)
        assert "-Dytf.minicluster=/clusters/one" in command
        assert (daemons.OPENS in command) == (name in ("rm", "nm", "nm2"))


@pytest.mark.parametrize(("version", "java", "opened"), [
    ("3.4.3", 17, {"rm", "nm"}), ("3.5.0", 17, {"rm", "nm"}), ("3.3.6", 8, set()), ("3.1.4", 8, set()),
    ("3.1.4", 17, {"nn", "dn", "rm", "nm"}), ("2.10.2", 11, {"nn", "dn", "rm", "nm"}),
])
def test_access_to_javas_classes_is_opened_where_it_is_needed_and_known(tmp_path, version, java, opened):
    settings = make_settings(version=version, java=java)
    commands = {d.name: daemons.build_command(settings, d) for d in daemons.list_daemons(settings)}
    assert {name for name, command in commands.items() if daemons.OPENS in command} == opened
    shims = build_shims(tmp_path, tmp_path, tmp_path, daemons.open_java(java))
    assert all((daemons.OPENS in text) == (java > 8) for text in shims.values())


def test_daemons_do_not_see_another_hadoop():
    callers = {
        "PATH": "/usr/bin", "TZ": "UTC", "HADOOP_USER_NAME": "eve", "HADOOP_CONF_DIR": "/etc/hadoop", "CLASSPATH": "x",
        "YARN_CONF_DIR": "/etc", "JAVA_TOOL_OPTIONS": "-Xint", "JDK_JAVA_OPTIONS": "-Xint",
    }  # fmt: skip
    seen = daemons.build_environment(make_settings(), callers, {"HADOOP_CONF_DIR": "/clusters/one/conf"})
    assert seen == {
        "PATH": "/usr/bin", "TZ": "UTC", "LANG": "C.UTF-8", "HADOOP_CONF_DIR": "/clusters/one/conf",
        "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "JAVA_TOOL_OPTIONS": " ".join(daemons.QUICK_TLS),
    }  # fmt: skip
    assert "JDK_JAVA_OPTIONS" not in daemons.build_environment(make_settings(stock=True), callers, {})


def test_log_tail_is_short_and_names_the_file(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rm.log").write_bytes(b"\xff\n" * 20000 + b"the cause\n")
    tail = daemons.log_tail(tmp_path, "rm")
    assert f"{tmp_path}/logs/rm.log" in tail
    assert tail.endswith("  the cause")
    assert len(tail.splitlines()) == 13


# ---------------------------------------------------------------- processes


@pytest.fixture
def spawn():
    started = []

    def start(code, *arguments, **options):
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, **options)
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_only_processes_with_both_marks_are_ours(tmp_path, spawn):
    ours = spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}2")
    spawn(SLEEP, "-Dproc_nm")
    assert daemons.find(tmp_path, "nm") == ours.pid
    assert daemons.find(tmp_path, "rm") is None
    assert daemons.find_all(tmp_path) == (ours.pid,)


@pytest.mark.parametrize("order", [sorted, lambda pids: sorted(pids, reverse=True)], ids=["older first", "wrapped pids"])
def test_what_a_daemon_forks_is_not_the_daemon(tmp_path, spawn, monkeypatch, order):
    """Seen: after pids had begun anew, SIGKILL for the NodeManager hit the child that it had just forked."""
    forking = f"import os; os.fork(); {SLEEP}"
    ours = spawn(forking, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}", start_new_session=True)
    real = processes.find_by_arguments
    until(lambda: len(real(daemons._marks(tmp_path, "nm"))) == 2)
    monkeypatch.setattr(processes, "find_by_arguments", lambda marks: tuple(order(real(marks))))
    try:
        assert daemons.find(tmp_path, "nm") == ours.pid
        ours.kill()
        ours.wait()
        assert daemons.find(tmp_path, "nm") not in (None, ours.pid), "what is left of it holds its ports and files"
    finally:
        os.killpg(ours.pid, signal.SIGKILL)
    until(lambda: daemons.find(tmp_path, "nm") is None)


def test_a_zombie_does_not_count(tmp_path, spawn):
    ours = spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    ours.kill()
    assert processes.wait_until(lambda: daemons.find(tmp_path, "nm") is None, 10)
    assert ours.returncode is None


@pytest.mark.slow
def test_stop_ends_the_stubborn_and_the_stopped_and_nobody_else(tmp_path, spawn):
    marks = ("-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    stubborn, stopped, stranger = spawn(STUBBORN, *marks), spawn(SLEEP, *marks), spawn(SLEEP)
    stopped.send_signal(signal.SIGSTOP)
    daemons.stop(tmp_path, [stubborn.pid, stopped.pid, stranger.pid], 0.5)
    assert stubborn.wait(60) == -signal.SIGKILL
    assert stopped.wait(60) == -signal.SIGTERM
    assert stranger.poll() is None


def test_what_runs_in_containers_is_ended_with_its_group(tmp_path, spawn):
    local = {"LOCAL_DIRS": f"{tmp_path}/nm/local/usercache/ada/appcache/application_1_1"}
    task = spawn(STUBBORN, env={**os.environ, **local}, start_new_session=True)
    stranger = spawn(SLEEP, env={**os.environ, "LOCAL_DIRS": f"{tmp_path}2/nm"}, start_new_session=True)
    daemons.end_containers(tmp_path)
    assert task.wait(60) == -signal.SIGKILL
    assert stranger.poll() is None


# ---------------------------------------------------------------- ports


def test_ports_are_free_distinct_and_not_the_kernels_to_give_away():
    chosen = ports.choose_ports(configuration.port_names(8, False))
    assert len(set(chosen.values())) == len(chosen)
    assert all(10000 <= port < 20000 and ports.is_free(port) for port in chosen.values())


def test_a_listener_takes_its_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert ports.taken_ports({"rm": port}) == {"rm": port}


# ---------------------------------------------------------------- shims


@pytest.fixture
def shims(tmp_path):
    """A folder of shims whose Java prints its arguments, one a line."""
    (tmp_path / "jars").mkdir()
    for name in ("b.jar", "a.jar"):
        (tmp_path / "jars" / name).touch()
    write_script(tmp_path / "jdk" / "bin" / "java", 'for argument in "$@"; do echo "$argument"; done\n')
    for name, text in build_shims(tmp_path / "cluster", tmp_path / "jars", tmp_path / "jdk").items():
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
    assert lines[lines.index("-cp") + 1 :] == [f"{shims}/cluster/conf:{shims}/jars/*", *expected]


def test_shims_obey_the_environment(shims):
    write_script(shims / "other" / "bin" / "java", 'echo other "$HADOOP_CONF_DIR" "$@"\n')
    environ = {"JAVA_HOME": f"{shims}/other", "HADOOP_CONF_DIR": "/site", "HADOOP_CLIENT_OPTS": "-Da=1 -Db=2"}
    said = run_shim(shims, "yarn", "node", **environ).stdout
    assert said.startswith("other /site -Xmx256m ")
    assert f" -Da=1 -Db=2 -cp /site:{shims}/jars/* " in said


def test_unknown_commands_are_told_what_is_known(shims):
    ran = run_shim(shims, "hdfs", "balancer")
    assert ran.returncode == 2
    assert ran.stderr == (
        "hdfs: unknown command 'balancer'; this minicluster knows: classpath dfs haadmin dfsadmin fsck getconf version\n"
    )


# ---------------------------------------------------------------- Java


@pytest.mark.parametrize(("text", "feature"), [("17.0.15", 17), ("1.8.0_392", 8), ("24-ea", 24), ("21", 21), ("?", 0)])
def test_feature_release(text, feature):
    assert parse_feature_release(text) == feature


@pytest.mark.parametrize("version", ["11.0.2", "17.0.15", "21", "23.0.1"])
def test_java_on_path(tmp_path, version):
    found = find_java({"PATH": f"{write_java(tmp_path / 'jdk', version)}:/usr/bin:/bin"})
    assert (found.home, found.version) == (tmp_path / "jdk", int(version.partition(".")[0]))


def test_java_home_wins_and_the_jvm_knows_its_home(tmp_path):
    write_java(tmp_path / "wrapper", "17", home="/opt/real")
    path = write_java(tmp_path / "old", "1.8.0_392")
    assert find_java({"PATH": f"{path}:/bin", "JAVA_HOME": f"{tmp_path}/wrapper"}).home == Path("/opt/real")


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("1.8.0_392", "Java 1.8.0_392 at {java} is too old, Hadoop 3.4.3 needs 11: "),
        ("10.0.2", "Java 10.0.2 at {java} is too old, Hadoop 3.4.3 needs 11: "),
        ("24", "Java 24 at {java} is too new, Hadoop fails from 24 on: "),
        ("26-ea", "Java 26-ea at {java} is too new, Hadoop fails from 24 on: "),
    ],
)
def test_wrong_java_is_said_in_one_line(tmp_path, version, fault):
    path = write_java(tmp_path / "jdk", version)
    with pytest.raises(MiniClusterError) as caught:
        find_java({"PATH": f"{path}:/bin"})
    assert str(caught.value) == fault.format(java=path / "java") + (
        "install JDK 11, 17 or 21 (apt-get install openjdk-17-jdk-headless) or point JAVA_HOME at one"
    )


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"PATH": "/nonexistent"}, "Java is missing: install JDK 11"),
        ({}, "Java is missing: install JDK 11"),
        ({"PATH": "/bin", "JAVA_HOME": "/nonexistent"}, "JAVA_HOME=/nonexistent has no bin/java: install JDK 11"),
    ],
)
def test_missing_java_is_said_in_one_line(environ, fault):
    with pytest.raises(MiniClusterError) as caught:
        find_java(environ)
    assert str(caught.value).startswith(fault)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "fault"), [("exit 1\n", "does not print its version (exit 1)"), ("echo hello\n", "(exit 0)")]
)
def test_a_program_that_is_no_java(tmp_path, script, fault):
    write_script(tmp_path / "java", script)
    with pytest.raises(MiniClusterError, match="does not print its version") as caught:
        find_java({"PATH": f"{tmp_path}:/bin"})
    assert fault in str(caught.value)


# ---------------------------------------------------------------- artefacts


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with Java 17 and a Maven that makes one jar and counts its calls."""
    write_java(tmp_path / "jdk", "17")
    write_script(
        tmp_path / "bin" / "mvn",
        f"echo call >> {tmp_path}/calls\n"
        'for a in "$@"; do case "$a" in -DoutputDirectory=*) out="${a#*=}" ;; esac; done\n'
        'mkdir -p "$out" && touch "$out/hadoop-common-3.4.3.jar"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", f"{tmp_path}/jdk")
    monkeypatch.setenv("YTF_CACHE", f"{tmp_path}/cache")
    monkeypatch.delenv("YTF_MINICLUSTER_DIR", raising=False)
    return tmp_path


def fetch():
    return artefacts.fetch_hadoop(os.environ, find_java(os.environ), lambda line: None)


def test_hadoop_is_fetched_once_and_appears_as_a_whole(machine):
    (machine / "cache" / ".hadoop-3.4.3-interrupted" / "jars").mkdir(parents=True)
    assert fetch() == fetch() == machine / "cache" / "hadoop-3.4.3"
    assert (machine / "calls").read_text() == "call\n"
    assert [path.name for path in (machine / "cache" / "hadoop-3.4.3" / "jars").iterdir()] == [
        "hadoop-common-3.4.3.jar"
    ]
    assert sorted(path.name for path in (machine / "cache").iterdir()) == [".hadoop-3.4.3-interrupted", "hadoop-3.4.3"]


def test_each_version_has_a_folder_of_its_own(machine):
    maven = machine / "bin" / "mvn"
    maven.write_text(maven.read_text() + f'echo "$@" > {machine}/words\n')
    said = []
    version = versions.find_version("3.1.4")
    folder = artefacts.fetch_hadoop(os.environ, find_java(os.environ), said.append, version)
    assert folder == machine / "cache" / "hadoop-3.1.4"
    assert said == [f"fetching Hadoop 3.1.4 (once, 65 MB) into {folder}"]
    assert "-Dhadoop.version=3.1.4 " in (machine / "words").read_text()


def test_losing_the_race_to_fetch_takes_the_winners(machine):
    maven = machine / "bin" / "mvn"
    maven.write_text(maven.read_text() + f"mkdir -p {machine}/cache/hadoop-3.4.3/jars/of-the-winner\n")
    assert (fetch() / "jars" / "of-the-winner").is_dir()
    assert [path.name for path in (machine / "cache").iterdir()] == ["hadoop-3.4.3"]


def test_a_failing_maven_is_quoted_and_leaves_nothing(machine):
    write_script(machine / "bin" / "mvn", 'echo noise\necho "[ERROR] no network"\nexit 7\n')
    with pytest.raises(MiniClusterError) as caught:
        fetch()
    assert str(caught.value) == (
        "Maven could not fetch Hadoop (exit 7): check the network, the disk and Maven's settings.xml, then try again\n"
        "[ERROR] no network"
    )
    assert list((machine / "cache").iterdir()) == []


def test_a_missing_maven_is_said_in_one_line(machine):
    (machine / "bin" / "mvn").unlink()
    with pytest.raises(MiniClusterError) as caught:
        artefacts.fetch_hadoop({"YTF_CACHE": f"{machine}/cache"}, find_java(os.environ), lambda line: None)
    assert str(caught.value) == (
        "Maven is missing, which fetches Hadoop 3.4.3 once: install it (apt-get install maven) and try again"
    )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"YTF_CACHE": "/c"}, "/c"),
        ({"YTF_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/tf_yarn_ops"),
        ({}, str(Path.home() / ".cache" / "tf_yarn_ops")),
    ],
)
def test_cache_folder(environ, folder):
    assert str(artefacts.cache_folder(environ)) == folder


# ---------------------------------------------------------------- archives of classes


@pytest.fixture
def archiving(machine):
    """A machine whose Java makes archives, and notes how."""
    (machine / "jdk" / "lib").mkdir()
    (machine / "jdk" / "lib" / "modules").write_text("of 17")
    java = machine / "jdk" / "bin" / "java"
    java.write_text(java.read_text() + (
        'case "$1" in -Xshare:dump)\n'
        f'  [ -e {machine}/slow ] && {{ echo $$ >>{machine}/slow; exec sleep 600; }}\n'
        f'  echo "$@" >>{machine}/dumps; [ -e {machine}/broken ] && {{ echo "no memory"; exit 1; }}\n'
        '  for a in "$@"; do case "$a" in -XX:SharedArchiveFile=*) touch "${a#*=}" ;; esac; done; exit 0 ;;\n'
        "esac\n"))
    (machine / "hadoop" / "jars").mkdir(parents=True)
    return machine


def prepare(machine, said=None):
    progress = (lambda line: None) if said is None else said.append
    return class_archive.prepare(machine / "hadoop", find_java(os.environ), progress)


def test_archives_are_made_once_for_a_java(archiving, monkeypatch):
    said = []
    folder = prepare(archiving, said)
    assert prepare(archiving, said) == folder
    assert sorted(path.name for path in folder.iterdir()) == ["daemons.jsa", "master.jsa"]
    dumps = (archiving / "dumps").read_text().splitlines()
    hadoop = archiving / "hadoop"
    jars = f"{class_archive.own_jar(hadoop)}:{hadoop}/unsigned/*:{hadoop}/jars/*"
    assert {line.rpartition("-cp ")[2] for line in dumps} == {f"./.ytf.zip:./.skein.jar:{jars}", jars}
    assert said == ["archiving Hadoop's classes (once for this Java, half a minute, 200 MB)"]
    copy = archiving / "skein.jar"
    shutil.copyfile(class_archive._find_skein_jar(), copy)
    monkeypatch.setattr(class_archive, "_find_skein_jar", lambda: copy)
    assert prepare(archiving) == folder, "another environment has the same Skein"
    (archiving / "jdk" / "lib" / "modules").write_text("of 17.0.1")
    assert prepare(archiving) != folder


def test_jars_lose_their_signatures_and_nothing_else(archiving):
    """An archive takes no class of a signed jar."""
    jar = archiving / "hadoop" / "jars" / "bcprov.jar"
    with zipfile.ZipFile(jar, "w") as signed:
        signed.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\nName: A.class\r\nSHA-256-Digest: x\r\n")
        for name in ("META-INF/BC.SF", "META-INF/BC.DSA", "A.class", "META-INF/versions/9/A.class"):
            signed.writestr(name, name)
    prepare(archiving)
    with zipfile.ZipFile(archiving / "hadoop" / "unsigned" / "bcprov.jar") as plain:
        assert plain.namelist() == ["META-INF/MANIFEST.MF", "A.class", "META-INF/versions/9/A.class"]
        assert plain.read("META-INF/MANIFEST.MF") == b"Manifest-Version: 1.0\nMulti-Release: true\n\n"
        assert plain.read("A.class") == b"A.class"


def test_a_compiler_that_fails_leaves_all_keys_to_java(archiving):
    javac = write_script(archiving / "jdk" / "bin" / "javac", "echo no such class; exit 1\n")
    said = []
    assert prepare(archiving, said) is not None
    assert said[0] == f"Java makes all RSA keys itself ({javac} failed (exit 1): no such class)"
    assert prepare(archiving, said) is not None and len(said) == 2, "it is not tried again"
    shutil.copytree(archiving / "jdk", archiving / "other")
    other = dataclasses.replace(find_java(os.environ), home=archiving / "other")
    assert class_archive.prepare(archiving / "hadoop", other, said.append) is not None
    assert len(said) == 4, "another Java tries too"
    assert not class_archive.own_jar(archiving / "hadoop").exists()
    assert list((archiving / "hadoop").glob(".*")) == []


def test_archives_that_a_java_without_a_compiler_made_are_not_those_of_a_jdk(archiving):
    """The second one makes the jar of our classes, which changes the class path."""
    without = prepare(archiving)
    write_script(archiving / "jdk" / "bin" / "javac", 'while [ "$1" != -d ]; do shift; done; mkdir -p "$2"; touch "$2/Keys.class"\n')
    with_jar = prepare(archiving)
    assert class_archive.own_jar(archiving / "hadoop").is_file()
    assert with_jar != without and prepare(archiving) == with_jar


def test_what_a_killed_first_start_left_is_removed(archiving):
    abandoned = archiving / "hadoop" / ".classes-of-a-killed-start"
    abandoned.mkdir()
    (abandoned / "daemons.jsa").touch()
    assert prepare(archiving) is not None
    assert not abandoned.exists()


def test_two_first_starts_at_once_make_the_archives_once(archiving):
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: prepare(archiving), range(4)))) == 1
    assert len((archiving / "dumps").read_text().splitlines()) == 2


def test_an_interrupted_first_start_leaves_neither_java_nor_folder(archiving, monkeypatch):
    slow = archiving / "slow"
    slow.touch()

    def interrupted(dump):
        until(lambda: len(slow.read_text().split()) == 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(class_archive, "_ended_well", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(archiving)
    assert [pid for pid in slow.read_text().split() if Path("/proc", pid).exists()] == []
    assert list((archiving / "hadoop").glob("*classes-*")) == []


def test_a_java_that_makes_no_archives_is_asked_once_and_its_reason_kept(archiving):
    (archiving / "broken").touch()
    assert prepare(archiving) is prepare(archiving) is None
    assert len((archiving / "dumps").read_text().splitlines()) == 2
    log, = (archiving / "hadoop").glob("classes-*/daemons.log")
    assert log.read_text().endswith("no memory\n")


def test_a_cache_that_cannot_be_written_has_no_archives(archiving):
    (archiving / "hadoop" / "classes.lock").mkdir()
    said = []
    assert prepare(archiving, said) is None
    assert said[0].startswith("Hadoop starts without an archive of its classes ([Errno 21] Is a directory")


def test_only_a_cluster_with_archives_names_them():
    with_archives = make_settings(classes=Path("/cache/hadoop/classes-1"))
    flag = "-XX:SharedArchiveFile=/cache/hadoop/classes-1/daemons.jsa"
    for settings, expected in ((make_settings(), False), (with_archives, True)):
        commands = [daemons.build_command(settings, daemon) for daemon in daemons.list_daemons(settings)]
        assert [flag in command for command in commands] == [expected] * 4
        # Java takes an archive only for a class path that begins as when it was made.
        jars = ":".join(class_archive.class_path(settings.hadoop, settings.classes)) + ":"
        assert all(command[command.index("-cp") + 1].startswith(jars) for command in commands)
    assert daemons.build_environment(with_archives, {}, {})["JAVA_TOOL_OPTIONS"] == (
        " ".join([*class_archive._IN_PLACE, "-XX:SharedArchiveFile=/cache/hadoop/classes-1/master.jsa", "-Xlog:cds*=off", *daemons.QUICK_TLS]))
    old = dataclasses.replace(make_settings(), java=8)  # has no modules
    assert "JAVA_TOOL_OPTIONS" not in daemons.build_environment(old, {}, {})
    stock = make_settings(stock=True, classes=Path("/cache/hadoop/classes-1"))
    assert "JAVA_TOOL_OPTIONS" not in daemons.build_environment(stock, {}, {})


# ---------------------------------------------------------------- YARN's local file system


LOCAL_FILES = set(additions.LOCAL_FILES.items())


def compile_local_files(tmp_path, said):
    return additions.prepare_local_files(tmp_path, Java(tmp_path / "jdk", 17), said.append)


def class_paths(settings):
    commands = {daemon.name: daemons.build_command(settings, daemon) for daemon in daemons.list_daemons(settings)}
    return {name: command[command.index("-cp") + 1].split(":") for name, command in commands.items()}


def test_the_local_file_system_is_compiled_once(tmp_path):
    write_script(tmp_path / "jdk" / "bin" / "javac", f'echo "$@" >>{tmp_path}/runs\n')
    said = []
    folder = compile_local_files(tmp_path, said)
    assert folder.is_dir()
    assert compile_local_files(tmp_path, said) == folder
    assert len((tmp_path / "runs").read_text().splitlines()) == 1
    assert (said, list(tmp_path.glob(".local-files-*"))) == ([], [])


def test_without_a_compiler_hadoop_keeps_its_own(tmp_path):
    said = []
    assert compile_local_files(tmp_path, said) is None
    assert said == []


def test_a_compiler_that_fails_is_told_and_leaves_hadoops_own(tmp_path):
    javac = write_script(tmp_path / "jdk" / "bin" / "javac", "echo no such class; exit 1\n")
    said = []
    assert compile_local_files(tmp_path, said) is None
    assert said == [f"YARN's daemons use Hadoop's own local file system ({javac} failed (exit 1): no such class)"]
    assert list(tmp_path.glob("*local-files-*")) == []


def test_only_yarns_daemons_know_their_local_file_system():
    """Containers and clients read the cluster's configuration without the class."""
    settings = make_settings(local_files=Path("/cache/hadoop/local-files-1"))
    files = configuration.build_configuration(settings)
    assert {name for name, text in files.items() if ".xml" in name and set(read_xml(text).items()) >= LOCAL_FILES} == {"yarn/core-site.xml"}
    assert read_xml(files["yarn/core-site.xml"]).items() - LOCAL_FILES == read_xml(files["core-site.xml"]).items()
    for name, paths in class_paths(settings).items():
        assert ("/cache/hadoop/local-files-1" in paths) == (name in ("rm", "nm")), name
        assert (paths[-3:-1] == ["/clusters/one/conf/yarn", "/clusters/one/conf"]) == (name in ("rm", "nm")), name


def test_a_property_of_the_user_wins_over_yarns_local_file_system():
    settings = make_settings(local_files=Path("/cache/hadoop/local-files-1"), properties={"fs.file.impl": "mine"})
    assert read_xml(configuration.build_configuration(settings)["yarn/core-site.xml"])["fs.file.impl"] == "mine"


@pytest.mark.parametrize("others", [{}, {"stock": True, "local_files": Path("/cache/hadoop/local-files-1")}])
def test_a_stock_cluster_has_hadoops_own(others):
    settings = make_settings(**others)
    assert not any(name.startswith("yarn/") for name in configuration.build_configuration(settings))
    assert not any("local-files" in path for paths in class_paths(settings).values() for path in paths)


# ---------------------------------------------------------------- a cluster's folder


def install(directory, **options):
    options = {"nodes": 1, "light": False, "stock": False} | options
    return installation.install(directory, **options, environ=os.environ, progress=lambda line: None)


def test_a_folder_is_laid_out_and_remembered(machine):
    (machine / "one").mkdir()
    settings = install(machine / "one", light=True)
    assert state.load(machine / "one") == settings
    assert os.access(machine / "one" / "bin" / "yarn", os.X_OK)
    shared = machine / "one" / "files" / "tmp" / "logs"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_folder_keeps_its_version_of_hadoop(machine):
    (machine / "one").mkdir()
    assert install(machine / "one", version="3.3.6").hadoop == machine / "cache" / "hadoop-3.3.6"
    assert install(machine / "one").version == "3.3.6"
    with pytest.raises(MiniClusterError, match=r"one has data of Hadoop 3\.3\.6, which 3\.4\.3 may not read: use another"):
        install(machine / "one", version="3.4.3")


def test_an_unknown_version_of_hadoop_names_those_that_work():
    known = "2.10.2, 3.1.4, 3.2.4, 3.3.6, 3.4.3, 3.5.0"
    with pytest.raises(MiniClusterError, match=f"^Hadoop 3.3.5 is not known to work; use one of {known}$"):
        MiniCluster(version="3.3.5")
    ran = CliRunner().invoke(minicluster, ["up", "--hadoop", "3.3.5"])
    assert (ran.exit_code, "'3.3.5' is not one of '2.10.2'" in ran.stderr) == (2, True)


def test_a_version_of_hadoop_needs_its_java(machine):
    write_java(machine / "jdk", "11.0.2")
    with pytest.raises(MiniClusterError, match=r"is too old, Hadoop 3\.5\.0 needs 17"):
        find_java(os.environ, versions.find_version("3.5.0"))
    write_java(machine / "jdk", "1.8.0_392")
    assert find_java(os.environ, versions.find_version("3.1.4")).version == 8


def test_free_ports_are_kept_and_taken_ones_replaced(machine):
    (machine / "one").mkdir()
    first = install(machine / "one", light=True)
    assert install(machine / "one", light=True).ports == first.ports
    with socket.create_server(("127.0.0.1", first.ports["rm-web"])):
        assert install(machine / "one", light=True).ports["rm-web"] != first.ports["rm-web"]


def test_logs_of_the_last_run_stay_beside_the_new_ones(machine):
    (machine / "one" / "logs").mkdir(parents=True)
    (machine / "one" / "logs" / "rm.log").write_text("old")
    install(machine / "one")
    assert (machine / "one" / "logs" / "rm.log.1").read_text() == "old"
    assert not (machine / "one" / "logs" / "rm.log").exists()


@pytest.mark.parametrize("name", ["with blank", "with,comma", "with:colon", "with$dollar", "with'quote", "with\nline"])
def test_paths_that_hadoop_misreads_are_refused(machine, name):
    (machine / name).mkdir()
    with pytest.raises(MiniClusterError, match=r"Hadoop cannot work in .*: use a path of letters, digits and"):
        install(machine / name)


def test_a_full_disk_is_refused_before_anything_starts(machine, monkeypatch):
    usage = namedtuple("usage", "total used free")(100 * 2**30, 100 * 2**30 - 2**29, 2**29)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(MiniClusterError) as caught:
        MiniCluster(machine / "one").up()
    assert str(caught.value) == (
        f"the disk of {machine}/one is full (512 MiB of 102400 MiB are free, Hadoop needs 1 % and 256 MiB):"
        " free some, or use another folder (--dir)"
    )


def test_a_folder_that_cannot_be_made_is_said(machine):
    (machine / "file").touch()
    with pytest.raises(MiniClusterError, match=r"the cluster in .*/file/one could not be started: .*Not a directory"):
        MiniCluster(machine / "file" / "one").up()


def test_a_foreign_state_file_is_refused(tmp_path):
    (tmp_path / "state.json").write_text('{"schema": 99}')
    with pytest.raises(MiniClusterError, match=r"state\.json is not readable .*: remove .* and start again"):
        MiniCluster(tmp_path).up()


# ---------------------------------------------------------------- the cluster, with a Java that dies


@pytest.fixture
def dying(machine):
    """A machine whose Java tells its version, and runs no daemon."""
    java = machine / "jdk" / "bin" / "java"
    java.write_text(java.read_text() + 'case "$1" in -Xmx*) echo "Exception: no luck"; exit 3 ;; esac\n')
    return machine


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


def test_where_nothing_was_started(machine):
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


def test_the_default_folder_can_be_named(machine, monkeypatch):
    monkeypatch.setenv("YTF_MINICLUSTER_DIR", str(machine / "mine"))
    assert MiniCluster().directory == machine / "mine"


def test_env_is_what_a_shell_can_eval(machine):
    (machine / "one").mkdir()
    settings = install(machine / "one")
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


def test_unknown_daemons_are_told_what_is_known(machine):
    (machine / "one").mkdir()
    install(machine / "one", light=True)
    with pytest.raises(MiniClusterError, match="has no daemon 'nn', only rm, nm"):
        MiniCluster(machine / "one").stop_daemon("nn")
    with pytest.raises(MiniClusterError, match=r"nm of .* does not run"):
        MiniCluster(machine / "one").stop_daemon("nm")


def test_only_a_pair_fails_over(machine):
    (machine / "one").mkdir()
    install(machine / "one", light=True)
    with pytest.raises(MiniClusterError, match=r"one runs one rm: start one with `up --ha`"):
        MiniCluster(machine / "one").failover("rm")
    with pytest.raises(MiniClusterError, match="'dn' is no kind of daemon that can fail over, only rm, nn"):
        MiniCluster(machine / "one").failover("dn")
    with pytest.raises(MiniClusterError, match="one has data of a cluster without high availability: use another"):
        install(machine / "one", light=True, ha=True)
    (machine / "two").mkdir()
    install(machine / "two", light=True, ha=True)
    assert install(machine / "two", light=True).ha
    with pytest.raises(MiniClusterError, match=r"none of rm, rm2 is active"):
        MiniCluster(machine / "two").failover("rm")


def test_both_resourcemanagers_are_in_the_environment(machine):
    (machine / "one").mkdir()
    ports = install(machine / "one", ha=True).ports
    urls = tuple(f"http://127.0.0.1:{ports[name]}" for name in ("rm-web", "rm2-web"))
    assert MiniCluster(machine / "one").resourcemanager_urls == urls
    assert MiniCluster(machine / "one").environ["YTF_RESOURCEMANAGER"] == ",".join(urls)
    described = json.loads(CliRunner().invoke(minicluster, ["status", "--json", "--dir", str(machine / "one")]).stdout)
    assert described["resourcemanager_urls"] == list(urls)
    assert described["active"] == {"rm": None, "nn": None}


def test_the_package_is_cheap_to_import():
    script = "import sys, tf_yarn_ops.minicluster; print('tf_yarn_ops.minicluster.cluster' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"

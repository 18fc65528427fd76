"""The Hadoop of the tests: what it adds to the minicluster, without Java and on real daemons."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from support.hadoop import HadoopCluster, additions, class_archive, labels, throwaway_keys
from support.hadoop.commands import hadoop
from support.hadoop.kerberos import REALM
from support.hadoop.settings import HadoopSettings
from support.machines import make_machine, make_settings, read_sites, write_script
from support.programs import SUBMIT, YTF, run_here
from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import daemons
from tf_yarn_ops.minicluster.java import find_java


def settings_of(**options):
    return make_settings(kind=HadoopSettings, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"ha": True}, {"ha": True, "light": True}, {"kerberos": True, "https": True, "ha": True}, {"https": True}],
)
def test_every_address_is_a_port_of_its_own(options):
    settings = settings_of(**options)
    files = {name: site for name, site in read_sites(settings).items() if "/" not in name}
    sites = [*files.values(), settings.build_node_properties("nm")]
    addresses = {
        name: value
        for site in sites
        for name, value in site.items()
        if re.search(r"address(\.minicluster)?(\.\w+2?)?$", name)
    }
    ports = {port for name, port in settings.ports.items() if name != "kdc"}
    assert {address.partition(":")[0] for address in addresses.values()} <= {settings.host, "127.0.0.1"}
    assert {int(address.rpartition(":")[2]) for address in addresses.values()} == ports
    pages = [name for name in addresses if ".webapp." in name or re.search("https?[.-]", name)]
    assert pages and all(("https" in name) == settings.https for name in pages)


def test_pair_has_one_store_and_each_daemon_knows_its_name():
    settings = settings_of(ha=True)
    sites = read_sites(settings)
    assert sites["yarn-site.xml"]["yarn.resourcemanager.ha.rm-ids"] == "rm,rm2"
    assert sites["yarn-site.xml"]["yarn.resourcemanager.store.class"].endswith(".ZKRMStateStore")
    assert sites["core-site.xml"]["fs.defaultFS"] == settings.default_filesystem == "hdfs://minicluster"
    arguments = {daemon.name: daemon.arguments for daemon in settings.list_daemons()}
    assert list(arguments) == ["zk", "nn", "nn2", "dn", "rm", "rm2", "nm"]
    assert arguments["rm2"] == ("-Dyarn.resourcemanager.ha.id=rm2",) and arguments["nn2"] == (
        "-Ddfs.ha.namenode.id=nn2",
    )
    for daemon in settings.list_daemons()[4:6]:  # the proxy for applications' pages does not see the arguments
        assert sites[f"{daemon.name}/yarn-site.xml"]["yarn.resourcemanager.ha.id"] == daemon.name
        words = daemons.build_command(settings, daemon)
        assert f":{settings.configuration}/{daemon.name}:{settings.configuration}:" in words[words.index("-cp") + 1]


def test_kerberos_changes_only_what_needs_it():
    plain, secured = settings_of(), settings_of(kerberos=True, additions=Path("/cache/secured"))
    assert read_sites(secured)["yarn-site.xml"]["yarn.resourcemanager.principal"] == f"yarn/_HOST@{REALM}"
    assert [daemon.name for daemon in secured.list_daemons()] == ["kdc", "nn", "dn", "rm", "nm"]
    flag = "-Djava.security.krb5.conf=/clusters/one/kerberos/krb5.conf"
    for daemon in secured.list_daemons()[1:]:
        command = daemons.build_command(secured, daemon)
        assert flag in command
        assert command[command.index("-cp") + 1].startswith("/cache/secured/classes:") == (daemon.name == "nm"), (
            daemon.name
        )
    assert not any("krb5" in word for daemon in plain.list_daemons() for word in daemons.build_command(plain, daemon))
    seen = daemons.build_environment(
        secured, {"KRB5CCNAME": "FILE:/tmp/mine", "KRB5_CLIENT_KTNAME": "/tmp/keys", "PATH": "/bin"}
    )
    assert flag in seen["JAVA_TOOL_OPTIONS"].split() and "krb5" not in seen["JDK_JAVA_OPTIONS"]
    assert not any(name.startswith("KRB5") for name in seen)
    assert secured.client_variables["KRB5_CONFIG"] == "/clusters/one/kerberos/krb5.conf"


def test_labels_are_read_and_checked_all_at_once():
    assert labels.read_labels(["nm2=gpu", "nm = cpu"]) == {"nm2": "gpu", "nm": "cpu"}
    with pytest.raises(MiniClusterError, match="NODE=LABEL, such as nm2=gpu, not as 'gpu', 'nm2'"):
        labels.read_labels(["gpu", "nm=x", "nm2"])
    with pytest.raises(MiniClusterError, match="no node 'nm3', only nm, nm2; '-x' cannot be a node label"):
        labels.check_labels({"nm3": "gpu", "nm2": "-x"}, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kerberos", "--light"], "leave out --light or --kerberos"),
        (["--ticket_lifetime", "60"], "needs a cluster with Kerberos (--kerberos)"),
        (["--set", "a.b", "--set", "=c"], "a property is written as NAME=VALUE, not as 'a.b', ''"),
        (["--label", "nm2=gpu"], "there is no node 'nm2', only nm"),
        (["--hosts", "3", "--kerberos", "--label", "nm1=gpu"], "leave out --label\n"),
    ],
)
def test_options_that_exclude_each_other_are_rejected(tmp_path, words, message):
    ran = CliRunner().invoke(hadoop, ["up", "--dir", str(tmp_path / "one"), *words])
    assert (ran.exit_code, message in ran.output) == (1, True), ran.output
    assert not (tmp_path / "one" / "state.json").exists()


def test_command_on_a_host_takes_the_folder_first(tmp_path):
    ran = CliRunner().invoke(hadoop, ["on", "--dir", str(tmp_path), "edge", "ls", "--dir", "x"])
    assert f"there is no cluster in {tmp_path}:" in ran.output, ran.output


def test_folder_keeps_its_version(machine):
    (machine / "one").mkdir()
    older = HadoopCluster(machine / "one", version="3.3.6")._install()
    assert older.hadoop == machine / "cache" / "hadoop-3.3.6"
    assert HadoopCluster(machine / "one")._install().version == "3.3.6"
    with pytest.raises(
        MiniClusterError, match=r"one has data of Hadoop 3\.3\.6 without high availability: use another folder"
    ):
        HadoopCluster(machine / "one", version="3.4.3")._install()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with Java 17 and a Maven that makes one jar and counts its calls."""
    return make_machine(tmp_path, monkeypatch)


@pytest.fixture
def archiving(machine):
    """A machine whose Java makes archives, and notes how."""
    (machine / "jdk" / "lib").mkdir()
    (machine / "jdk" / "lib" / "modules").write_text("of 17")
    java = machine / "jdk" / "bin" / "java"
    java.write_text(
        java.read_text()
        + (
            'case "$1" in -Xshare:dump)\n'
            f"  [ -e {machine}/slow ] && {{ echo $$ >>{machine}/slow; exec sleep 600; }}\n"
            f'  echo "$@" >>{machine}/dumps; [ -e {machine}/broken ] && {{ echo "no memory"; exit 1; }}\n'
            '  for a in "$@"; do case "$a" in -XX:SharedArchiveFile=*) touch "${a#*=}" ;; esac; done; exit 0 ;;\n'
            "esac\n"
        )
    )
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
        signed.writestr(
            "META-INF/MANIFEST.MF",
            "Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\nName: A.class\r\nSHA-256-Digest: x\r\n",
        )
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
    other = archiving / "other"
    assert class_archive.prepare(archiving / "hadoop", other, said.append) is not None
    assert len(said) == 4, "another Java tries too"
    assert not class_archive.own_jar(archiving / "hadoop").exists()
    assert list((archiving / "hadoop").glob(".*")) == []


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


@pytest.mark.cluster
def test_yarns_daemons_use_the_local_file_system_without_processes(minicluster):
    url = minicluster.resourcemanager_url
    for name, value in additions.LOCAL_FILES.items():
        told = xml.etree.ElementTree.fromstring(httpx.get(f"{url}/conf", params={"name": name, "format": "xml"}).text)
        assert told.findtext("property/value") == value
    folders = {
        name: (minicluster.directory / "nm" / "local" / name).stat().st_mode & 0o7777
        for name in ("nmPrivate", "usercache", "filecache")
    }
    assert folders == {"nmPrivate": 0o700, "usercache": 0o755, "filecache": 0o755}


@pytest.mark.cluster
def test_local_file_system_answers_as_hadoops_own(minicluster, tmp_path):
    settings = minicluster.settings
    (tmp_path / "folder").mkdir(mode=0o710)
    (tmp_path / "file").write_text("content")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")

    def shell(*conf):
        """Return what Hadoop's shell tells of the files, with the configuration of clients or of YARN's daemons."""
        folders = [f"{settings.hadoop}/jars/*", *map(str, conf), str(settings.configuration)]
        said = []
        for words in (["-chmod", "1750", "folder"], ["-ls", "", "file/below", "missing"]):
            words = [word if word[:1] == "-" or word == "1750" else f"file://{tmp_path}/{word}" for word in words]
            ran = subprocess.run(
                [
                    f"{settings.java_home}/bin/java",
                    "-cp",
                    os.pathsep.join(folders),
                    "org.apache.hadoop.fs.FsShell",
                    *words,
                ],
                capture_output=True,
                text=True,
                timeout=120,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            )
            said.append((ran.returncode, ran.stdout, re.findall(r"^(?:ls|chmod): .*", ran.stderr, re.M)))
        (tmp_path / "folder").chmod(0o710)
        return said

    ours = shell(settings.local_files, settings.yarn_configuration)
    assert ours == shell()
    (_, _, _), (code, listed, faults) = ours
    assert code == 1 and "drwxr-x--T" in listed and len(faults) == 2, ours


@pytest.mark.cluster
def test_daemons_take_the_keys_that_are_ready(minicluster):
    settings = minicluster.settings
    words = {name: Path(f"/proc/{minicluster.pid(name)}/cmdline").read_text().split("\0") for name in ("rm", "nm")}
    assert set(throwaway_keys.use_in_resourcemanager(settings)) <= {*words["rm"]}
    environ = Path(f"/proc/{minicluster.pid('nm')}/environ").read_text().split("\0")
    (tools,) = (item for item in environ if item.startswith("JAVA_TOOL_OPTIONS="))
    assert throwaway_keys.use_in_containers(settings)[0] in tools


def processes_of(application):
    """Return the ids of the processes whose command line names an application's directory and Skein's master."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            if application in words and "com.anaconda.skein.ApplicationMaster" in words:
                found.append(int(folder.name))
    return found


@pytest.mark.cluster
def test_daemons_and_application_masters_take_classes_from_archives(minicluster, tmp_path):
    archives = minicluster.settings.classes
    for name, pid in minicluster.status().daemons.items():
        assert f" {archives}/daemons.jsa\n" in Path(f"/proc/{pid}/maps").read_text(), name
    small = ["--submit_with", "rest", "--am_memory", "512", "-m", "256", "--environment", f"venv://{sys.prefix}"]
    ran = run_here(SUBMIT, *small, "-r", "worker:1", f"touch {tmp_path}/runs; sleep 600", env=minicluster.environ)
    assert ran.returncode == 0, ran.stderr
    application = ran.stdout.strip()
    until((tmp_path / "runs").exists, 90)
    masters = {pid: maps for pid in processes_of(application) if (maps := Path(f"/proc/{pid}/maps").read_text())}
    assert [pid for pid, maps in masters.items() if f" {archives}/master.jsa\n" in maps], masters.keys()
    assert run_here(YTF, "kill", application, env=minicluster.environ).returncode == 0

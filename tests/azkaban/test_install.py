"""``ytf azkaban``: what an administrator types, what lies in the plugin folder afterwards."""

import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace

import pytest
import yaml

from support.programs import ROOT, YTF, run_here
from tf_yarn_ops.azkaban.install import (
    HADOOP_SHELL,
    JOBTYPE_FILES,
    JOBTYPE_NAME,
    PROCESS_JOB,
    RELOAD_URL,
    render,
    write_jobtype,
)
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.properties import parse_properties
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.submit.preflight import file_faults

EXAMPLES = ROOT / "jobtypes" / "examples"
COMMAND = f"{sys.executable} -I -X utf8 -m tf_yarn_ops.azkaban"


def command_of(plugins, *words):
    return " ".join([COMMAND, *words, f"--plugin {plugins / JOBTYPE_NAME}"])


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "plugins" / "jobtypes"
    folder.mkdir(parents=True)
    (folder / "common.properties").write_text("a=b\n")
    return folder


def ytf(*words, check=0):
    done = run_here(YTF, "azkaban", *words)
    assert done.returncode == check, done.stderr
    return done


def properties(folder, file):
    return parse_properties((folder / file).read_bytes())


def test_the_shipped_plugin_is_what_install_renders():
    for file, content in render("/opt/tf-yarn-ops/bin/python").items():
        assert (ROOT / "jobtypes" / JOBTYPE_NAME / file).read_bytes() == content


@pytest.mark.slow
def test_install_twice(plugins):
    done = ytf("install-jobtype", "--dir", str(plugins))
    assert done.stdout == f"{RELOAD_URL}\n"
    assert f"jobs with type=tensorflow-yarn run {command_of(plugins)}" in done.stderr
    folder = plugins / JOBTYPE_NAME
    assert sorted(path.name for path in folder.iterdir()) == sorted(JOBTYPE_FILES), "nothing is left beside"
    assert properties(folder, "private.properties") == {"jobtype.class": PROCESS_JOB}
    assert properties(folder, "plugin.properties") == {"command": command_of(plugins)}
    assert {(folder / file).stat().st_mode & 0o777 for file in JOBTYPE_FILES} == {0o644}
    before = [(folder / file).stat().st_ino for file in JOBTYPE_FILES]
    again = ytf("install-jobtype", "--dir", str(plugins))
    assert f"{folder} is up to date" in again.stderr
    assert [(folder / file).stat().st_ino for file in JOBTYPE_FILES] == before


@pytest.mark.slow
def test_another_name_is_another_type(plugins):
    ytf("install-jobtype", "--dir", str(plugins), "--name", "TensorFlowJob")
    assert sorted(path.name for path in plugins.iterdir()) == ["TensorFlowJob", "common.properties"]


@pytest.mark.slow
def test_secure_allows_one_command(plugins):
    done = write_jobtype(plugins, secure=True, limits="/etc/tf yarn/limits.yaml")
    private, plugin = (properties(done.folder, file) for file in ("private.properties", "plugin.properties"))
    assert private["jobtype.class"] == HADOOP_SHELL
    assert plugin["command"] == command_of(plugins, "--secure", '--limits "/etc/tf yarn/limits.yaml"')
    expression = re.compile(private["command.whitelist.regex"])
    assert expression.fullmatch(plugin["command"])
    for other in (
        f"{plugin['command']} x",
        f"{plugin['command']}; rm",
        plugin["command"].replace("/", "_", 1),
        "rm",
        plugin["command"].replace(".azkaban", "xazkaban"),
    ):
        assert not expression.fullmatch(other)
    before = [(done.folder / file).read_bytes() for file in JOBTYPE_FILES]
    again = write_jobtype(plugins)
    assert [(done.folder / file).read_bytes() for file in JOBTYPE_FILES] == before, "an update keeps the restrictions"
    assert again.notes == (
        "kept --secure of the earlier installation; --no-secure ends it",
        "kept --limits /etc/tf yarn/limits.yaml of the earlier installation; --limits '' ends it",
    )
    back = write_jobtype(plugins, secure=False, limits="")
    assert "command.whitelist.regex" not in properties(back.folder, "private.properties")
    assert properties(back.folder, "plugin.properties")["command"] == command_of(plugins)
    assert back.notes == write_jobtype(plugins).notes == ()
    assert write_jobtype(plugins, secure=True, limits="/etc/a.yaml").notes == ()
    assert write_jobtype(plugins, secure=True, limits="/etc/b.yaml").notes == ()


@pytest.mark.slow
def test_what_the_site_has_added_stays(plugins):
    write_jobtype(plugins)
    with (plugins / JOBTYPE_NAME / "plugin.properties").open("a") as file:
        file.write("env.YTF_RESOURCEMANAGER=http\\://rm\\:8088\n")
    done = write_jobtype(plugins, limits="/etc/limits.yaml")
    assert properties(done.folder, "plugin.properties") == {
        "command": command_of(plugins, "--limits /etc/limits.yaml"),
        "env.YTF_RESOURCEMANAGER": "http://rm:8088",
    }
    assert done.notes == ("plugin.properties: kept env.YTF_RESOURCEMANAGER",)
    assert write_jobtype(plugins, limits="/etc/limits.yaml").written == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken", [{"private.properties": ""}, {"private.properties": "a=\\u12"}, {"plugin.properties": "x=y"}]
)
def test_a_broken_plugin_of_ours_is_repaired(plugins, broken):
    (plugins / JOBTYPE_NAME).mkdir()
    for file, text in broken.items():
        (plugins / JOBTYPE_NAME / file).write_text(text)
    done = write_jobtype(plugins)
    assert properties(done.folder, "private.properties")["jobtype.class"] == PROCESS_JOB
    assert properties(done.folder, "plugin.properties")["command"] == command_of(plugins)


@pytest.mark.slow
def test_another_plugin_is_left_alone(plugins):
    (plugins / "spark").mkdir()
    (plugins / "spark" / "private.properties").write_text("jobtype.class=azkaban.jobtype.HadoopSparkJob\n")
    done = ytf("install-jobtype", "--dir", str(plugins), "--name", "spark", check=2)
    assert "spark is another plugin" in done.stderr
    assert [path.name for path in (plugins / "spark").iterdir()] == ["private.properties"]


def test_every_fault_of_an_installation_is_reported(plugins):
    with pytest.raises(SpecInvalid) as caught:
        write_jobtype(plugins / "nope", name="a/b", python="python3", limits="$HOME/x")
    assert [str(fault).partition(":")[0] for fault in caught.value.faults] == [
        "--dir",
        "--name",
        "--python",
        "--limits",
        "--limits",
    ]
    with pytest.raises(
        SpecInvalid, match=r"-I can't import tf_yarn_ops.azkaban: .*; install tf-yarn-ops for this interpreter"
    ):
        write_jobtype(plugins, python="/usr/bin/false")
    assert [path.name for path in plugins.iterdir()] == ["common.properties"]


@pytest.mark.slow
def test_no_executor_sees_half_of_it(plugins, tmp_path):
    """At any moment an executor finds no private.properties, or a complete plugin."""
    over, wrong, looks = threading.Event(), [], 0
    python = tmp_path / "python"  # Installing asks the interpreter whether it has the package, which takes long.
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)

    def look():
        nonlocal looks
        while not over.is_set():
            looks += 1
            for folder in plugins.iterdir():
                try:
                    private = (folder / "private.properties").read_bytes()
                except OSError:
                    continue
                plugin = parse_properties((folder / "plugin.properties").read_bytes())
                if "jobtype.class" not in parse_properties(private) or "command" not in plugin:
                    wrong.append((folder.name, private))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(6):
            write_jobtype(
                plugins, name=f"type{number // 3}", python=str(python), secure=bool(number % 2), limits=f"/etc/{number}"
            )
    finally:
        over.set()
        thread.join()
    assert not wrong and looks > 10


def test_help_says_what_the_options_are():
    done = ytf("install-jobtype", "--help")
    for option in ("--dir", "--name", "--secure", "--limits", "--python"):
        assert option in done.stdout


# --- the examples -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Return the folder of the zips that the one command makes."""
    folder = tmp_path_factory.mktemp("projects")
    subprocess.run(
        [sys.executable, EXAMPLES / "pack.py", folder, "--set", "data=/my data/x=y"],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )
    return folder


def unpacked(path, folder):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return {name.stem: parse_properties(name.read_bytes()) for name in folder.glob("*.job")}


def test_one_command_makes_the_projects(projects):
    assert sorted(path.name for path in projects.iterdir()) == [
        "digits-flow1.zip",
        "digits-flow2.zip",
        "digits-tony.zip",
    ]


def test_flow1_leads_from_data_to_promotion(projects, tmp_path):
    jobs = unpacked(projects / "digits-flow1.zip", tmp_path)
    assert {name: job.get("dependencies") for name, job in jobs.items()} == {
        "prepare": None,
        "train": "prepare",
        "evaluate": "train",
        "promote": "evaluate",
    }
    assert parse_properties((tmp_path / "digits.properties").read_bytes())["data"] == "/my data/x=y"
    for name in ("train", "evaluate"):
        job, _ = read_azkaban_job(resolved(jobs[name]), tmp_path)
        assert not [*file_faults(with_absolute(job, tmp_path))]
    assert jobs["evaluate"]["tf.input"] == "${tf.result.output_path}"
    assert "${tf.result.metrics.accuracy}" in jobs["promote"]["command"]


def test_flow2_is_the_same_every_night(projects, tmp_path):
    unpacked(projects / "digits-flow2.zip", tmp_path)
    flow = yaml.safe_load((tmp_path / "digits.flow").read_text())
    assert yaml.safe_load((tmp_path / "digits.project").read_text()) == {"azkaban-flow-version": 2.0}
    assert flow["trigger"]["schedule"] == {"type": "cron", "value": "0 0 2 ? * *"}
    assert flow["config"]["data"] == "/my data/x=y"
    jobs = {node["name"]: node for node in flow["nodes"]}
    assert {name: node.get("dependsOn") for name, node in jobs.items()} == {
        "prepare": None,
        "train": ["prepare"],
        "evaluate": ["train"],
        "promote": ["evaluate"],
    }
    first = unpacked(projects / "digits-flow1.zip", tmp_path)
    for name, node in jobs.items():
        assert all(isinstance(text, str) for text in node["config"].values()), "Azkaban takes nothing else"
        # flow1 publishes versions in one folder, flow2 has a folder for each execution.
        differ = ("type", "dependencies", "tf.output", "tf.commit")
        own = {key: text for key, text in first[name].items() if key not in differ}
        assert own == {key: text for key, text in node["config"].items() if key != "tf.output"}


def test_the_job_of_tony_brings_its_sources(projects, tmp_path):
    jobs = unpacked(projects / "digits-tony.zip", tmp_path)
    assert not any(name.startswith("tf.") for name in jobs["digits"])
    job, request = read_azkaban_job(resolved(jobs["digits"]), tmp_path)
    assert set(job.files) == {"train.py", "multi_worker.py", "digits.py"}
    assert (job.tasks["worker"].instances, job.tasks["worker"].memory, list(job.tasks)) == (2, 1024, ["worker"])
    assert request.warnings == ["these keys of TonY have no effect here: tony.application.security.enabled"]


def resolved(properties):
    """Return properties with Azkaban's references filled in, whatever they are."""
    texts = {name: text.replace("${environment}", "venv:///x") for name, text in properties.items()}
    return {name: re.sub(r"\$\{[^}]*\}", "/x", text) for name, text in texts.items()}


def with_absolute(job, folder):
    """Return the job with its local files as they lie in a folder."""
    files = {name: str(folder / source) for name, source in job.files.items()}
    return replace(job, files=files, script=str(folder / job.script))

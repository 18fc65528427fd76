"""Flows of the job type in the real Azkaban, on real YARN: how each job ends, its log, and that nothing is left."""

import json
import os
import re
import shutil
import threading

import pytest

from support.azkaban_jobs import JOB, ROOT, Site, install, write_project
from support.azkaban_site import PATIENCE, AzkabanError, plugin_jars
from support.waiting import until
from tf_yarn_ops.minicluster.artefacts import VERSION, cache_folder

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

APPLICATION = re.compile(r"application_\d+_\d+")
#: Writes what it finds, and reports results that are to look like keys of Azkaban.
DUMP = """\
import json, os, shutil, sys
names = [name for name in os.environ if name.startswith(("DTF_", "MY_"))]
document = {"argv": sys.argv[1:], "env": {name: os.environ[name] for name in names}}
json.dump(document, open(os.environ["MY_DUMP"], "w"))
shutil.copy(os.environ["MY_RESULT"], os.environ["YTF_RESULT_FILE"])
"""


@pytest.fixture(scope="module")
def site(minicluster, classpath, tmp_path_factory):
    with Site(tmp_path_factory.mktemp("azkaban"), classpath, minicluster) as server:
        yield server


@pytest.fixture
def project(tmp_path):
    def written(jobs, files=None):
        return write_project(tmp_path / "project", jobs, files)

    return written


def bare_ids(execution, job, attempt=0):
    """Return the application ids that stand alone on a line of the log, where Azkaban's pages look for them."""
    return [line for line in execution.messages(job, attempt) if APPLICATION.fullmatch(line)]


def states(applications):
    return [(application["state"], application["finalStatus"]) for application in applications]


# --- success, failure, retries ------------------------------------------------------------------


@pytest.fixture(scope="module")
def retried(site, tmp_path_factory):
    """Run a flow whose training fails once; return its execution and the folder of its files."""
    folder = tmp_path_factory.mktemp("retried")
    command = (
        f"test -e {folder}/mark || {{ touch {folder}/mark; echo application_1_0001: something is wrong >&2; exit 3; }}; "
        'echo \'{"accuracy": 0.97, "steps": 600, "model": "m/1", "none": null}\' > "$YTF_RESULT_FILE"; sleep 0.5'
    )
    jobs = write_project(folder / "project", {
        "train": {"tf.command": command, "tf.output": f"{folder}/out", "tf.name": "digits", "tf.tags": "nightly",
                  "retries": "2", "retry.backoff": "500"},
        "promote": {"type": "command", "dependencies": "train", "command":
                    "/bin/echo ${tf.result.output_path} ${tf.result.metrics.accuracy} ${tf.result.application_id}"},
    })  # fmt: skip
    execution = site.run(jobs, "promote")
    assert execution.attempts == [("train", 0, "FAILED"), ("train", 1, "SUCCEEDED"), ("promote", 0, "SUCCEEDED")], (
        execution.all_logs()
    )
    return execution, folder


@pytest.mark.door
def test_a_flow_succeeds_and_its_outputs_are_used_downstream(site, retried):
    execution, folder = retried
    application = site.applications(execution)[-1]
    assert states([application]) == [("FINISHED", "SUCCEEDED")]
    outputs = execution.outputs["train"]
    expected = {
        "tf.result.application_id": application["id"], "tf.result.final_status": "SUCCEEDED",
        "tf.result.reason": "SUCCEEDED", "tf.result.output_path": f"{folder}/out",
        "tf.result.metrics.accuracy": "0.97", "tf.result.metrics.steps": "600", "tf.result.metrics.model": "m/1",
    }  # fmt: skip
    assert expected.items() <= outputs.items()
    assert "tf.result.tracking_url" in outputs and float(outputs["tf.result.duration_seconds"]) > 0
    assert all(name.startswith("tf.result.") for name in outputs)
    assert f"{folder}/out 0.97 {application['id']}" in execution.messages("promote")
    assert bare_ids(execution, "train", 1) == [application["id"]]
    assert not set("\r\x1b") & set(execution.log("train", 1))  # no progress bars: the log rolls
    tags = application["applicationTags"].split(",")
    assert {f"azkaban.flow.execid:{execution.execid}", "nightly"} <= set(tags)
    assert application["name"] == "digits"
    site.assert_nothing_left(execution)


def test_a_retry_after_a_failure_trains_anew(site, retried):
    execution, _ = retried
    first, second = site.applications(execution)
    assert states([first, second]) == [("FINISHED", "FAILED"), ("FINISHED", "SUCCEEDED")]
    assert bare_ids(execution, "train", 0) == [first["id"]]
    assert bare_ids(execution, "train", 1) == [second["id"]]
    assert execution.outputs["train"]["tf.result.application_id"] == second["id"]
    site.assert_nothing_left(execution)


def test_a_failed_training_fails_the_job_and_says_why(site, retried):
    execution, _ = retried
    messages = execution.messages("train", 0)
    assert "something is wrong" in execution.log("train", 0)
    last = messages[next(index for index, line in enumerate(messages) if line.startswith("Process completed")) - 1]
    assert "TASK_FAILED" in last and "worker:0" in last
    application, _ = site.applications(execution)
    # Azkaban's killers take every word that begins like this for a job of ours.
    assert {word for word in execution.log("train", 0).split() if word.startswith("application_")} == {
        application["id"]
    }


# --- values, and what users and programs can't do ------------------------------------------------

VALUES = ["", " ", " leading and trailing ", "a,b", "it's \"quoted\"", "$HOME $$ $1 `id`", "one\ntwo\n", "tab\tend",
          "back\\slash \\n \\u0041", "h\u00e9 \u20ac \U0001f600", "#!=:", "*", "~", "-x", "%s {0} !!",
          "blank  \"double\" 'single' ; & | < > \nline\ttab \u6f22"]  # fmt: skip


def evil_variables(folder, prefix="env."):
    """Return properties with variables by which a job would lead its launcher elsewhere, or have it read a secret."""
    home = folder / "home" / "tf_yarn_ops"
    home.mkdir(parents=True, exist_ok=True)
    (home / "site.yaml").write_text("S3cret: in a home\n")
    (folder / "secret").write_text("root:S3cret:20228:0\n")
    values = {
        "YTF_SITE": folder / "secret",
        "XDG_CONFIG_HOME": folder / "home",
        "HOME": folder,
        "PATH": folder,
        "HADOOP_CONF_DIR": folder,
        "YTF_RESOURCEMANAGER": "http://127.0.0.1:1",
        "KRB5_CONFIG": folder / "secret",
        "SSL_CERT_FILE": folder / "secret",
        "https_proxy": "http://127.0.0.1:1",
        "PYTHONPATH": folder,
    }
    return {f"{prefix}{name}": str(value) for name, value in values.items()}


@pytest.fixture(scope="module")
def overridden(site, tmp_path_factory):
    """Run a flow in which user, a job before and the program try to choose keys of others; return execution and folder.

    It has what releases newer than 3.58 tell to a job, too.
    """
    folder = tmp_path_factory.mktemp("overridden")
    (folder / "json.py").write_text("raise SystemExit('hijacked')")
    outputs = json.dumps({"azkaban.flow.execid": "2", "azkaban.job.attempt": "7", "tf.result.reason": "TASK_FAILED",
                          "tf.result.application_id": "application_1_0001", "env.PYTHONPATH": str(folder),
                          "env.HADOOP_USER_NAME": "stranger", "env.HADOOP_PROXY_USER": "stranger",
                          "user.to.proxy": "stranger"})  # fmt: skip
    evil = {"command": f"touch {folder}/hijacked", "tf.command": "false", "tf.worker.instances": 9, "nested": {"a": 1},
            "../up": 1, "": 2, "user.to.proxy": "root", "azkaban.flow.execid": "1", "variable": "${no.such.name}",
            "expression": "$(1+1)", "note": "h\u00e9 \u20ac \U0001f600"}  # fmt: skip
    (folder / "evil.json").write_text(json.dumps(evil))
    own = {f"tf.args.{number}": value for number, value in enumerate(VALUES, 1)}
    own |= {f"tf.env.MY_{number}": value for number, value in enumerate(VALUES)}
    jobs = write_project(folder / "project", {
        "before": {"type": "command", "command": "/bin/bash before.sh"},
        "train": {**own, "tf.entry_point": "dump it.py", "tf.env.MY_DUMP": f"{folder}/dump.json",
                  "tf.env.MY_RESULT": f"{folder}/evil.json", "tf.input": "/in put/\u00e9,$x", "dependencies": "before",
                  "env.HADOOP_USER_NAME": "stranger", **evil_variables(folder), **evil_variables(folder, "ENV.")},
        "evaluate": {"tf.command": "true", "tf.dry_run": "true", "dependencies": "train"},
    }, {"before.sh": f"echo '{outputs}' > $JOB_OUTPUT_PROP_FILE", "dump it.py": DUMP})  # fmt: skip
    execution = site.start(jobs, "evaluate", parameters={"azkaban.flow.execid": "1"}, newer=True).wait()
    assert execution.status == "SUCCEEDED", execution.all_logs()
    return execution, folder


def test_values_reach_the_program_byte_for_byte(site, overridden):
    execution, folder = overridden
    dumped = json.loads((folder / "dump.json").read_text())
    assert dumped["argv"] == VALUES
    assert [dumped["env"][f"MY_{number}"] for number in range(len(VALUES))] == VALUES
    assert dumped["env"]["DTF_INPUT_PATH"] == "/in put/\u00e9,$x"
    site.assert_nothing_left(execution)


def test_a_program_can_not_choose_the_keys_of_the_jobs_downstream(site, overridden):
    execution, folder = overridden
    outputs = execution.outputs["train"]
    assert all(name.startswith("tf.result.") for name in outputs)
    assert outputs["tf.result.metrics.note"] == "h\u00e9 \u20ac \U0001f600"
    assert not any("$" in value for value in outputs.values())
    assert len(site.applications(execution)) == 1
    assert "command: 'true'" in execution.log("evaluate") and "instances: 9" not in execution.log("evaluate")
    assert not (folder / "hijacked").exists()
    assert re.search(r"Command: \S+ -I -X utf8 -m tf_yarn_ops.azkaban", execution.log("evaluate"))
    site.assert_nothing_left(execution)


def test_outputs_and_flow_parameters_do_not_change_the_identity(site, overridden):
    """Azkaban lets both override azkaban.flow.execid, and hands stale results of a job before to the next.

    Neither user nor interpreter of the launcher are theirs to choose.
    """
    execution, _ = overridden
    (application,) = site.applications(execution)
    assert execution.outputs["train"]["tf.result.application_id"] == application["id"]
    assert execution.outputs["train"]["tf.result.reason"] == "SUCCEEDED"
    assert any(re.fullmatch(r"tfyg-\d+-0", tag) for tag in application["applicationTags"].split(","))
    assert application["user"] == site.launcher.cluster.user
    site.assert_nothing_left(execution)


def test_variables_of_a_job_do_not_reach_its_launcher(overridden):
    log = "".join(overridden[0].messages("train"))
    assert "root:S3cret" not in log and "S3cret: in" not in log
    assert re.search(r"ENV\.YTF_SITE, .*env\.YTF_SITE, .*env\.https_proxy: ignored", log), log


def test_every_fault_of_a_request_is_reported_at_once(site, project):
    folder = project({"train": {"tf.comand": "true", "tf.worker.memory": "many", "tf.worker.instances": "-1",
                                "tf.sucess": "chief", "tf.queue_timeout": "soon", "tony.worker.instances": "3"}})  # fmt: skip
    execution = site.run(folder, "train")
    assert execution.attempts == [("train", 0, "FAILED")]
    log = execution.log("train")
    for words in ("tf.comand", "did you mean tf.command", "tf.worker.memory", "many", "tf.worker.instances", "tf.sucess",
                  "did you mean tf.success", "soon", "tony.worker.instances", "SPEC_INVALID"):  # fmt: skip
        assert words in log.replace("'", ""), (words, log)
    assert "Traceback" not in log
    assert site.applications(execution) == []


def test_the_sites_limits_are_not_a_jobs_to_lift(site, project, tmp_path):
    limits = tmp_path / "azkaban.yaml"
    limits.write_text("queues: [low]\nmemory: 200\ndefaults: {tf.name: nightly}\n")
    install(site.plugins, "--name", "limited", "--limits", limits)
    folder = project({"train": {**JOB, "type": "limited", "tf.command": "true", "tf.queue": "default"}})
    try:
        execution = site.run(folder, "train")
    finally:
        shutil.rmtree(site.plugins / "limited")
    assert execution.attempts == [("train", 0, "FAILED")]
    log = execution.log("train")
    assert (
        "tf.queue: 'default' is not one of the queues that this site allows: low" in log and "allows 200 MiB" in log
    ), log
    assert site.applications(execution) == []


def test_variables_of_the_administrator_reach_the_launcher(site, project, tmp_path):
    """A job can't replace them: the second one would end as CLUSTER_UNREACHABLE."""
    shutil.copytree(site.plugins / "tensorflow-yarn", site.plugins / "named")
    install(site.plugins, "--name", "named")
    with open(site.plugins / "named" / "plugin.properties", "a") as file:
        file.write(f"env.YTF_SITE={tmp_path}/site.yaml\n")
    (tmp_path / "site.yaml").write_text("staging: relative\n")
    try:
        for own in ({}, {"env.YTF_SITE": "/dev/null"}):
            execution = site.run(project({"train": {**JOB, "type": "named", "tf.command": "true", **own}}), "train")
            assert f"site file {tmp_path}/site.yaml: staging: " in execution.log("train")
            assert site.applications(execution) == []
    finally:
        shutil.rmtree(site.plugins / "named")


def test_a_dry_run_submits_nothing(site, project):
    folder = project(
        {"train": {"tf.command": "echo from the dry run", "tf.dry_run": "true", "tf.env.MY_TOKEN": "s3cret"}}
    )
    execution = site.run(folder, "train")
    assert execution.status == "SUCCEEDED", execution.all_logs()
    assert "from the dry run" in execution.log("train") and "s3cret" not in execution.log("train")
    assert site.applications(execution) == []


def test_job_in_utf8_is_refused_with_the_right_encoding(site, project):
    folder = project({})
    (folder / "train.job").write_bytes(
        "\n".join(f"{key}={value}" for key, value in {**JOB, "tf.command": "echo h\u00e9"}.items()).encode()
    )
    execution = site.run(folder, "train")
    assert execution.status == "FAILED"
    log = execution.log("train")
    assert "echo h\\u00e9 for" in log and "ISO-8859-1" in log, log
    assert site.applications(execution) == []


# --- the plugin ---------------------------------------------------------------------------------


def test_installing_again_and_again_never_shows_azkaban_half_a_plugin(site):
    over = threading.Event()
    faults = []

    def load():
        while not over.is_set():
            try:
                assert site.load_plugins() == ["tensorflow-yarn"]
            except Exception as error:
                faults.append(error)
                return

    loading = threading.Thread(target=load)
    loading.start()
    try:
        said = [install(site.plugins) for _ in range(2)]
    finally:
        over.set()
        loading.join()
    assert faults == []
    assert all("reload" in text for text in said)
    assert sorted(path.name for path in site.plugins.iterdir()) == ["commonprivate.properties", "tensorflow-yarn"]
    private = (site.plugins / "tensorflow-yarn" / "private.properties").read_text()
    assert "jobtype.class=azkaban.jobExecutor.ProcessJob" in private


def test_the_plugin_is_loaded_as_it_is_shipped(site, tmp_path):
    shutil.copytree(ROOT / "jobtypes" / "tensorflow-yarn", tmp_path / "tensorflow-yarn")
    assert site.ask(do="plugins", plugins=str(tmp_path))["names"] == ["tensorflow-yarn"]


def test_a_broken_plugin_beside_ours_is_azkabans_own_error(site, tmp_path):
    """One broken directory stops the whole executor, ours or not."""
    shutil.copytree(site.plugins, tmp_path / "jobtypes")
    broken = tmp_path / "jobtypes" / "broken"
    broken.mkdir()
    (broken / "private.properties").write_text("jobtype.class=no.such.Class\n")
    said = install(tmp_path / "jobtypes", "--name", "training")
    assert (tmp_path / "jobtypes" / "training" / "private.properties").exists()
    with pytest.raises(AzkabanError, match=r"no\.such\.Class"):
        site.ask(do="plugins", plugins=str(tmp_path / "jobtypes"))
    shutil.rmtree(broken)
    assert site.ask(do="plugins", plugins=str(tmp_path / "jobtypes"))["names"] == ["tensorflow-yarn", "training"]
    assert "training" in said


def test_the_secure_plugin_runs_in_azkabans_hadoopshell(minicluster, project, tmp_path, classpath):
    """It lets our command through and nothing else, and finds the application in the log when it is cancelled."""
    with Site(tmp_path / "secure", classpath, minicluster, "--secure") as site:
        jars = [*plugin_jars(), *(cache_folder(os.environ) / f"hadoop-{VERSION}" / "jars").glob("*.jar")]
        with open(site.plugins / "commonprivate.properties", "a") as common:
            common.write(
                f"jobtype.global.classpath={','.join(map(str, [minicluster.settings.configuration, *jars]))}\n"
            )
        private = (site.plugins / "tensorflow-yarn" / "private.properties").read_text()
        assert "jobtype.class=azkaban.jobtype.HadoopShell" in private and "command.whitelist.regex" in private
        evil = {"tf.command": "sleep 600", "tf.queue": "full", "command.1": "touch evil", **evil_variables(tmp_path)}
        execution = site.start(project({"train": evil}), "train")
        [application] = until(lambda: site.live(execution), PATIENCE, 0.3, what=execution.all_logs)
        assert "root:S3cret" not in execution.log("train")
        assert "Removing restricted command: touch evil" in execution.log("train")
        assert execution.cancel() < 30
        assert (execution.status, [item["state"] for item in site.applications(execution)]) == ("KILLED", ["KILLED"])
        assert f"applicationIds to kill: [{application}]" in execution.log("train")
        upstream = project({"before": {"type": "command", "command": "/bin/bash before.sh"},
                            "train": {"tf.command": "true", "dependencies": "before"}},
                           {"before.sh": """echo '{"command": "touch evil"}' > $JOB_OUTPUT_PROP_FILE"""})  # fmt: skip
        replaced = site.run(upstream, "train")
        assert replaced.status == "SUCCEEDED" and site.applications(replaced) == []
        assert "Removing restricted command: touch evil" in replaced.log("train")
        assert not list(tmp_path.rglob("evil"))
        for run in (execution, replaced):
            site.assert_nothing_left(run)

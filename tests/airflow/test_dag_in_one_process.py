"""A DAG as people try it: ``dag.test()`` in one process, on real daemons, with everything that only Airflow itself can show.

The same rows on the versions of Airflow that are in use: the oldest and the newest in a run of everything.
``./dev test airflow --version 3.1.8`` runs them on this version, ``--version all`` on all.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.airflow_rows import Yarn
from support.airflow_versions import NEWEST, VERSIONS, Airflow
from support.programs import ROOT
from support.waiting import until
from tf_yarn_ops.airflow.links import TensorBoardLink, TrainingLink, YarnApplicationLink, YarnLogsLink

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

_NAMED = os.environ.get("YTF_TEST_AIRFLOW", "").split()
_CHOSEN = VERSIONS if _NAMED == ["all"] else _NAMED or [VERSIONS[0], NEWEST]
PROGRAM = ROOT / "tests" / "support" / "airflow_dags" / "tried.py"
LINKS = [link().name for link in (TrainingLink, YarnApplicationLink, YarnLogsLink, TensorBoardLink)]
#: Seconds for a DAG, with some jobs on a busy machine.
_PROGRAM = 400


class Tried:
    """What a version of Airflow, its log and YARN know after the program has run."""

    def __init__(self, airflow, minicluster, database, folder):
        self.airflow, self._minicluster = airflow, minicluster
        process, log = self._start(database, folder)
        try:
            self.known, self.log = self._runs_through(process, log)
            self.application = self._is_ended(process, log)
            self.lineage = folder / "lineage"
        except BaseException:
            print(log.read_text()[-4000:])
            raise
        finally:
            process.kill()
            process.wait()

    def _start(self, database, home):
        (home / "dags").mkdir()
        program = shutil.copy(PROGRAM, home / "dags")
        environ = {
            **self.airflow.environ(home, database),
            "AIRFLOW__TF_YARN__DEPLOYMENT_ID": self.airflow.number,
            "AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps({"conn_type": "tf_yarn", "host": self._minicluster.resourcemanager_url}),
            "AIRFLOW_CONN_HERE": json.dumps({"conn_type": "tf_yarn", "host": f"local://{home}/jobs"}),
        }  # fmt: skip
        log = home / "log"
        with open(log, "w") as output:
            return subprocess.Popen(
                [self.airflow.python, program],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            ), log

    def _runs_through(self, process, log):
        """Wait for the end of the first DAG. Return what Airflow knows then, and the log up to there."""

        def result():
            ended = process.poll() is not None
            found = re.search(r"^RESULT (.*)\n", log.read_text(), re.MULTILINE)
            assert found or not ended, "the process has ended without a result"
            return found

        found = until(result, _PROGRAM, 0.2)
        return json.loads(found[1]), found.string[: found.start()]

    def _is_ended(self, process, log):
        """End the process of a task as Airflow's supervisor does; return the application."""
        yarn = Yarn(self._minicluster)

        def program():
            assert process.poll() is None, "the process has ended by itself"
            found = re.search(r"submitted (application_\d+_\d+) as 'ended.train'", log.read_text())
            return found and yarn.programs(found[1]) and found[1]

        with yarn.client:
            name = until(program, _PROGRAM, 0.2)
            process.send_signal(signal.SIGTERM)
            until(lambda: yarn.report(name)["state"] == "KILLED", 60, 0.2)
            process.wait(_PROGRAM)
            return yarn.report(name)


@pytest.fixture(scope="module")
def all_tried(minicluster, airflow_database, tmp_path_factory):
    """Return a future of each version's `Tried`; two versions at a time."""

    def run(number):
        folder = tmp_path_factory.mktemp(f"airflow-{number}")
        (folder / "package").mkdir()
        return Tried(Airflow(number, folder / "package"), minicluster, airflow_database, folder)

    with ThreadPoolExecutor(2) as pool:
        yield {number: pool.submit(run, number) for number in _CHOSEN}


@pytest.fixture(params=_CHOSEN)
def tried(all_tried, request):
    return all_tried[request.param].result()


def test_command_of_a_function_runs_deferred_and_hands_on_its_metrics(tried):
    assert (tried.known["states"]["command"], tried.known["states"]["told"]) == ("success", "success")
    told = tried.known["xcoms"]["told.return_value"]
    assert told["report"]["metrics"] == {"rate": 0.5, "loss": "nan"}
    assert told["report"]["name"] == told["tf_yarn"]["name"] == "tried in Airflow"
    assert told["tf_yarn"]["output_path"] == "/models/tried"
    assert told["report"] == tried.known["xcoms"]["command.return_value"]


def test_function_trains_deferred_and_its_value_is_the_xcom(tried):
    """Values that Airflow's serialiser or a database refuses are texts."""
    xcoms = tried.known["xcoms"]
    assert xcoms["train.return_value"] == {
        "metrics": {"rate": 0.5, "loss": "nan"}, "task": "worker", "big": str(2**100), "nul": r"a\u0000b",
        "half": r"\ud800", "_classname__": "builtins.int"}  # fmt: skip
    assert xcoms["train.tf_yarn_status"]["reason"] == "SUCCEEDED"
    assert "task_command" not in tried.known["rendered"]["train"]


def test_the_asset_has_the_models_path_metrics_and_application(tried):
    report = tried.known["xcoms"]["train.tf_yarn_status"]
    event = {
        "model_path": "hdfs:///models/tried",
        "metrics": report["metrics"],
        "application_id": report["application_id"],
    }
    # dag.test() of 3.0 refuses assets that no DAG processor has seen, so the DAG names none there.
    assert tried.known["events"] == ([] if tried.airflow.version == (3, 0) else [event])


def test_openlineage_has_the_paths_of_the_jobs(tried):
    """Of what a function returned, after its deferral, and of a ``spec``, when it starts. Only 3.3 has the provider here."""
    lines = tried.lineage.read_text().splitlines() if tried.airflow.number == NEWEST else []
    events = [json.loads(line) for line in lines]
    paths = {
        (event["job"]["name"], event["eventType"], part["namespace"], part["name"])
        for event in events
        for part in (*event["inputs"], *event["outputs"])
    }
    expected = {
        ("tried.train", "COMPLETE", "hdfs://", "/data"), ("tried.train", "COMPLETE", "hdfs://", "/models/tried"),
        ("ended.train", "START", "s3://lake", "digits")}  # fmt: skip
    assert paths >= expected if events else tried.airflow.number != NEWEST


def test_the_links_are_in_airflows_database_and_on_its_pages(tried):
    assert sorted(name for name in tried.known["links"] if name.startswith("train.")) == sorted(
        f"train.{name}" for name in LINKS
    )
    application_id = tried.known["xcoms"]["train.tf_yarn"]["application_id"]
    for link in (YarnApplicationLink(), YarnLogsLink()):
        assert application_id.removeprefix("application") in tried.known["xcoms"][f"train.{link.xcom_key}"]
        assert tried.known["links"][f"train.{link.name}"] == tried.known["xcoms"][f"train.{link.xcom_key}"]
    assert tried.known["xcoms"]["train.tf_yarn_link_tensorboard"] == ""


def test_the_page_of_rendered_templates_shows_the_values_that_were_given(tried):
    assert tried.known["rendered"]["failing"]["task_command"] == "echo it went wrong in tried; exit 3"
    assert set(tried.known["rendered"]["failing"]) == {
        "task_command",
        "cluster_requirement",
        "environment",
        "task_memory",
    }


def test_failing_program_is_retried_unless_the_policy_forbids_it(tried):
    tries = 1 if tried.airflow.version >= (3, 3) else 2
    assert (tried.known["states"]["failing"], tried.known["tries"]["failing"]) == ("failed", tries)
    assert tried.known["xcoms"]["failing.tf_yarn_status"]["reason"] == "TASK_FAILED"
    assert "failing.return_value" not in tried.known["xcoms"]
    assert "it went wrong in tried" in tried.log and "TfYarnJobFailed" in tried.log


def test_sigterm_kills_what_the_task_waits_for(tried):
    assert tried.application["finalStatus"] == "KILLED" and "Killed by Airflow" in tried.application["diagnostics"]


def test_what_the_version_lacks_says_so(tried):
    text = f"TfYarnRetryPolicy needs Airflow 3.3 or later; this is Airflow {tried.airflow.number}"
    assert tried.known["lacking"] == ({} if tried.airflow.version >= (3, 3) else {"TfYarnRetryPolicy": text})


def test_the_log_is_short(tried):
    """Neither a line for each staged file nor one for each request. (Airflow itself warns of its own use of httpx.)"""
    lines = [
        line for line in tried.log.splitlines() if "in-process.invalid" not in line and "site-packages" not in line
    ]
    assert not [line for line in lines if "HTTP Request" in line]
    assert (
        len([line for line in lines if "tf_yarn_ops" in line]) < 90 * tried.known["tries"]["failing"]
    )  # with tracebacks

"""docs/guides/azkaban.md, docs/reference/azkaban.md and the code hold each other: keys, limits, outputs, options, properties that are shown."""

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from support.doc_tables import tables
from support.hostile import HOSTILE
from tf_yarn_ops.azkaban import keys
from tf_yarn_ops.azkaban.commands import install_jobtype
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.limits import DEFAULT_PATH, Limits
from tf_yarn_ops.azkaban.outputs import MAX_METRICS, MAX_VALUE, output_properties
from tf_yarn_ops.azkaban.properties import parse_properties
from tf_yarn_ops.azkaban.tony import translate
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

ROOT = Path(__file__).resolve().parents[2]
PAGE = "\n".join(
    (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("guides/azkaban.md", "reference/azkaban.md")
)


def rows_of(heading):
    """Return the cells of the first table behind a heading, its own head left out."""
    text = PAGE[PAGE.index(f"\n{heading}") + 1 + len(heading) :]
    lines = [line for line in re.split(r"\n#{2,3} ", text)[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_every_alias_is_translated():
    """Each name of TonY's in the tables reaches the key in whose row it stands."""
    values = {"src_dir": "src", "tony.docker.containers.image": "i", "python_venv": "v.zip"}
    context = {"tony.docker.enabled": "true", "tony.worker.instances": "1", "tony.ps.instances": "1"}
    for key in keys.ALL_KEYS:
        for alias in tables.tony_names(key.name):
            name = alias.replace("<type>", "worker").replace("<NAME>", "A")
            text = values.get(
                name,
                "hdfs:///a.zip#archive"
                if key.option.name == "archive"
                else "/usr/bin/x"
                if "python" in name
                else "A=1"
                if name.endswith("envs")
                else "worker"
                if "jobtypes" in name
                else "1000",
            )
            beside = {} if name == "tony.containers.command" else {"executes": "x"}
            found = translate({**context, **beside, name: text})
            brought = {
                keys.find_key(ours).key.name for ours, value in (*found.values, *found.weak) if value.key == name
            }
            executed = name == "python_binary_path" and key.name == "tf.command"
            assert key.name in brought or executed, (alias, key.name, brought)


def test_the_defaults_are_those_of_the_job():
    job = JobSpec(tasks={"worker": TaskSpec()}, command="x", output="/o", tensorboard=True)
    defaults = {key.name: tables.DEFAULTS.get(key.name, key.option.shown_default) for key in keys.ALL_KEYS}
    expected = {
        "tf.task_memory": 8192, "tf.task_vcores": 1, "tf.task_gpus": 0, "tf.queue": job.queue, "tf.priority": job.priority,
        "tf.am_memory": job.am_memory, "tf.am_vcores": job.am_vcores, "tf.report_log_tail": job.report_log_tail,
        "tf.restart": job.restart.mode, "tf.max_container_losses": job.restart.max_container_losses,
        "tf.restart_backoff": f"{job.restart.backoff:g}", "tf.stop_grace": f"{job.deadlines.stop_grace:g}",
        **{f"tf.{name}_timeout": f"{getattr(job.deadlines, name):.0f}"
           for name in ("queue", "allocation", "registration", "heartbeat", "execution", "total")},
    }  # fmt: skip
    assert {name: defaults[name] for name in expected} == {name: str(value) for name, value in expected.items()}


def test_documented_limits_accept_a_job_without_resources(tmp_path):
    assert [row[0].strip("`") for row in rows_of("### The site's limits")] == [field.name for field in fields(Limits)]
    assert DEFAULT_PATH in PAGE
    example = re.search(r"```yaml\n(defaults:.*?)```", PAGE, re.S)[1]
    limits = Limits(**yaml.safe_load(example))
    job, _ = read_azkaban_job({"tf.worker.instances": "4", "tf.command": "true"}, tmp_path, limits.defaults)
    limits.check_job(limits.with_deadline(job))
    assert (job.queue, job.tasks["worker"].memory) == ("ml", TaskSpec().memory)


def test_the_outputs_are_documented():
    report = JobReport(
        "application_1_2",
        final_status="SUCCEEDED",
        reason=Reason.SUCCEEDED,
        tracking_url="http://rm",
        output_path="/o",
        tensorboard_url="http://tb",
        submitted_at=1.0,
        finished_at=2.0,
        metrics={"a": 1},
    )
    written = [name.replace(".a", ".<name>") if ".metrics." in name else name for name in output_properties(report)]
    assert [row[0].strip("`") for row in rows_of("## Output properties")] == written
    assert f"at most {MAX_METRICS} metrics" in PAGE and f"at most {MAX_VALUE:,}" in PAGE


def test_the_options_of_the_installation_are_documented():
    options = [name for parameter in install_jobtype.params for name in parameter.opts]
    assert [row[0].strip("`") for row in rows_of("## Install")] == options


def test_the_first_job_is_one(tmp_path):
    example = re.search(r"```properties\n(.*?)```", PAGE, re.S)[1]
    (tmp_path / "train.py").touch()
    job, request = read_azkaban_job(parse_properties(example.encode()), tmp_path)
    assert (job.command, job.tasks["worker"].instances, request.warnings) == ("python3 train.py --epochs 3", 2, [])


@pytest.mark.slow
def test_publish_script_of_the_guide_compares_numbers_and_runs_no_value(tmp_path):
    text = PAGE[PAGE.index("# publish.sh\n") :]
    (tmp_path / "publish.sh").write_text(text[: text.index("```")])
    (tmp_path / "publish.py").write_text("import sys; print('published', *sys.argv[1:])\n")

    def outcome(accuracy):
        command = ["sh", "publish.sh", accuracy, "/models/1"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr, (tmp_path / "pwned").exists()) == (0, "", False), (accuracy, done)
        return done.stdout

    assert {outcome(value) for value in ("0.9", "0.95", "1", "10.2", "1e2")} == {"published /models/1\n"}
    kept = ["0.89", "1e-05", "-1", "", "nan", "${tf.result.metrics.accuracy}", '1) system("touch pwned") (1', *HOSTILE]
    assert [value for value in kept if "the model in use stays" not in outcome(value)] == []

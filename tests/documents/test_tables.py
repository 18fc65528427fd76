"""The tables of the documents that come from the code are what the code has; so are the report's keys and the rooms."""

import re
from dataclasses import fields

import pytest

import tf_yarn_ops
from support.doc_tables import tables
from support.source import ROOT
from tf_yarn_ops import JobReport, JobSpec, TaskReport, TaskSpec
from tf_yarn_ops.cli.parameters import ALL, names_of
from tf_yarn_ops.runtime.common import report
from tf_yarn_ops.runtime.common.contract import TaskId, task_environment
from tf_yarn_ops.submit.application import build_runtime_job

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def read(page):
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "<!-- table:" in page.read_text(encoding="utf-8")],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_a_page_has_its_tables_as_the_code_has_them(page):
    text = page.read_text(encoding="utf-8")
    assert tables.fill(text) == text, "run: python docs/tables.py"


def test_stubs_of_airflow_are_what_the_code_makes():
    stubs = {path: text for path, text in tables.written().items() if path.suffix == ".pyi"}
    assert len(stubs) == 2
    assert all(path.read_text(encoding="utf-8") == text for path, text in stubs.items()), "run: python docs/tables.py"


def test_every_table_stands_in_a_page():
    named = {name for page in PAGES for name in re.findall("<!-- table: (.+?) -->", page.read_text(encoding="utf-8"))}
    assert named == set(tables.TABLES)


def test_every_option_of_the_command_line_stands_in_the_reference():
    rows = re.findall(r"^- `((?:-\w, )?--\w+)`", read("reference/options.md"), re.M)
    assert sorted(rows) == sorted(", ".join(names_of(option)) for option in ALL)


def test_the_yaml_that_is_shown_is_a_job():
    text = re.search(r"```yaml\n(.*?)```", read("reference/options.md"), re.S)[1]
    assert JobSpec.from_yaml(text).restart.mode == "cluster"


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("The job", list(JobReport("application_1_1").to_dict())),
        ("A task", [field.name for field in fields(TaskReport)]),
        ("A round", [field.name for field in fields(report.Round)]),
    ],
)
def test_the_report_has_the_keys_that_are_documented(heading, keys):
    section = read("reference/report.md").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^- (`.+?):", section, re.M)
    assert sorted(key.strip("`") for row in rows for key in row.split(", ")) == sorted(keys)


def test_the_variables_of_a_program_are_those_that_are_documented():
    job = build_runtime_job(
        JobSpec(
            command="x",
            script="/x.py",
            input="/i",
            output="/o",
            tasks={"evaluator": TaskSpec(), "chief": TaskSpec()},
            deadlines={"evaluator_grace": 1},
            environment="docker://image",
        ),
    )._replace(user="me")
    task = TaskId.parse("evaluator:0")
    found = task_environment(
        job, task, {"ps": ["h:1"]}, {}, application_id="application_1_1", round_number=1, address="h:1", folder="/f"
    )
    rows = re.findall(
        r"^\| (`.+?`) \|", read("concepts/program.md").partition("## Variables")[2].partition("\n## ")[0], re.M
    )
    named = {name for row in rows for name in re.findall(r"`([\w<>]+)`", row.replace("<TYPE>", "PS"))}
    assert named == set(found) - {"PATH", "PYTHONPATH", "TF_GRPC_REUSE_PORT"}


def test_a_page_begins_with_what_it_gives_in_25_words():
    for page in (ROOT / "README.md", *PAGES):
        text = page.read_text(encoding="utf-8")
        begin = re.match(r"(?:---\n.*?---\n)?# [^\n]+\n\n((?!```)[A-Z`].+?)\n\n", text, re.S)
        assert begin, page
        sentence = re.split(r"(?<=[.!?])\s", begin[1])[0]
        assert not sentence.startswith("For ") and len(sentence.split()) <= 25, page


def test_every_page_is_part_of_the_site():
    listed = {
        (index.parent / f"{entry}.md").resolve()
        for index in PAGES
        for block in re.findall(r"```\{toctree\}\n(.*?)```", index.read_text(encoding="utf-8"), re.S)
        for entry in block.split()
        if not entry.startswith(":")
    }
    assert {page.resolve() for page in PAGES} - listed == {DOCS / "index.md"}


def test_every_public_name_stands_in_the_reference():
    named = set(re.findall(r"auto(?:class|function|exception):: tf_yarn_ops\.(\w+)$", read("reference/api.md"), re.M))
    assert named == set(tf_yarn_ops.__all__) - {"__version__"}

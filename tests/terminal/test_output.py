"""No command obeys what a program prints: control characters and bidirectional controls are shown escaped."""

import json
import os
import pty
import re
import subprocess

import pytest

from support.attacks import ATTACKS
from support.fake_yarn import application
from support.programs import SUBMIT, YTF
from support.staging_place import USER
from tf_yarn_ops.cli.doctor import result_lines
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.terminal.output import align, print_json, show
from tf_yarn_ops.terminal.progress import Table

#: All that a program can print in one line as UTF-8.
EVIL = "".join(raw for name, (raw, _) in ATTACKS.items() if name not in ("half", "separator"))
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: What this package and rich send to a terminal: colours, and the moves of the live table.
_OWN = re.compile(r"\x1b\[(?:0|1|2|1;31|3\d|9\d|\?25[lh]|2K|1A)?[mlhKA]?|\r")


def test_cell_of_a_table_is_one_line(capsys):
    show("\n".join(align([["NAME"], ["a\nb\tc"]])))
    assert capsys.readouterr().out == "NAME\na\\u000ab\\u0009c\n"


def test_json_is_escaped_and_reads_back(capsys):
    print_json({EVIL: EVIL})
    shown = capsys.readouterr().out
    assert not _RAW.search(shown) and json.loads(shown) == {EVIL: EVIL}


def test_data_in_a_pipe_is_unchanged(capsys):
    show(f"{EVIL}\x1b[31m", data=True)
    assert capsys.readouterr().out == f"{EVIL}\x1b[31m\n"


def test_log_of_the_package_is_escaped():
    code = (
        "import logging, sys; from tf_yarn_ops.terminal.output import configure_logging; configure_logging(False);"
        "logging.getLogger('tf_yarn_ops').warning('%s', sys.argv[1])"
    )
    shown = subprocess.run([*YTF[:2], code, EVIL], capture_output=True, timeout=60).stderr.decode()
    assert "\\u001b[2J" in shown and not _RAW.search(shown)


def test_diagnosis_keeps_only_its_own_colour():
    lines = [*result_lines({"outcome": "fault", "check": "queue", "message": EVIL, "advice": EVIL}, 2000)]
    assert lines[0].startswith("\x1b[31mfault") and "\\u001b[8m" in lines[0] and "\\u001b[8m" in lines[1]
    assert not _RAW.search(_OWN.sub("", "".join(lines)))


def test_live_table_is_escaped(capsys):
    from rich.console import Console

    table = Table()
    table.show(
        JobReport(
            "application_1_1",
            name=EVIL,
            queue=EVIL,
            state="RUNNING",
            tracking_url=f"http://h/{EVIL}",
            tasks=(
                TaskReport("worker:0", "running", host=EVIL),
                TaskReport("tensorboard:0", "failed", exit_code=1, log_tail=EVIL),
            ),
        )
    )
    Console(force_terminal=True, width=2000).print(table.render())
    shown = capsys.readouterr().out
    assert shown.count("\\u001b[2J") == 4 and not _RAW.search(_OWN.sub("", shown))


# --- every command on a terminal ------------------------------------------------------------------
def on_a_terminal(*words, **env):
    """Return all that a program writes to its terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "3000", "TERM": "xterm", "YTF_SITE": "", **env},
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # Linux reports the end of the other side so
    process.wait(60)
    os.close(ours)
    return shown.decode()


def test_words_of_a_wrong_call_are_escaped():
    assert holds_no_attack(on_a_terminal(*YTF, "list", EVIL))


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """Run a job on this machine that attacks by its name, its metrics and its output; return how to look at it."""
    folder = tmp_path_factory.mktemp("jobs")
    env = {"XDG_STATE_HOME": str(folder), "EVIL": EVIL, "HADOOP_CONF_DIR": "", "YTF_RESOURCEMANAGER": ""}
    result = json.dumps({EVIL: 0.5, "text": EVIL})
    program = (
        f"import os, sys; open(os.environ['YTF_RESULT_FILE'], 'w').write({result!r});"
        f"print('log', {EVIL!r}, flush=True); sys.exit({EVIL!r})"
    )
    (folder / "train.py").write_text(program, encoding="utf-8")
    shown = on_a_terminal(
        *SUBMIT,
        "--local",
        "-r",
        "worker:1",
        "-n",
        EVIL,
        "-s",
        str(folder / "train.py"),
        f"{SUBMIT[0]} ${{DTF_TASK_SCRIPT}}",
        **env,
    )
    return env, re.search(r"local_\d+_\d+", shown)[0], shown


def holds_no_attack(shown):
    text = _OWN.sub("", shown.replace("\r\n", "\n"))
    return "\\u001b]0;root" in text and not _RAW.search(text)


@pytest.mark.slow
def test_submit_on_a_terminal_is_escaped(failed):
    assert holds_no_attack(failed[2]), failed[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "status APP",
        "status APP --json",
        "report APP",
        "wait APP",
        "logs APP",
        "logs -f APP",
        "logs APP --json",
        "logs -f APP --json",
        "history",
        "history --json",
        "compare APP APP --all",
        "compare APP APP --json",
    ],
)
def test_command_on_a_terminal_is_escaped(failed, words):
    env, app, _ = failed
    shown = on_a_terminal(*YTF, *words.replace("APP", app).split(), "--resourcemanager", "local://", **env)
    assert holds_no_attack(shown), shown


@pytest.mark.slow
def test_list_on_a_terminal_is_escaped(yarn):
    yarn.add(application(1, user=USER, name=EVIL, applicationTags="tf-yarn-ops", diagnostics=EVIL))
    env = {"HADOOP_USER_NAME": USER}
    assert holds_no_attack(on_a_terminal(*YTF, "list", "--resourcemanager", yarn.url, **env))
    assert holds_no_attack(on_a_terminal(*YTF, "status", application(1)["id"], "--resourcemanager", yarn.url, **env))


@pytest.mark.slow
def test_logs_in_a_pipe_are_unchanged(failed):
    env, app, _ = failed
    done = subprocess.run(
        [*YTF, "logs", app, "--resourcemanager", "local://"], env={**os.environ, **env}, capture_output=True, timeout=60
    )
    assert f"log {EVIL}\n" in done.stdout.decode()

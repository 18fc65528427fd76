"""Errors of both programs as text and exit codes."""

import json
import re
import shlex
import subprocess
import sys
import time

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fake_yarn import FakeYarn, application, serving
from support.hostile_words import DOORS, any_variables_end_well
from support.http_server import Handler, running
from support.programs import ROOT, SUBMIT, YTF, run, run_here
from tf_yarn_ops.cli import main, submit_main
from tf_yarn_ops.cli.command_line import application_of, check_option_values
from tf_yarn_ops.cli.submit import submit
from tf_yarn_ops.cli.ytf import ytf

APP = "application_1700000000000_0001"


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://no-such-host.invalid:8088", f"http://{'a' * 64}:8088"]
)
def test_unreachable_resourcemanager_is_reported_in_seconds(address):
    started = time.monotonic()
    done = run_here(SUBMIT, "--wait", "--json", "--resourcemanager", address, "-r", "worker:1", "x")
    assert done.returncode == 4 and time.monotonic() - started < 60
    report = json.loads(done.stdout)
    assert (report["reason"], report["retryable"]) == ("CLUSTER_UNREACHABLE", True)
    assert f"no ResourceManager answers at {address}" in report["message"] and report["message"] in done.stderr


@pytest.fixture
def stranger():
    """Return the URL of a web server that is no Hadoop."""

    class Wiki(Handler):
        def do_GET(self):
            self.reply(200, {}, "<html>a wiki</html>")

    with running(Wiki) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.slow
def test_server_that_is_not_hadoop_is_reported(stranger):
    done = run_here(SUBMIT, "--resourcemanager", stranger, "-r", "worker:1", "x")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{stranger}/ws/v1/cluster/info" in done.stderr
    assert "answers, but is no YARN ResourceManager: a wiki" in done.stderr


@pytest.mark.parametrize("words", [("report",), ("status",), ("wait",), ("kill",), ("logs",), ("compare", APP)])
def test_mistyped_application_id_is_a_fault_of_the_request(words):
    done = run_here(YTF, *words, "aplication_1_1")
    assert done.returncode == 2
    assert "'aplication_1_1' is not the id of an application, such as application_1700000000000_0001" in done.stderr


@pytest.mark.parametrize(
    "page",
    [
        "http://rm:8088/cluster/app/{}", "http://rm:8088/proxy/{}/", "https://rm:8090/ui2/#/yarn-app/{}/attempts?service=x",
        "https://knox/gateway/mini/yarn/cluster/app/{}#log", "http://127.0.0.1:9000/jobs/{}", "{}",
        f"http://ui:9000/compare?app={{}}&app={APP}2",
    ],
)  # fmt: skip
def test_address_of_a_jobs_page_stands_for_its_id(page):
    assert application_of(page.format(APP)) == APP


@pytest.mark.parametrize(
    "word", [f"/proxy/{APP}", f"{APP}/", f"http://rm/x{APP}", f"http://rm/{APP}x", f"{APP}\n", "http://rm/"]
)
def test_word_without_the_id_of_an_application_has_none(word):
    assert application_of(word) is None


def test_mistyped_command_is_answered_with_the_nearest():
    done = run_here(YTF, "minicluter", "up")
    assert done.returncode == 2 and "no command 'minicluter' (did you mean 'minicluster'?)" in done.stderr


def test_without_an_address_the_ways_to_give_one_are_named(tmp_path):
    done = run(
        YTF, "list", env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "YTF_MINICLUSTER_DIR": str(tmp_path)}
    )
    assert done.returncode == 2
    assert done.stderr.endswith("\nnext: ytf minicluster up\n")
    for way in ("--resourcemanager", "YTF_RESOURCEMANAGER", "site.yaml", "HADOOP_CONF_DIR"):
        assert way in done.stderr


def test_closed_pipe_is_not_an_error():
    command = f"{shlex.join(SUBMIT)} -h | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.split("\n")[0] == "NAME"
    assert done.stderr == ""


@pytest.mark.slow
def test_verbose_shows_each_request_without_its_query():
    yarn = FakeYarn()
    yarn.add(application(1))
    with serving(yarn) as url:
        done = run(YTF, "status", APP, "-v", "--resourcemanager", url, env={"HADOOP_USER_NAME": "ann-secret"})
        quiet = run_here(YTF, "status", APP, "--resourcemanager", url, env={"HADOOP_USER_NAME": "ann-secret"})
    lines = re.findall(rf"^\d\d:\d\d:\d\d (\w+) {url}(\S+) (\d+) \d+ ms$", done.stderr, re.M)
    assert ("GET", f"/ws/v1/cluster/apps/{APP}", "200") in lines
    assert len(lines) == len(yarn.requests) / 2
    assert "user.name" not in done.stderr and "ms" not in quiet.stderr


@pytest.mark.parametrize("word", ["submit", "run"])
def test_ytf_submit_names_the_program_ytf_submit(word):
    done = run_here(YTF, word, "-r", "worker:1", "true")
    assert done.returncode == 2 and f"no command '{word}' (did you mean the program 'ytf-submit'?)" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["echo \udce4"], "character 6 of word 4 is not UTF-8"),
        (["--env", "TOKEN=s3cret\udce4", "x"], "character 13 of word 5 is not UTF-8"),
        *(([option, "gr\udcf6", "x"], "character 3 of word 5 is not UTF-8")
          for option in ("-n", "-o", "-i", "--run_id", "--tag", "--file", "-s", "--spec")),
    ],
)  # fmt: skip
def test_a_word_that_is_not_utf8_is_one_clear_fault(words, says, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ytf-submit", "--dry_run", "-r", "worker:1", *words])
    with pytest.raises(SystemExit) as ended:
        submit_main()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "") and "s3cret" not in shown.err
    assert f"ytf-submit: {says}: convert the script or file that holds it" in shown.err


@pytest.mark.slow
def test_a_variable_that_is_not_utf8_is_one_clear_fault():
    named = {"HADOOP_USER_NAME": "gr\udcf6", "YTF_RESOURCEMANAGER": "http://127.0.0.1:1"}
    for call, env, says in (
        (run, named, "HADOOP_USER_NAME is not UTF-8"),
        (run_here, {"YTF_RESOURCEMANAGER": "gr\udcf6"}, "is not the add"),
    ):
        for program, *words in ((SUBMIT, "-r", "worker:1", "x"), (YTF, "list"), (YTF, "doctor")):
            done = call(program, *words, env=env)
            said = done.stdout + done.stderr
            assert done.returncode == 2 and says in said and "Traceback" not in said, said


def commands_below(command, words=()):
    """Yield the words of each command with its options; those of a group come before the commands below it."""
    ctx = click.Context(command, help_option_names=["-h", "--help"])  # click caches the option
    yield words, [option for option in command.get_params(ctx) if isinstance(option, click.Option)]
    for name in command.list_commands(ctx) if isinstance(command, click.Group) else ():
        yield from commands_below(command.get_command(ctx, name), (*words, name))


@pytest.mark.parametrize("value", ["_f", "_v", "__json", "f"])
def test_word_without_a_dash_is_a_value(value):
    check_option_values(ytf, ["logs", APP, "--task", value], "ytf")


@pytest.mark.parametrize(("program", "command"), [("ytf", ytf), ("ytf-submit", submit)])
def test_no_option_is_the_value_of_another_one(program, command, monkeypatch, capsys):
    """``ytf logs --task -f APP`` would follow nothing, and print the log of a task called ``-f``."""
    seen = 0
    for words, options in commands_below(command):
        names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
        for number, name in enumerate(name for option in options if not option.is_flag for name in option.opts):
            for other in (names[number - 1], names[-1], name.replace("_", "-")):
                monkeypatch.setattr(sys, "argv", [program, *words, name, other, APP])
                with pytest.raises(SystemExit) as ended:
                    (main if program == "ytf" else submit_main)()
                shown = capsys.readouterr()
                assert (ended.value.code, shown.out) == (2, "")
                assert shown.err.endswith(f"\nError: {name!r} needs a value, and {other!r} is an option.\n"), shown.err
                seen += 1
    assert seen > 200


def test_value_that_is_an_option_can_be_written_behind_equals(monkeypatch, capsys):
    for words in (["logs", "--task=-f", "x"], ["logs", "--task", "-x", "x"], ["logs", "--", "--task", "-f"]):
        monkeypatch.setattr(sys, "argv", ["ytf", *words])
        with pytest.raises(SystemExit):
            main()
        assert "needs a value" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "YTF_MINICLUSTER_DIR", "YTF_CACHE"])
def test_folder_whose_name_no_file_system_takes_ends_well(name):
    any_variables_end_well({name: "n" * 300})
    any_variables_end_well({name: "loop"})
    any_variables_end_well({name: "pipe"})


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_no_input_of_a_door_ends_in_a_traceback_or_with_1(door):
    law = DOORS[door]

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        law.check(data.draw(law.strategy))

    check()

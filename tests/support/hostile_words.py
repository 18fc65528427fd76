"""The law of every door: no input ends in a traceback, or with exit code 1, which is that of a failed task.

`DOORS` are run by tests with few examples, and by ``./dev bench fuzz`` with many.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import click
from hypothesis import strategies as st

from support.hostile import HOSTILE
from support.hostile_values import SPECIAL, Law, anything
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.keys import ALL_KEYS
from tf_yarn_ops.azkaban.properties import parse_properties
from tf_yarn_ops.cli.command_line import run_command
from tf_yarn_ops.cli.parameters import ALL, names_of
from tf_yarn_ops.cli.submit import submit
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.declaration import OPERATOR
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.options import options_of
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.request import build_job
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.oozie.commands import oozie
from tf_yarn_ops.oozie.request import read_oozie_request
from tf_yarn_ops.submit.application import build
from tf_yarn_ops.terminal.signals import Interruption

NOW = datetime(2026, 11, 21, 10, 7, tzinfo=timezone.utc)
#: Values that options take, so that an example goes deeper than its first fault.
MEANT = st.sampled_from(
    ["worker:1", "ps:1,worker:2", "chief:1", "worker[0]:1", "worker=true", "A=b", "2", "0.5", "true", "hdfs:///a", "/a",
     "a/b.zip", "docker://a", "venv:///a", "http://a:1", "off", "version", "chief", "on_success", "tf", "*", "0 2 * * *"]
)  # fmt: skip
letters = st.text(st.characters(exclude_categories=()), max_size=12)
texts = MEANT | st.sampled_from(HOSTILE) | letters | SPECIAL.map(str)
values = anything | texts

#: `output_properties` writes a file.
_NAMED = [option for option in ALL if option.name != "output_properties"]


@st.composite
def _options(draw):
    option = draw(st.sampled_from(_NAMED))
    name = draw(st.sampled_from(names_of(option)))
    return [name] if option.is_switch else [name, draw(texts)]


words = st.tuples(
    st.lists(_options() | st.lists(letters, max_size=1), max_size=5).map(
        lambda parts: [w for one in parts for w in one]
    ),
    st.sampled_from([[], ["-r", "worker:1"], ["-r", "chief:1,ps:1", "true"]]),
)


def _fields(*kinds):
    return sorted({name for kind in kinds for name in kind.__dataclass_fields__})


def _mapping(names):
    return st.dictionaries(st.sampled_from(names) | letters, values, max_size=4)


documents = st.dictionaries(
    st.sampled_from(_fields(JobSpec)) | letters,
    values | _mapping(_fields(TaskSpec, RestartPolicy, Deadlines)) | st.dictionaries(texts, texts, max_size=3)
    | st.dictionaries(st.sampled_from(["worker", "ps", "chief"]), _mapping(_fields(TaskSpec)) | values, max_size=2),
    max_size=5,
)  # fmt: skip
files = documents.map(lambda document: json.dumps({"tasks": {"worker": 1}, "command": "true", **document}).encode())


@contextlib.contextmanager
def enter_folder(content=None):
    """Enter an empty folder, with a job's file; a door may read any file, and write none."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            if content is not None:
                Path("job.yaml").write_bytes(content)
            yield Path(folder)
        finally:
            os.chdir(before)


def exit_code(command, *given):
    """Run a command line in this process; return its exit code."""
    with (
        mock.patch.object(sys, "argv", ["x", *given]),
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")),
        contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")),
        mock.patch("logging.basicConfig"),
        Interruption() as interruption,
    ):
        try:
            run_command(command, "x", interruption)
        except SystemExit as ended:
            return ended.code


def _is_environ(text):
    """Return whether the environment of a process can hold a text."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def any_words_end_well(example):
    given, tasks = example
    with enter_folder():
        assert exit_code(submit, "--dry_run", "--offline", *tasks, *given) in (0, 2)


def any_file_ends_well(content):
    with enter_folder(content):
        assert exit_code(submit, "--dry_run", "--offline", "--spec", "job.yaml") in (0, 2)


def any_options_are_a_job(options):
    with contextlib.suppress(SpecInvalid):
        build(build_job(options))


def any_properties_are_read(content):
    with enter_folder() as folder, contextlib.suppress(SpecInvalid):
        properties = content if isinstance(content, dict) else parse_properties(content)
        job, _ = read_azkaban_job({"tf.worker.instances": "1", "tf.command": "true", **properties}, folder)
        build(job)


def any_oozie_request_is_read(example):
    content, options = example
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        read_oozie_request("job.yaml", options, NOW)


#: Commands of ``ytf`` that neither start a program, nor serve, nor write outside of the folder in which they run.
_COMMANDS = (("status",), ("wait",), ("logs",), ("stack",), ("kill",), ("list",), ("report",), ("history",), ("compare",),
             ("cache", "list"), ("schema",), ("convert", "tony"), ("oozie", "package", "--dry-run"))  # fmt: skip
_ids = st.sampled_from(["local_1_1", "local_1795943936118_1", "worker:0"]) | texts


@st.composite
def _calls(draw):
    """Return the words of a command, with options of its own and of others."""
    words = draw(st.sampled_from(_COMMANDS))
    context, command = click.Context(ytf), ytf
    for word in (word for word in words if not word.startswith("-")):
        command = command.get_command(context, word)
    options = [one for one in command.params if isinstance(one, click.Option) and one.name not in ("html", "out")]
    given = []
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else ():
        given += [draw(st.sampled_from(option.opts)), *([] if option.is_flag else [draw(_ids)])]
    address = draw(st.sampled_from([[], ["--resourcemanager", "local://"]]))
    return [*words, *address, *given, *draw(st.lists(_ids, max_size=2))]


def any_call_of_ytf_ends_well(given):
    with enter_folder() as folder, mock.patch.dict(os.environ, {**_NOWHERE, "XDG_STATE_HOME": str(folder)}):
        assert exit_code(ytf, *given) in (0, 2, 3, 4, 9)


#: Variables that lead to a cluster; a test has none.
_NOWHERE = dict.fromkeys(
    ("YTF_RESOURCEMANAGER", "YTF_SITE", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "XDG_CONFIG_HOME", "OOZIE_URL"), ""
)
_VARIABLES = st.dictionaries(
    st.sampled_from([*_NOWHERE, "XDG_STATE_HOME", "YTF_CACHE", "YTF_MINICLUSTER_DIR", "COLUMNS", "KRB5CCNAME"]),
    (texts.filter(lambda text: not text.startswith(("/", "http"))) | st.just("local://")).filter(_is_environ),
    max_size=3,
)


def any_variables_end_well(variables):
    with enter_folder(), mock.patch.dict(os.environ, {**_NOWHERE, **variables}):
        assert exit_code(submit, "--dry_run", "-r", "worker:1", "true") in (0, 2)
        assert exit_code(ytf, "status", "local_1_1") in (2, 3, 4, 9)
        if not re.fullmatch(r"[\w.,:/\[\]-]+", variables.get("YTF_RESOURCEMANAGER", "")):  # it waits for such a host
            assert exit_code(ytf, "list") in (0, 2, 3, 4)


_PACKAGE = {
    option.name: option.multiple
    for option in oozie.commands["package"].params
    if isinstance(option, click.Option) and not option.is_flag
}
_oozie_options = st.dictionaries(st.sampled_from(sorted(_PACKAGE)), texts, max_size=4).map(
    lambda given: {name: (text,) if _PACKAGE[name] else text for name, text in given.items()}
)
_KEYS = sorted(
    key.name.replace("<type>", kind).replace("<index>", "0").replace("<n>", "1").replace("<NAME>", "A")
    for key in ALL_KEYS
    for kind in ("worker", "ps")
)
DOORS = {
    "words": Law(words, any_words_end_well),
    "ytf": Law(_calls(), any_call_of_ytf_ends_well),
    "variables": Law(_VARIABLES, any_variables_end_well),
    "spec": Law(files | st.binary(max_size=60) | letters.map(lambda text: text.encode(errors="replace")), any_file_ends_well),
    "operator": Law(st.dictionaries(st.sampled_from(sorted(options_of(OPERATOR, submission=False))), values, max_size=5),
                    any_options_are_a_job),
    "azkaban": Law(st.dictionaries(st.sampled_from(_KEYS) | letters, texts, max_size=5)
                   | st.binary(max_size=60), any_properties_are_read),
    "oozie": Law(st.tuples(files | st.binary(max_size=60), _oozie_options), any_oozie_request_is_read),
}  # fmt: skip

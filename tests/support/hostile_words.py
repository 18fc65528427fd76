"""The law of every door: no input ends in a traceback, or with exit code 1, which is that of a failed task.

`DOORS` are run by tests with few examples, and by ``./dev bench fuzz`` with many.
"""

import contextlib
import gzip
import json
import os
import re
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock
from xml.sax.saxutils import escape

import click
from hypothesis import strategies as st

from support.hostile import HOSTILE
from support.hostile_values import SPECIAL, Law, anything
from support.programs import call
from tf_yarn_ops.azkaban.convert import CLIENT_OPTIONS
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.keys import ALL_KEYS
from tf_yarn_ops.azkaban.limits import Limits, read_limits
from tf_yarn_ops.azkaban.properties import parse_properties
from tf_yarn_ops.azkaban.tony import BEATS, DATASETS, ENVIRONMENTS, MILLISECONDS, ROLE_FIELDS, ROLE_LISTS
from tf_yarn_ops.cli.command_line import run_command
from tf_yarn_ops.cli.parameters import ALL, names_of
from tf_yarn_ops.cli.submit import submit
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.declaration import OPERATOR
from tf_yarn_ops.doctor.machine import differing_facts, read_machine
from tf_yarn_ops.environments.requirements import _content
from tf_yarn_ops.errors import SpecInvalid, TfYarnError
from tf_yarn_ops.hadoop.cluster import ClusterAnswers, FoundCluster, build_cluster, find_addresses
from tf_yarn_ops.hadoop.configuration import Configuration
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.site import Site, read_site
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
#: Numbers that `int`, `float` or a server can't hold, and digits of other scripts.
NUMBERS = (
    "9" * 5000,
    "1e400",
    "-1e400",
    "inf",
    "nan",
    "-0",
    "1_000",
    "0x10",
    "\u0661",
    "\u00b2",
    "1e308GiB",
    "9" * 30 + "d",
    f"worker:{2**64}",
    "1" * 310,
)
#: Elements of YAML that have no plain value, or that a reader takes for something else.
ELEMENTS = (
    "!!python/name:os.system x", "!!binary x", "!!set {a}", "!!set [a]", "!!omap [a: 1]", "!!pairs [a: 1]", "!!int ''", "!x y",
    "&a [*a]", "&b {b: *b}", "*none", "{<<: x}", "{<<: [1]}", "{? [a]: b}", "{? {a: b}: c}", "{1: 2}", "{~: 1}", "{true: 1}",
    "{.nan: 1}", "{a: 1, a: 2}", "{=: 1}", "2026-13-45", "2026-01-01", "9999-12-31T23:59:59-23:59", "1:1:1", ".inf", ".nan",
    '"\\UFFFFFFFF"', '"\\U00110000"', '"\\ud800"', '"\\0"', "\0", "\ud800", "\x85", "|\n x", "- x", "{", "]", "? ", "%Y 1", "---", "...",
    "[" * 60 + "]" * 60, "&c [x, x, x, x, x, x, x, x, x, x]", "010", "yes", "~", "1.50", "'", *NUMBERS,
)  # fmt: skip
#: Places in the folder of an example that a reader can't read, or should not read for ever.
PLACES = ("folder", "pipe", "loop", "memory", "latin.txt", "bom.yaml", "crlf.sh", "again.txt", "broken.xml", "zero", "deep.tar.gz",
          "requirements://again.txt", "archive://deep.tar.gz", "a=loop", "a=pipe", "a=folder", "hadoop", "bom.yaml/x")  # fmt: skip
letters = st.text(st.characters(exclude_categories=()), max_size=12)
texts = (
    MEANT | st.sampled_from(HOSTILE) | letters | SPECIAL.map(str) | st.sampled_from(PLACES) | st.sampled_from(NUMBERS)
)
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


@st.composite
def yaml_texts(draw, names, start=""):
    """Return a valid start and a few keys, of which most have an element that is none of a job or a site."""
    keys = draw(st.lists(st.sampled_from(names) | letters, min_size=1, max_size=3))
    element = st.sampled_from(ELEMENTS) | letters
    lines = [
        f"{key}: {draw(st.sampled_from(['{}', '[{}]', '{{a: {}}}', '{{worker: {}}}'])).format(draw(element))}"
        for key in keys
    ]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    before = draw(st.sampled_from(["", "", "", "\ufeff", "---\n", "%YAML 9.9\n---\n", "%TAG ! x\n---\n", "\0"]))
    return (before + start + end.join(lines)).encode(errors=draw(st.sampled_from(["surrogatepass", "replace"])))


files = documents.map(
    lambda document: json.dumps({"tasks": {"worker": 1}, "command": "true", **document}).encode()
) | yaml_texts(_fields(JobSpec), "tasks: {worker: 1}\ncommand: 'true'\n")
sites = yaml_texts(_fields(Site)) | _mapping(_fields(Site)).map(lambda document: json.dumps(document).encode())
#: The names that discovery reads; a name of a pair of daemons is ``a`` or ``b``.
_SETTINGS = [
    "fs.defaultFS", "dfs.nameservices", "dfs.ha.namenodes.a", "dfs.namenode.http-address", "dfs.namenode.http-address.a.b",
    "dfs.client.failover.proxy.provider.a", "dfs.http.policy", "fs.viewfs.mounttable.a.link./", "fs.viewfs.mounttable.a.linkMergeSlash",
    "yarn.http.policy", "yarn.resourcemanager.ha.rm-ids", "yarn.resourcemanager.ha.enabled", "yarn.resourcemanager.hostname",
    "yarn.resourcemanager.hostname.a", "yarn.resourcemanager.webapp.address", "yarn.resourcemanager.webapp.address.a",
    "yarn.resourcemanager.address", "yarn.resourcemanager.principal", "yarn.web-proxy.address", "yarn.admin.acl", "yarn.acl.enable",
    "yarn.log.server.url", "yarn.log.server.web-service.url", "yarn.nodemanager.remote-app-log-dir", "yarn.application.classpath",
    "hadoop.security.authentication", "hadoop.user.group.static.mapping.overrides", "mapreduce.jobhistory.webapp.address",
]  # fmt: skip
_settings = st.dictionaries(
    st.sampled_from(_SETTINGS) | letters,
    texts
    | st.sampled_from(["a", "b", "a,b", "hdfs://a", "viewfs://a", "hdfs://a:x", "hdfs://[", "hdfs://[x]", "file:///", "a:1", "a:x",
                       "http://a:99999", "http://[::1", "${fs.defaultFS}", "${env.HOME}", "${user.name}", "${a}${a}", "kerberos",
                       "HTTPS_ONLY", "true", "x:y=z;=", "a=b,c;d"]),
    max_size=6,
)  # fmt: skip
_ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-16", "utf-32", "latin-1", "foo", "hex", "idna", "rot13", "undefined")


@st.composite
def _xml_files(draw, settings):
    """Return a file of Hadoop's configuration: its settings, in any encoding, with an element of others, or cut."""
    values = draw(settings)
    encoding = draw(st.sampled_from(_ENCODINGS))
    pairs = "".join(
        f"<property><name>{escape(a)}</name><value>{escape(b)}</value></property>" for a, b in values.items()
    )
    more = draw(st.sampled_from(["", "", "", "&x;", "&#0;", "<property/>", "<property><name/></property>", "<a>" * 3000 + "</a>" * 3000,
                                 '<xi:include href="/dev/zero" xmlns:xi="http://www.w3.org/2001/XInclude"/>', "<![CDATA[x", "\0"]))  # fmt: skip
    entity = draw(
        st.sampled_from(
            ["", "", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>', '<!DOCTYPE a [<!ENTITY x "&x;">]>']
        )
    )
    text = f'<?xml version="1.0" encoding="{encoding}"?>{entity}<configuration>{pairs}{more}</configuration>'
    written = text.encode("utf-8" if encoding not in ("utf-16", "latin-1") else encoding, errors="replace")
    return written[: draw(st.sampled_from([None, None, None, 90]))]


@contextlib.contextmanager
def enter_folder(content=None):
    """Enter an empty folder, with a job's file; a door may read any file, and write none."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _make_places()
            if content is not None:
                Path("job.yaml").write_bytes(content)
            with mock.patch("tf_yarn_ops.runtime.common.values.PIPE_SECONDS", 0.01):
                yield Path(folder)
        finally:
            os.chdir(before)


def _make_places():
    """Make what `PLACES` names."""
    Path("folder").mkdir()
    os.mkfifo("pipe")
    for name, target in {"loop": "loop", "memory": "/proc/self/mem", "zero": "/dev/zero"}.items():
        os.symlink(target, name)
    for name, content in _CONTENTS.items():
        Path(name).write_bytes(content)
    Path("hadoop").mkdir()
    os.symlink("../broken.xml", "hadoop/core-site.xml")


#: By the name of a place.
_CONTENTS = {
    "latin.txt": b"caf\xe9\n", "bom.yaml": b"\xef\xbb\xbftasks: {worker: 1}\r\ncommand: x\r\n",
    "crlf.sh": b"#!/bin/sh\r\ntrue\r\n", "again.txt": b"-r again.txt\n",
    "broken.xml": b'<?xml version="1.0" encoding="hex"?><configuration/>', "deep.tar.gz": gzip.compress(b"\0" * 2000 + b"x", 1),
}  # fmt: skip


def exit_code(command, *given):
    """Run a command line in this process; return its exit code."""

    def program():
        with Interruption() as interruption:
            run_command(command, "x", interruption)

    return call(program, *given).returncode


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
        for root in (folder, None):
            with contextlib.suppress(SpecInvalid):
                required = {"tf.worker.instances": "1", "tf.command": "true"}
                build(read_azkaban_job({**required, **properties}, folder, root=root)[0])


def any_oozie_request_is_read(example):
    content, options = example
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        read_oozie_request("job.yaml", options, NOW)


_requirements = st.lists(
    st.sampled_from(["-r job.yaml", "-r pipe", "-r loop", "-c zero", "-r latin.txt", "-r a\0b", "-r", "-e .", "a==1", "-r again.txt",
                     "--requirement=memory", "-r " + "n" * 300, "\ufeffa"]) | letters,
    max_size=3,
).map(lambda lines: "\n".join(lines).encode(errors="surrogatepass")) | st.binary(max_size=60)  # fmt: skip


def any_requirements_are_read(content):
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        list(_content(Path("job.yaml")))


#: Commands of ``ytf`` that neither start a program, nor serve, nor write outside of the folder in which they run.
_COMMANDS = (("status",), ("wait",), ("logs",), ("stack",), ("kill",), ("list",), ("report",), ("history",), ("compare",),
             ("cache", "list"), ("schema",), ("convert", "tony"), ("oozie", "package", "--dry-run"), ("exec",),
             ("env", "check"), ("minicluster", "status"), ("doctor",))  # fmt: skip
#: Options of theirs that do.
_ACTING = ("html", "out", "submit", "environment")
_ids = st.sampled_from(["local_1_1", "local_1795943936118_1", "worker:0"]) | texts


@st.composite
def _calls(draw):
    """Return the words of a command, with options of its own and of others."""
    words = draw(st.sampled_from(_COMMANDS))
    context, command = click.Context(ytf), ytf
    for word in (word for word in words if not word.startswith("-")):
        command = command.get_command(context, word)
    options = [one for one in command.params if isinstance(one, click.Option) and one.name not in _ACTING]
    given = []
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else ():
        given += [draw(st.sampled_from(option.opts)), *([] if option.is_flag else [draw(_ids)])]
    address = draw(st.sampled_from([[], ["--resourcemanager", "local://"]]))
    said = [*words, *address, *given, *draw(st.lists(_ids, max_size=2))]
    return [word.replace("\0", "") for word in said]  # as no process can start with it


def any_call_of_ytf_ends_well(given):
    with enter_folder() as folder, _nowhere(XDG_STATE_HOME=str(folder)):
        assert exit_code(ytf, *given) in (0, 2, 3, 4, 5, 9)


def any_site_ends_well(content):
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        answers = ClusterAnswers({}, None, Configuration({"fs.defaultFS": "hdfs://a:1"}), ("http://a:1",))
        _use(build_cluster(answers, FoundCluster(("http://a:1",), "site file"), _SIMPLE, read_site("job.yaml")))


_SIMPLE = SimpleAuthentication("ann", "ann")


def any_configuration_ends_well(content):
    with enter_folder(content) as folder, contextlib.suppress(TfYarnError):
        Path("hadoop/core-site.xml").unlink()
        Path("job.yaml").rename("hadoop/yarn-site.xml")
        found = find_addresses(None, {"HADOOP_CONF_DIR": str(folder / "hadoop"), "HOME": "/a"}, Site())
        for conf in (Configuration({}), Configuration({"fs.defaultFS": "hdfs://a:1"}), found.configuration):
            with contextlib.suppress(TfYarnError):
                _use(build_cluster(ClusterAnswers({}, None, conf, found.urls), found, _SIMPLE, Site()))


def any_settings_end_well(values):
    """The answer of a server at ``/conf``, where the address is known."""
    conf = Configuration.from_conf({"properties": [{"key": key, "value": value} for key, value in values.items()]})
    with contextlib.suppress(TfYarnError):
        found = FoundCluster(("http://a:1",), "--resourcemanager")
        _use(build_cluster(ClusterAnswers({}, None, conf, ("http://a:1",)), found, _SIMPLE, Site()))


def _use(cluster):
    """Let every reader of a cluster's facts read them."""
    for act in (cluster.open_filesystem, cluster.open_logs, lambda: cluster.open_path("hdfs:///a"), lambda: cluster.open_path("a"),
                lambda: cluster.open_namenodes("hdfs://b"), cluster.resourcemanager):  # fmt: skip
        with contextlib.suppress(TfYarnError):
            act()
    cluster.namenodes_of("hdfs:///a"), cluster.namenodes_of("hdfs://b/c"), cluster.logical_name("hdfs://a/b")
    assert cluster.staging and cluster.authentication and cluster.storage_authentication


#: Variables that lead to a cluster; a test has none.
_NOWHERE = dict.fromkeys(
    ("YTF_RESOURCEMANAGER", "YTF_SITE", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "XDG_CONFIG_HOME", "OOZIE_URL"), ""
)


@contextlib.contextmanager
def _nowhere(**variables):
    """Set variables, and wait for no server."""
    with (
        mock.patch.dict(os.environ, {**_NOWHERE, **variables}),
        mock.patch("tf_yarn_ops.hadoop.cluster.DISCOVERY_PATIENCE", 0.1),
    ):
        yield


_VARIABLES = st.dictionaries(
    st.sampled_from([*_NOWHERE, "XDG_STATE_HOME", "YTF_CACHE", "YTF_MINICLUSTER_DIR", "COLUMNS", "KRB5CCNAME"]),
    (texts.filter(lambda text: not text.startswith(("/", "http"))) | st.just("local://")).filter(_is_environ),
    max_size=3,
)


def any_variables_end_well(variables):
    with enter_folder(), _nowhere(**variables):
        assert exit_code(submit, "--dry_run", "-r", "worker:1", "true") in (0, 2)
        assert exit_code(ytf, "status", "local_1_1") in (2, 3, 4, 9)
        if not re.fullmatch(r"[\w.,:/\[\]-]+", variables.get("YTF_RESOURCEMANAGER", "")):  # it waits for such a host
            assert exit_code(ytf, "list") in (0, 2, 3, 4)


def any_limits_end_well(content):
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        limits = read_limits("job.yaml")
        limits.identify(Site())
        for act in (
            lambda: limits.user({"user.to.proxy": "ann"}),
            lambda: limits.check_job(limits.with_deadline(_SMALL)),
        ):
            with contextlib.suppress(SpecInvalid):
                act()


_SMALL = JobSpec(tasks={"worker": 2, "ps": 1}, command="true")
_tony = st.dictionaries(
    st.sampled_from([*MILLISECONDS, *ENVIRONMENTS, *BEATS, *DATASETS, *ROLE_LISTS, *CLIENT_OPTIONS, "tony.worker.resources",
                     "tony.docker.worker.image", "tony.docker.enabled", "worker_env.A", "tony.yarn.queue", "tony.am.memory",
                     "tony.application.tags", "tony.other.namenodes", "tony.containers.resources",
                     *(f"tony.{role}.{field}" for role in ("worker", "chief") for field in ROLE_FIELDS)]) | letters,
    texts, max_size=5,
)  # fmt: skip


def any_job_of_tony_ends_well(example):
    content, values = example
    with enter_folder(content):
        conf = [word for key, text in values.items() for word in ("-conf", f"{key}={text}".replace("\0", ""))]
        assert exit_code(ytf, "convert", "tony", "-conf", "tony.worker.instances=1", *conf) in (0, 2)
        assert exit_code(ytf, "convert", "tony", "job.yaml", *conf) in (0, 2)


_diagnoses = st.fixed_dictionaries({"host": anything, "machine": _mapping(["seen", "user", "site.staging"]) | anything}).map(
    lambda facts: json.dumps({"checks": [{"check": "machine", "facts": facts}]}).encode()
)  # fmt: skip


def any_machine_is_compared(content):
    with enter_folder(content), contextlib.suppress(SpecInvalid):
        host, facts = read_machine("job.yaml")
        differing_facts({host: facts, f"{host}, this machine": {"seen": 0, "user": "ann"}})


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
    "site": Law(sites | st.binary(max_size=60), any_site_ends_well),
    "limits": Law(yaml_texts(_fields(Limits)) | _mapping(_fields(Limits)).map(json.dumps).map(str.encode)
                  | st.binary(max_size=60), any_limits_end_well),
    "tony": Law(st.tuples(_xml_files(_tony) | st.binary(max_size=60), _tony), any_job_of_tony_ends_well),
    "machines": Law(_diagnoses | st.binary(max_size=60), any_machine_is_compared),
    "hadoop files": Law(_xml_files(_settings) | st.binary(max_size=60), any_configuration_ends_well),
    "hadoop conf": Law(_settings, any_settings_end_well),
    "requirements": Law(_requirements, any_requirements_are_read),
}  # fmt: skip

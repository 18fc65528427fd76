"""The limits and defaults of a site."""

import os
import stat

import pytest

from support.azkaban_keys import RUN, limits, read
from support.azkaban_process import USER, finish, submitted
from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.limits import Limits, check_owner, read_limits
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.site import Site


def test_the_sites_defaults_fill_gaps_only(project):
    defaults = Limits(
        defaults={"tf.queue": "batch", "tf.environment": "venv:///v", "tf.strict_placement": True}
    ).defaults
    job, request = read_azkaban_job(RUN, project, defaults)
    assert (job.queue, str(job.environment), request.strict_placement) == ("batch", "venv:///v", True)
    assert read({**RUN, "tf.queue": "mine"}, project, defaults=defaults).queue == "mine"
    assert read({**RUN, "tony.yarn.queue": "mine"}, project, defaults=defaults).queue == "mine"
    assert str(read({**RUN, "tf.docker_image": "i"}, project, defaults=defaults).environment) == "docker://i"


LIMITS = [
    ({"queues": ["batch"]}, "tf.queue: 'default' is not one of the queues that this site allows: batch"),
    ({"tasks": 2}, "tf.<type>.instances: 3 tasks; this site allows 2"),
    ({"memory": "4g"}, "tf.worker.memory: 8192 MiB; this site allows 4096 MiB for a container"),
    ({"vcores": 1}, "tf.worker.vcores: 2; this site allows 1 for a container"),
    ({"gpus": 0}, "tf.worker.gpus: 1; this site allows 0 for a container"),
    ({"total_memory": "8g"}, "tf.<type>.memory: 18432 MiB together; this site allows 8192 MiB for a job"),
    ({"total_vcores": 4}, "tf.<type>.vcores: 6 together; this site allows 4 for a job"),
    ({"total_gpus": 1}, "tf.<type>.gpus: 2 together; this site allows 1 for a job"),
    ({"total_timeout": 3600}, "tf.total_timeout: 604800 s; this site allows 3600"),
]


@pytest.mark.parametrize(("limits", "fault"), LIMITS, ids=[next(iter(limits)) for limits, _ in LIMITS])
def test_the_sites_limits_hold(limits, fault, project):
    job = read({"tf.command": "x", "tf.worker.instances": "2", "tf.worker.vcores": "2", "tf.worker.gpus": "1",
                "tf.ps.instances": "1", "tf.ps.memory": "1g"}, project)  # fmt: skip
    with pytest.raises(SpecInvalid) as caught:
        Limits(**limits).check_job(job)
    assert list(map(str, caught.value.faults)) == [fault]
    Limits(
        queues=("default",),
        tasks=3,
        memory="8g",
        vcores=2,
        gpus=1,
        total_memory="18g",
        total_vcores=6,
        total_gpus=2,
        total_timeout=604800,
    ).check_job(job)


@pytest.mark.parametrize("limits", [{"memory": "8g"}, {"total_memory": "16g"}])
def test_memory_that_grows_is_refused_under_a_limit_of_memory(limits, project):
    job = read({"tf.command": "x", "tf.worker.instances": "1", "tf.memory_growth": "1.5"}, project)
    with pytest.raises(SpecInvalid, match=r"tf.memory_growth: 1.5 could exceed the memory that this site allows"):
        Limits(**limits).check_job(job)
    Limits(vcores=4).check_job(job)


def test_no_container_is_beyond_the_limits(project):
    job = read(
        {
            **RUN,
            "tf.worker.memory": "1g",
            "tf.am_memory": "200g",
            "tf.am_vcores": "9",
            "tf.tensorboard": "true",
            "tf.output": "/x",
            "tf.tensorboard_memory": "300g",
            "tf.tensorboard_vcores": "64",
        },
        project,
    )
    with pytest.raises(SpecInvalid) as caught:
        Limits(tasks=1, memory="2g", total_memory="4g", vcores=2, total_vcores=2).check_job(job)
    assert [str(fault).partition(";")[0] for fault in caught.value.faults] == [
        "tf.<type>.instances: 2 tasks",
        "tf.tensorboard_memory: 307200 MiB",
        "tf.am_memory: 204800 MiB",
        "tf.<type>.memory: 513024 MiB together",
        "tf.tensorboard_vcores: 64",
        "tf.am_vcores: 9",
        "tf.<type>.vcores: 74 together",
    ]
    Limits(tasks=2, memory="300g", total_memory="501g", vcores=64, total_vcores=74, gpus=0, total_gpus=0).check_job(job)


@pytest.mark.parametrize(
    ("allowed", "properties", "user"),
    [
        (False, {"user.to.proxy": "ann"}, None),
        (True, {"user.to.proxy": "ann"}, "ann"),
        (True, {}, None),
        (("ann",), {"user.to.proxy": "ann"}, "ann"),
        (("ann",), {"user.to.proxy": "bob"}, SpecInvalid),
    ],
)
def test_user_to_proxy_counts_only_where_the_site_allows_it(allowed, properties, user):
    limits = Limits(user_to_proxy=allowed)
    if user is SpecInvalid:
        with pytest.raises(SpecInvalid, match="does not let jobs run as 'bob'"):
            limits.user(properties)
    else:
        assert limits.user(properties) == user


@pytest.mark.slow
def test_limits_of_the_site_are_reported_with_all_other_faults(azkaban, yarn, tmp_path):
    path = limits(tmp_path, "tasks: 1\nqueues: [low]\nuser_to_proxy: [ann]\n")
    wrong = {"tf.worker.instances": "2", "tf.files.1": "missing.py", "user.to.proxy": "bob", "tf.tags": "a,b,c"}
    job = azkaban(wrong).start("--limits", path)
    assert job.end() == 2
    assert [line.partition(": ")[0] for line in job.lines[:6]] == [
        "5 faults in the request:",
        "  - tf.queue",
        "  - tf.<type>.instances",
        "  - tf.files.1",
        "  - user.to.proxy",
        "  - tf.tags",
    ]
    job = azkaban(wrong | {"tf.worker.instances": "some"}).start("--limits", path)  # what was meant, nobody knows
    assert job.end() == 2
    assert [line.partition(": ")[0] for line in job.lines[:5]] == [
        "4 faults in the request:",
        "  - tf.worker.instances",
        "  - tf.files.1",
        "  - user.to.proxy",
        "  - tf.tags",
    ]
    assert yarn.requests == []


@pytest.mark.slow
def test_the_sites_limits_are_asked(azkaban, yarn, tmp_path):
    path = limits(tmp_path, "tasks: 1\nqueues: [low]\ndefaults: {tf.queue: low}\n")
    job = azkaban({"user.to.proxy": "ann"}).start("--limits", path)
    assert submitted(yarn)["body"]["queue"] == "low"
    finish(yarn)
    assert job.end() == 0
    assert not any("doAs" in parameters for _, _, parameters, _, _ in yarn.requests), (
        "user.to.proxy does not count here"
    )
    job = azkaban({"tf.queue": "default", "tf.worker.instances": "2"}).start("--limits", path)
    assert job.end() == 2
    assert [line.strip(" -").partition(":")[0] for line in job.lines[1:3]] == ["tf.queue", "tf.<type>.instances"]


@pytest.mark.slow
def test_the_sites_deadline_is_that_of_jobs_without_one(azkaban, tmp_path):
    path = limits(tmp_path, "total_timeout: 3600\n")
    job = azkaban({"tf.dry_run": "true"}).start("--limits", path)
    assert job.end() == 0 and "  total: 3600.0" in job.lines
    job = azkaban({"tf.dry_run": "true", "tf.total_timeout": "60"}).start("--limits", path)
    assert job.end() == 0 and "  total: 60.0" in job.lines
    for own in ({"tf.total_timeout": "7200"}, {"tf.spec": "job.yaml"}):
        job = azkaban({"tf.dry_run": "true", **own})
        (tmp_path / "project" / "job.yaml").write_text("deadlines: {total: 7200}\n")
        job.start("--limits", path)
        assert job.end() == 2
        assert job.lines[-1].endswith("7200 s; this site allows 3600")


@pytest.mark.slow
def test_limits_name_the_keys_as_the_job_wrote_them(azkaban, tmp_path):
    job = azkaban({"tf.dry_run": "true", "tony.worker.memory": "8g", "tony.application.timeout": "-1"})
    job.start("--limits", limits(tmp_path, "memory: 4g\ntotal_timeout: 3600\n"))
    assert job.end() == 2
    assert [line.strip(" -") for line in job.lines[1:3]] == [
        "tony.worker.memory: 8192 MiB; this site allows 4096 MiB for a container",
        "tony.application.timeout: no limit; this site allows 3600 s",
    ], job.lines


@pytest.mark.slow
def test_job_runs_as_its_user_where_the_site_allows_it(azkaban, yarn, tmp_path):
    yarn.user_seen = "ann"
    path = limits(tmp_path, "user_to_proxy: [ann]\n")
    # The fake's file system is a local folder, in which nothing can belong to ann: it ends behind the reservation.
    assert azkaban({"user.to.proxy": "ann"}).start("--limits", path).end() == 3
    asked = {
        (parameters["user.name"], parameters["doAs"])
        for method, _, parameters, _, _ in yarn.requests
        if method == "POST"
    }
    assert asked == {(USER, "ann")}
    job = azkaban({"user.to.proxy": "bob"}).start("--limits", path)
    assert job.end() == 2
    assert job.lines[-1] == "SPEC_INVALID: user.to.proxy: the site does not let jobs run as 'bob', only as ann"
    job = azkaban({"user.to.proxy": "bob", "azkaban.flow.submituser": "bob"}).start("--limits", path)
    assert job.end() == 2
    assert job.lines[-1] == (
        "SPEC_INVALID: user.to.proxy: the site does not let jobs run as 'bob', who started the flow; Azkaban takes this user because "
        "the job sets no other user; set one of ann"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("text", "mode", "fault"), [
    ("tasks: 1", 0o664, "users other than root could have written it"),
    ("tasks: 1", 0o646, "users other than root could have written it"),
    ("task: 1", 0o644, "task: unknown key (did you mean 'tasks'?)"),
    ("tasks: 0\nmemory: x", 0o644, "tasks: 0 is not a whole number"),
    ("- 1", 0o644, "a list is not a mapping"), ("a: [", 0o644, "not YAML, line 1"),
    ("defaults: {tf.que: x}", 0o644, "defaults.tf.que: unknown key (did you mean 'tf.queue'?)"),
    ("environ: [x]", 0o644, "a list is not a mapping of variables to values"),
    ("environ: {PORT: 8088, A-B: x}", 0o644, "environ.A-B: not a variable with a text; put numbers and true into"),
    ("defaults: [x]", 0o644, "not a mapping of tf.* keys"),
])  # fmt: skip
def test_limits_that_are_wrong_are_refused(tmp_path, text, mode, fault):
    with pytest.raises(SpecInvalid) as caught:
        read_limits(limits(tmp_path, text, mode))
    assert fault in str(caught.value)


def test_limits_that_are_named_have_to_be_there(tmp_path):
    with pytest.raises(SpecInvalid, match="can't be read"):
        read_limits(str(tmp_path / "nope"))


@pytest.mark.slow
def test_file_of_a_user_does_not_set_limits_of_the_site():
    status = list(os.stat(__file__))
    status[stat.ST_MODE], status[stat.ST_UID] = 0o100644, os.getuid() + 12345
    with pytest.raises(SpecInvalid, match="users other than root could have written it"):
        check_owner(os.stat_result(status))


@pytest.mark.slow
def test_the_limits_keytab_wins_over_the_site_files(tmp_path):
    found = read_limits(limits(tmp_path, "keytab: /etc/azkaban.keytab\n"))
    site = Site(keytab="/etc/own.keytab", principal="own@EXAMPLE.COM", staging="/x")
    assert found.identify(site) == Site(keytab="/etc/azkaban.keytab", staging="/x")
    named = read_limits(limits(tmp_path, "principal: azkaban@EXAMPLE.COM\n"))
    assert named.identify(Site()).tickets.principal == "azkaban@EXAMPLE.COM"
    assert named.identify(site) == Site(keytab="/etc/own.keytab", principal="azkaban@EXAMPLE.COM", staging="/x")
    both = read_limits(limits(tmp_path, "keytab: /etc/azkaban.keytab\nprincipal: azkaban@EXAMPLE.COM\n"))
    assert both.identify(site) == Site(keytab="/etc/azkaban.keytab", principal="azkaban@EXAMPLE.COM", staging="/x")
    assert read_limits(limits(tmp_path, "tasks: 1\n")).identify(site) is site
    with pytest.raises(SpecInvalid, match=r"keytab: 'azkaban\.keytab' is not an absolute path"):
        read_limits(limits(tmp_path, "keytab: azkaban.keytab\n"))

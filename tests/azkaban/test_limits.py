"""The limits and defaults of a site."""

import pytest

from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.azkaban.limits import Limits
from tf_yarn_ops.errors import SpecInvalid

ONE = {"tf.worker.instances": "1"}

RUN = {**ONE, "tf.command": "run"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "mnist.py").write_text("")
    (tmp_path / "src" / "models" / "cnn.py").write_text("")
    (tmp_path / "src" / ".git").mkdir()
    return tmp_path


def read(properties, folder, **settings):
    return read_azkaban_job(properties, folder, **settings)[0]


def test_the_sites_defaults_fill_gaps_only(project):
    defaults = Limits(defaults={"tf.queue": "batch", "tf.environment": "venv:///v", "tf.strict_placement": True}).defaults
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
    Limits(queues=("default",), tasks=3, memory="8g", vcores=2, gpus=1, total_memory="18g", total_vcores=6, total_gpus=2,
           total_timeout=604800).check_job(job)


def test_no_container_is_beyond_the_limits(project):
    job = read({**RUN, "tf.worker.memory": "1g", "tf.am_memory": "200g", "tf.am_vcores": "9", "tf.tensorboard": "true",
                "tf.output": "/x", "tf.tensorboard_memory": "300g", "tf.tensorboard_vcores": "64"}, project)
    with pytest.raises(SpecInvalid) as caught:
        Limits(tasks=1, memory="2g", total_memory="4g", vcores=2, total_vcores=2).check_job(job)
    assert [str(fault).partition(";")[0] for fault in caught.value.faults] == [
        "tf.<type>.instances: 2 tasks", "tf.tensorboard_memory: 307200 MiB", "tf.am_memory: 204800 MiB",
        "tf.<type>.memory: 513024 MiB together", "tf.tensorboard_vcores: 64", "tf.am_vcores: 9",
        "tf.<type>.vcores: 74 together"]
    Limits(tasks=2, memory="300g", total_memory="501g", vcores=64, total_vcores=74, gpus=0, total_gpus=0).check_job(job)


@pytest.mark.parametrize(("allowed", "properties", "user"), [
    (False, {"user.to.proxy": "ann"}, None), (True, {"user.to.proxy": "ann"}, "ann"), (True, {}, None),
    (("ann",), {"user.to.proxy": "ann"}, "ann"), (("ann",), {"user.to.proxy": "bob"}, SpecInvalid)])
def test_user_to_proxy_counts_only_where_the_site_allows_it(allowed, properties, user):
    limits = Limits(user_to_proxy=allowed)
    if user is SpecInvalid:
        with pytest.raises(SpecInvalid, match="does not let jobs run as 'bob'"):
            limits.user(properties)
    else:
        assert limits.user(properties) == user

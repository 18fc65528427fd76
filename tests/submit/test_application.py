"""The whole request to Skein, held by golden files for three canonical jobs."""

import dataclasses
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.hostile import HOSTILE, request_is_plain
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.cluster import Cluster, NodeFacts, SecurityFacts, StorageFacts
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Acls, Environment, Resources, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import ViewersPlan, dump_job, load_job
from tf_yarn_ops.submit.application import (
    build,
    build_runtime_job,
    coordinator_ports,
    place_environments,
    plan_history,
    plan_runtime_job,
    plan_viewers,
)
from tf_yarn_ops.submit.certificate import mint

GOLDEN = Path(__file__).parent / "golden"
MNIST = "python ${DTF_TASK_SCRIPT} --job_name ${DTF_TASK_JOB_NAME} --task_index ${DTF_TASK_INDEX}"
JOBS = {
    "seed": JobSpec(
        command=MNIST,
        tasks={"ps": TaskSpec(instances=2), "worker": TaskSpec(instances=4)},
        script="/home/user1/mnist/mnist.py",
        input="/home/user1/mnist/data",
        output="/home/user1/mnist/train10",
        tensorboard=TensorBoard(),
    ),
    "everything": JobSpec(
        command="train",
        name="Every thing",
        queue="low",
        user="ann",
        priority=3,
        tags=("Team-A",),
        node_label="x",
        tasks={
            "chief": TaskSpec(memory="4 GiB", vcores=2, gpus=1, node_label="gpu", command="lead", env={"K": "1"}),
            "worker": TaskSpec(instances=3, memory=2048, indices={1: Resources(4096, 2, 1)}),
            "evaluator": TaskSpec(
                memory=1024,
                hold_port=False,
                environment="hdfs://nn/cpu.zip",
                max_restarts=0,
                max_container_losses=0,
                resources={"example.com/chip": 2},
            ),
        },
        env={"L": "$x 'y'\n"},
        files={"digits.py": "/src/digits.py"},
        archives={"data": "hdfs://nn/data.tgz", "cpu": "hdfs://nn/cpu.zip"},
        environment=Environment.parse("hdfs://nn/env.tar.gz"),
        success="chief",
        restart=RestartPolicy("task", max_container_losses=1),
        file_systems=("hdfs://other",),
        acls=Acls(view_users=("bob",), ui_users=("*",)),
        am_memory=2048,
        am_vcores=2,
    ),
    "docker": JobSpec(
        command="python train.py",
        tasks={"worker": TaskSpec(instances=2)},
        environment=Environment.parse("docker://tensorflow/tensorflow:2.16.1"),
        input="/data/in",
        output="hdfs://nn/out",
    ),
}


def rendered(spec):
    application = build(spec, Site(docker_folders=("/opt/hadoop",)))
    job = build_runtime_job(spec)._replace(
        ports=coordinator_ports(21000), resourcemanagers=("http://rm:8088",), user=spec.user or "me"
    )
    job = dump_job(job).decode()
    return application.to_yaml() + "---\n" + job + "\n"


@pytest.mark.parametrize("name", JOBS)
def test_the_request_is_what_it_was(name):
    golden = GOLDEN / f"{name}.yaml"
    text = rendered(JOBS[name])
    if os.environ.get("ACCEPT_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text(), (
        f"the request of the {name!r} job changed; if that is meant, accept it with "
        "ACCEPT_GOLDEN=1 ./dev test fast -k test_the_request_is_what_it_was and read the diff"
    )


def test_building_twice_gives_the_same():
    assert rendered(JOBS["everything"]) == rendered(JOBS["everything"])


def test_no_word_of_the_user_reaches_the_scripts():
    for spec in JOBS.values():
        application = build(spec)
        for part in (application.master, *application.services.values()):
            words = " ".join(part.script.split())
            assert not any(text in words for text in ("mnist", "train", "lead", "$x", "user1"))


def test_only_the_coordinator_decides():
    for spec in JOBS.values():
        application = build(spec)
        assert application.max_attempts == 1
        assert all(service.allow_failures for service in application.services.values())


def test_skein_replaces_up_to_the_allowed_losses_of_a_type():
    tasks = {"ps": TaskSpec(), "worker": TaskSpec(max_container_losses=1)}
    spec = JobSpec(command="x", tasks=tasks, restart=RestartPolicy("task", 5, max_container_losses=2))
    assert {name: service.max_restarts for name, service in build(spec).services.items()} == {"ps": 2, "worker": 1}


def test_indices_with_other_resources_become_services_of_their_own():
    application = build(JOBS["everything"])
    job = yaml.safe_load(dump_job(build_runtime_job(JOBS["everything"])))
    assert job["services"]["worker"] == {"type": "worker", "indices": [0, 2], "memory": 2048, "vcores": 1, "gpus": 0,
                                         "resources": {}}  # fmt: skip
    assert job["services"]["worker.1"] == {"type": "worker", "indices": [1], "memory": 4096, "vcores": 2, "gpus": 1,
                                           "resources": {}}  # fmt: skip
    big = application.services["worker.1"]
    assert (big.instances, big.resources.memory, big.resources.vcores, big.resources.gpus) == (1, 4096, 2, 1)
    assert application.services["worker"].instances == 2


CLUSTER = Cluster(
    ("http://rm:8088",),
    "me",
    "me",
    StorageFacts("hdfs://nn", "hdfs://nn", "/user/{user}/.skein"),
    security=SecurityFacts(administrators=ViewersPlan(("yarn",), ("ops",), {"eve": ("ops",)})),
)


@pytest.mark.parametrize("asks, acls, users, groups", [
    (False, Acls(), None, None),
    (True, Acls(), ("yarn",), ("ops",)),
    (False, Acls(modify_users=("ann",)), ("yarn",), ("ops",)),
    (True, Acls(view_users=("bob",), view_groups=("ml",), ui_users=("*",)), ("bob", "*", "yarn"), ("ml", "ops")),
])  # fmt: skip
def test_viewers_are_those_of_the_job_and_the_administrators(asks, acls, users, groups):
    spec = dataclasses.replace(JOBS["docker"], acls=acls)
    viewers = plan_viewers(
        dataclasses.replace(CLUSTER, security=dataclasses.replace(CLUSTER.security, enforces_acls=asks)), spec
    )
    assert viewers == (None if users is None else ViewersPlan(users, groups, {"eve": ("ops",)}))
    job = build_runtime_job(spec)._replace(viewers=viewers)
    application = build(spec, job=job)
    assert (application.acls.enable, application.acls.ui_users) == ((True, ["*"]) if viewers else (False, []))
    assert load_job(dump_job(job)).viewers == (viewers and ViewersPlan(*map(json_like, viewers)))


def json_like(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "resourcemanager, namenode, travel",
    [
        ("http://rm:8088", "http://nn:9870", False),
        ("https://rm:8090", "http://nn:9870", True),
        ("http://rm:8088", "https://nn:9871", True),  # the coordinator writes the record there
    ],
)
def test_the_cas_travel_where_the_coordinator_asks_over_https(tmp_path, resourcemanager, namenode, travel):
    (tmp_path / "ca.pem").write_bytes(mint().certificate)
    cluster = Cluster(
        (resourcemanager,),
        "ann",
        "ann",
        StorageFacts("hdfs://nn", "hdfs://nn", "/user/{user}/.skein", webhdfs=(namenode,)),
        site=Site(ca_file=str(tmp_path / "ca.pem")),
    )
    found = plan_runtime_job(cluster, JOBS["docker"], 1).authorities
    assert found.startswith("-----BEGIN CERTIFICATE") if travel else found == ""


@pytest.mark.parametrize(
    "site, known, kerberos, urls",
    [
        (Site(namenodes={"hdfs://nn": ("http://nn:9870",)}), (), False, ("http://nn:9870",)),
        (Site(namenodes={"hdfs://nn": ("http://nn:9870",)}), ("http://other:9870",), True, ("http://nn:9870",)),
        (Site(), ("http://nn:50070",), True, ("http://nn:50070",)),
        (Site(), ("http://nn:50070",), False, ("http://httpfs:14000",)),
        (Site(), (), True, ("http://httpfs:14000",)),
    ],
)
def test_nodes_go_past_an_httpfs_to_the_namenodes(site, known, kerberos, urls):
    """An HttpFS does not know the NameNodes' tokens, which are those of the containers."""
    storage = StorageFacts("hdfs://nn", "hdfs://nn", "/.skein", webhdfs=("http://httpfs:14000",))
    security, nodes = SecurityFacts(kerberos=kerberos), NodeFacts(namenodes=known)
    cluster = Cluster(("http://rm:8088",), "ann", "ann", storage, security, nodes=nodes, site=site)
    job = plan_runtime_job(cluster, JobSpec(output="hdfs:///models/digits", commit="new", mirror="all", **ONE), 1)
    assert {job.namenodes["nn"], job.namenodes[""], job.history.urls} == {urls}


@pytest.mark.parametrize("inside, urls", [(None, ("http://nn:9870",)), (("http://rm:8088",), None)])
def test_nodes_write_the_history_to_another_scheme_by_the_known_addresses(inside, urls):
    """Behind a gateway they have no login there."""
    storage = StorageFacts("viewfs://m", "viewfs://m", "/.skein", webhdfs=("http://nn:9870",))
    plan = plan_history(
        Cluster(("http://rm:8088",), "ann", "ann", storage, nodes=NodeFacts(resourcemanagers=inside)), Acls()
    )
    assert (plan and plan.urls) == urls


#: Fields of a job that YARN's scripts may hold, with the job that has a text there.
SCRIPTED = {
    "files": lambda text: JobSpec(files={text: "/x"}, **ONE),
    "archives": lambda text: JobSpec(archives={text: "/x.tgz"}, **ONE),
    "script": lambda text: JobSpec(script=f"/x/{text}", **ONE),
    "source": lambda text: JobSpec(files={"x": f"hdfs://nn/x/{text}"}, **ONE),
    "decoded": lambda text: JobSpec(files={"x": f"hdfs://nn/x/{quote(text)}"}, **ONE),
    "archive": lambda text: JobSpec(environment=f"hdfs://nn/{text}.tar.gz", **ONE),
    "image": lambda text: JobSpec(environment=f"docker://{text}", **ONE),
    "input": lambda text: JobSpec(environment="docker://tf", input=f"/x/{text}", **ONE),
    "output": lambda text: JobSpec(environment="docker://tf", output=f"/x/{text}", **ONE),
    "python": lambda text: JobSpec(environment=f"python:///{text}", **ONE),
    "user": lambda text: JobSpec(user=text, **ONE),
    "env": lambda text: JobSpec(env={"A": text}, **ONE),
    "variable": lambda text: JobSpec(env={text: "a"}, **ONE),
    "type": lambda text: JobSpec(command="true", tasks={text: 1}, custom_types=[text]),
    "name": lambda text: JobSpec(name=text, **ONE),
    "queue": lambda text: JobSpec(queue=text, node_label=text, **ONE),
    "tag": lambda text: JobSpec(tags=[text], acls=Acls(view_users=(text,), modify_groups=(text,)), **ONE),
}
ONE = {"command": "true", "tasks": {"worker": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("field", SCRIPTED)
def test_no_script_of_yarn_has_a_text_that_bash_expands(field):
    taken = [text for text in HOSTILE if request_is_plain(lambda text=text: SCRIPTED[field](text))]
    if field in ("files", "archives", "script", "env", "name", "queue"):
        assert set(HOSTILE) == set(taken)
    assert "$(touch pwned)" not in taken or field not in ("source", "decoded", "archive", "image", "input", "user")


@given(st.sampled_from(sorted(SCRIPTED)), st.text(max_size=300) | st.text("$`\"'\\{}:%\n a", max_size=20))
def test_any_text_is_refused_or_never_expanded(field, text):
    request_is_plain(lambda: SCRIPTED[field](text))


@pytest.mark.parametrize("own", [None, "/pack.tar.gz", "/other.tar.gz"])
def test_each_file_has_one_link_and_an_environment_its_own_name(own):
    """Of two links to one file YARN makes only the last one."""
    spec = JobSpec(
        command="true",
        tasks={"worker": 1, "ps": TaskSpec(environment=own)},
        environment=Environment.parse("/pack.tar.gz"),
        files={"a": "/x", "b": "/x", "$(x)": "/x"},
        archives={"c": "/y.zip", "e": "/pack.tar.gz", "f": "/other.tar.gz"},
    )
    given, environments = {**spec.files, **spec.archives}, place_environments(spec)
    types = build_runtime_job(spec).types
    for name, service in build(spec).services.items():
        files, links = {key: file.source for key, file in service.files.items()}, types[name].links
        assert len({*files.values()}) == len(files) and not {*links} & {*files}
        assert {*environments.get(name, environments[""]).archives} <= {*files}
        assert {name: files[links.get(name, name)] for name in given} == {
            name: f"file://{source}" for name, source in given.items()
        }


def test_odd_names_travel_under_plain_ones():
    spec = JobSpec(files={"a.csv": "/a", "2026-01-01T00:00.json": "/b", "$(x)": "/c"}, **ONE)
    [links] = [plan.links for plan in build_runtime_job(spec).types.values()]
    assert links == {"2026-01-01T00:00.json": ".ytf.link1", "$(x)": ".ytf.link2"}
    files = build(spec).services["worker"].files
    assert {key: files[key].source for key in ("a.csv", ".ytf.link1", ".ytf.link2")} == {
        "a.csv": "file:///a", ".ytf.link1": "file:///b", ".ytf.link2": "file:///c",
    }  # fmt: skip


@pytest.mark.parametrize("values", [{"user": "$(touch pwned)"}, {"staging_template": "/user/`x`/{user}"}])
def test_a_cluster_has_no_text_that_bash_expands(values):
    facts = {"user": "ann", "staging_template": "/user/{user}/.skein"} | values
    with pytest.raises(SpecInvalid, match="would be a part of YARN's launch script, where bash expands it"):
        Cluster(
            ("http://rm:8088",), facts["user"], "ann", StorageFacts("hdfs://nn", "hdfs://nn", facts["staging_template"])
        )

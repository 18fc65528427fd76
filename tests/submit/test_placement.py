"""Queues, node labels and nodes as the ResourceManager lists them: what is refused, and what is a warning."""

import pytest

from support.fake_yarn import FakeYarn, amount, serving
from tf_yarn_ops.errors import ClusterUnreachable, ResourcesImpossible, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import current_user, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.submit.placement import Surroundings, check_placement, label_faults, queue_faults, warn_about_nodes

LABELS = {"gpu": True, "spare": False}


def queue(name, **fields):
    return {"type": "capacitySchedulerLeafQueueInfo", "queueName": name, "state": "RUNNING", **fields}


def scheduler(*queues):
    return {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": list(queues)}}


SCHEDULER = scheduler(queue("default", nodeLabels=["*"]), queue("small", nodeLabels="gpu"), queue("low"))


def node(label="", memory=4096, gpus=0):
    return {"totalResource": amount(memory, 8, gpus), **({"nodeLabels": [label]} if label else {})}


def job(label=None, name="default", **labels):
    tasks = {task: TaskSpec(memory=512, node_label=own) for task, own in (labels or {"worker": None}).items()}
    return JobSpec(command="true", queue=name, node_label=label, tasks=tasks, am_memory=512)


@pytest.mark.parametrize(
    "spec, says",
    [
        (
            job(worker="gpuu"),
            "there is no node label 'gpuu' (did you mean 'gpu'?), which worker asks for; the cluster has gpu, spare",
        ),
        (job("cpu", worker="gpu", ps="cpu"), "there is no node label 'cpu'"),
        (job("nope", worker="nope"), "which the job and worker ask for"),
        (job("gpu && spare"), "there is no node label 'gpu && spare'"),
        (
            job(name="low", worker="gpu"),
            "queue 'low' may not use node label 'gpu', which worker asks for; these may: default, small",
        ),
        (
            job(name="small", worker="spare"),
            "queue 'small' may not use node label 'spare', which worker asks for; these may: default",
        ),
    ],
)
def test_labels_that_can_not_be_had_are_refused(spec, says):
    assert says in "".join(label_faults(spec, Surroundings(SCHEDULER, labels=LABELS)))


def test_every_wrong_label_is_named_at_once():
    faults = label_faults(job("x", name="low", worker="gpu", ps="y"), Surroundings(SCHEDULER, labels=LABELS))
    assert [fault.partition(", which")[0] for fault in faults] == [
        "there is no node label 'x'",
        "there is no node label 'y'",
        "queue 'low' may not use node label 'gpu'",
    ]


def test_a_cluster_without_labels_says_so_once():
    assert label_faults(job("ssd", worker="gpu", ps="gpu"), Surroundings(SCHEDULER, labels={})) == [
        "the cluster has no node labels, and the job and worker and ps ask for 'ssd' and 'gpu'"
    ]


UNLABELLED = scheduler(queue("default"), queue("ml", nodeLabels=["gpu"]), queue("closed", state="STOPPED"))


@pytest.mark.parametrize("name", ["default", "root.default"])
def test_what_comes_to_the_default_queue_may_be_mapped_to_another(name, caplog):
    assert label_faults(job(name=name, worker="gpu"), Surroundings(UNLABELLED, labels=LABELS)) == []
    assert f"queue {name!r} may not use node label 'gpu', which worker asks for; these may: ml; " in caplog.text
    assert "YARN refuses the job, unless it maps it to another queue" in caplog.text
    assert queue_faults(name, scheduler(queue("ml"))) == []
    assert f"there is no queue {name!r}; the cluster has ml; YARN refuses" in caplog.text
    [unknown] = label_faults(job(name=name, worker="gup"), Surroundings(UNLABELLED, labels=LABELS))
    assert unknown.startswith("there is no node label 'gup' (did you mean 'gpu'?)")
    [stopped] = queue_faults("closed", UNLABELLED)
    assert "STOPPED" in stopped


@pytest.mark.parametrize(
    "spec, described",
    [
        (job("gpu", worker="spare"), SCHEDULER),
        (job("gpu", name="small"), SCHEDULER),
        (job(name="root.small", worker="gpu"), SCHEDULER),
        (job("gpu", name="low"), scheduler(queue("low"), queue("default"))),  # no queue tells: an older Hadoop
        (job("gpu"), {"type": "fairScheduler"}),
        (job(), SCHEDULER),
    ],
)
def test_labels_that_can_be_had_are_not_refused(spec, described):
    assert label_faults(spec, Surroundings(described, labels=LABELS)) == []


@pytest.mark.parametrize(
    "spec, nodes, says",
    [
        (job(worker="gpu"), [node()], "the cluster has no running node with label 'gpu' now, for worker"),
        (job(), [node("gpu")], "the cluster has no running node without a label now, for worker"),
        (job(), [], "the cluster has no running node now"),
        (
            job(worker="gpu"),
            [node(memory=9000), node("gpu", memory=256)],
            "no node with label 'gpu' could hold worker, which asks for 512 MiB, 1 vcores, 0 GPUs; "
            "the largest of 1 nodes with label 'gpu': 256 MiB, 8 vcores, 0 GPUs",
        ),
        (job("gpu"), [node(), node("gpu", memory=256)], "no node with label 'gpu' could hold the application master"),
        (
            job(worker="gpu", ps=None),
            [node(memory=256), node("gpu", memory=256)],
            "no node could hold the application master, which asks for 512 MiB, 1 vcores, 0 GPUs; the largest of 2 nodes",
        ),
        (job(worker="gpu", ps=None), [node(memory=256), node("gpu")], "no node could hold ps, which asks for 512 MiB"),
    ],
)
def test_only_nodes_of_a_containers_label_count(spec, nodes, says, caplog):
    with pytest.raises(ResourcesImpossible) as raised:
        warn_about_nodes(spec, Surroundings(SCHEDULER, nodes, LABELS), True)
    assert says in str(raised.value)
    warn_about_nodes(spec, Surroundings(SCHEDULER, nodes, LABELS), False)
    assert says in caplog.text and caplog.text.rstrip().endswith("; the job waits until the cluster has room for it")


def gang(instances, **sizes):
    return JobSpec(command="true", tasks={"worker": TaskSpec(instances=instances, **sizes)}, am_memory=512)


@pytest.mark.parametrize(
    "spec, described, says",
    [
        (
            gang(3, memory=3000),
            SCHEDULER,
            "the job asks for 9512 MiB, 4 vcores, 0 GPUs in 4 containers, and its tasks start together; the 2 running nodes "
            "have 8192 MiB, 16 vcores, 2 GPUs in all; ask for less memory per task (at most 3000 MiB now) or fewer tasks",
        ),
        (gang(3, memory=512, gpus=1), SCHEDULER, "the job asks for 2048 MiB, 4 vcores, 3 GPUs in 4 containers"),
        (
            gang(2, memory=2000),
            scheduler(queue("default", absoluteMaxCapacity=50.0)),
            "have 8192 MiB, 16 vcores, 2 GPUs in all, of which the queue may use 4096 MiB",
        ),
    ],
)
def test_job_larger_than_all_nodes_or_its_queue_is_doubted(spec, described, says, caplog):
    nodes = [node(gpus=1), node(gpus=1)]
    warn_about_nodes(spec, Surroundings(described, nodes, {}), False)
    assert says in caplog.text
    with pytest.raises(ResourcesImpossible, match="in all"):
        warn_about_nodes(spec, Surroundings(described, nodes, {}), True)
    caplog.clear()
    warn_about_nodes(gang(2, memory=1000, gpus=1), Surroundings(described, nodes, {}), True)
    assert not caplog.text


def test_a_job_may_take_all_memory_of_the_nodes():
    """The application master takes 512 MiB of 8192."""
    around = Surroundings(SCHEDULER, [node(), node()], {})
    check_placement(gang(2, memory=3840), around, True)
    with pytest.raises(ResourcesImpossible, match="the job asks for 8194 MiB"):
        check_placement(gang(2, memory=3841), around, True)


@pytest.mark.parametrize(
    "spec, nodes",
    [
        (job(worker="gpu"), [node(), node("gpu")]),
        (job("gpu"), [node("gpu")]),
        (job("gpu", worker="spare"), [node("gpu"), node("spare")]),
        (job(), [node("spare")]),  # whoever names no label may run there while it is idle
    ],
)
def test_nodes_of_the_right_label_are_enough(spec, nodes, caplog):
    warn_about_nodes(spec, Surroundings(SCHEDULER, nodes, LABELS), True)
    assert not caplog.text


@pytest.mark.parametrize(
    "around",
    [
        Surroundings(SCHEDULER, [node("gpu")], None),  # unknown labels
        Surroundings({"type": "fairScheduler"}, [node("gpu")], LABELS),  # knows no partitions
    ],
)
def test_where_labels_are_unknown_every_node_counts(around, caplog):
    warn_about_nodes(job(), around, True)
    warn_about_nodes(job(worker="spare"), around, True)
    assert not caplog.text


def test_the_masters_own_setting_of_yarn_is_not_known():
    warn_about_nodes(job(worker="gpu"), Surroundings(SCHEDULER, [node("gpu")], LABELS), True)


def test_a_queues_own_label_counts_for_who_names_none():
    described = scheduler(queue("default", nodeLabels=["gpu"], defaultNodeLabelExpression="gpu"))
    warn_about_nodes(job(), Surroundings(described, [node("gpu")], LABELS), True)
    with pytest.raises(ResourcesImpossible, match="no running node with label 'gpu' now"):
        warn_about_nodes(job(), Surroundings(described, [node()], LABELS), True)


def test_share_of_a_queue_counts_without_labels_only():
    """The share of a queue is one of the nodes without a label."""
    wants = JobSpec(command="true", tasks={"worker": TaskSpec(memory=2048, instances=3)}, am_memory=512)
    half = scheduler(queue("default", nodeLabels=["*"], absoluteMaxCapacity=50))
    nodes = [node(), node()]
    warn_about_nodes(wants, Surroundings(half, nodes, LABELS), True)
    with pytest.raises(ResourcesImpossible, match="the queue may use 4096 MiB"):
        warn_about_nodes(wants, Surroundings(half, nodes, {}), True)


def test_tensorboard_runs_where_the_job_does():
    spec = JobSpec(
        command="true",
        tasks={"worker": TaskSpec(memory=512, node_label="gpu")},
        output="/out",
        tensorboard=TensorBoard(memory=3000),
    )
    with pytest.raises(ResourcesImpossible, match="no node could hold tensorboard"):
        warn_about_nodes(spec, Surroundings(SCHEDULER, [node(memory=2000), node("gpu", memory=9000)], LABELS), True)


@pytest.fixture
def place(tmp_path):
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}",
        "yarn.application.classpath": "/opt/hadoop/*",
    }
    with serving(yarn) as url:
        user = current_user({})
        launcher = Launcher(discover(url, {"HOME": "/nowhere", "HADOOP_USER_NAME": user}, site=Site()))
        yield yarn, launcher
        launcher.close()


def test_a_job_learns_all_that_is_wrong_before_an_id_is_reserved(place):
    yarn, launcher = place
    yarn.labels = {"gpu": True}
    spec = JobSpec(command="true", queue="defualt", tasks={"worker": TaskSpec(memory=99999, node_label="gup")})
    with pytest.raises(SubmissionRejected) as raised:
        launcher.submit(spec)
    first, *rest = str(raised.value).split("\n  - ")
    assert first == "3 faults in the request:" and [line.partition("; ")[0] for line in rest] == [
        "there is no queue 'defualt' (did you mean 'default'?)",
        "there is no node label 'gup' (did you mean 'gpu'?), which worker asks for",
        "worker asks for 99999 MiB, 1 vcores, 0 GPUs",
    ]
    assert not yarn.count("POST", "/")


JSON = {"Content-Type": "application/json"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        (404, JSON, "{}"),
        (403, JSON, '{"RemoteException": {"message": "not for you"}}'),
        (400, JSON, "{}"),
        (200, JSON, '{"nodeLabels": ["gpu"]}'),
        (200, JSON, '{"nodeLabelInfo": "gpu"}'),
        (200, JSON, ""),
    ],
)
@pytest.mark.parametrize("labels", [{"worker": "gpu"}, {}])
def test_yarn_decides_where_it_hides_its_labels(place, answer, labels):
    yarn, launcher = place
    yarn.nodes.append(node("gpu"))
    yarn.faults.append(lambda method, path: answer if path.endswith("/get-node-labels") else None)
    launcher.submit(job(**labels))
    assert yarn.count("POST", "/ws/v1/cluster/apps")


@pytest.mark.parametrize(
    "page, text",
    [
        *((page, text) for page in ("scheduler", "nodes") for text in ("", "[]", '{"nodes": "x", "scheduler": "x"}')),
        ("scheduler", '{"subCluster": []}'),
    ],
)
def test_answer_that_is_not_a_list_is_reported(place, page, text):
    yarn, launcher = place
    yarn.faults.append(lambda method, path: (200, JSON, text) if path.endswith(f"/{page}") else None)
    with pytest.raises(ClusterUnreachable, match=r"does not (answer|list nodes) as YARN does"):
        launcher.submit(job())


@pytest.mark.slow
def test_labels_are_asked_for_only_where_there_may_be_one(place):
    yarn, launcher = place
    launcher.submit(job())
    assert yarn.count("GET", "/ws/v1/cluster/get-node-labels") == 0
    yarn.labels = LABELS
    yarn.nodes.append(node("gpu"))
    launcher.submit(job(worker="gpu"))
    assert yarn.count("GET", "/ws/v1/cluster/get-node-labels") == 1
    launcher.submit(job())
    assert yarn.count("GET", "/ws/v1/cluster/get-node-labels") == 2

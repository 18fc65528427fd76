"""Hypothesis strategies: any valid job, any report; how many examples a law has."""

from hypothesis import settings
from hypothesis import strategies as st

from tf_yarn_ops.job.parts import Acls, Deadlines, Environment, Resources, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.frameworks import FRAMEWORKS
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, Round, TaskReport
from tf_yarn_ops.runtime.common.values import plain_text

#: What a process can be given, and YAML can hold: no NUL, no lone surrogates.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)
commands = texts.filter(str.strip)
seconds = st.floats(0, 1e6, allow_nan=False).map(lambda value: round(value, 3))
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
variables = st.dictionaries(
    st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(
        lambda name: not name.startswith(("DTF_", "YTF_", "SKEIN_")) and name != "TF_CONFIG"),
    texts, max_size=3,
)  # fmt: skip
resources = st.builds(Resources, memory=st.integers(1, 10**6), vcores=st.integers(1, 64), gpus=st.integers(0, 8))
flags = st.none() | st.booleans()


def examples(count):
    """Return settings of so many examples, at least 10; `./dev test fast` plays a tenth, as of the laws without."""
    return settings(max_examples=max(10, count * settings.default.max_examples // 100))


@st.composite
def tasks(draw):
    """Any valid TaskSpec that has a command."""
    instances = draw(st.integers(1, 5))
    return TaskSpec(
        instances=instances, memory=draw(st.integers(1, 10**6)), vcores=draw(st.integers(1, 64)),
        gpus=draw(st.integers(0, 8)), node_label=draw(st.none() | names), command=draw(commands), env=draw(variables),
        indices=draw(st.dictionaries(st.integers(0, instances - 1), resources, max_size=2)),
        in_cluster=draw(flags), awaited=draw(st.sampled_from([None, True])), fatal=draw(flags),
        hold_port=draw(flags),
    )  # fmt: skip


@st.composite
def restarts(draw):
    """Any valid RestartPolicy."""
    mode = draw(st.sampled_from(["never", "task", "cluster"]))
    codes = st.integers(1, 255)
    retry = draw(st.sets(codes, max_size=2))
    return RestartPolicy(
        mode=mode, max_restarts=None if mode == "never" else draw(st.none() | st.integers(0, 9)),
        max_container_losses=draw(st.integers(0, 9)), retry_exit_codes=tuple(retry),
        fatal_exit_codes=tuple(draw(st.sets(codes, max_size=2)) - retry), backoff=draw(seconds),
        allocation_retries=draw(st.integers(0, 3)), exclude_node_after=draw(st.integers(0, 3)), memory_growth=draw(st.just(0.0) | st.floats(1.1, 10)),
    )  # fmt: skip


deadlines = st.builds(
    Deadlines, queue=seconds, allocation=seconds, registration=seconds, heartbeat=st.just(0.0) | st.floats(5, 1000),
    execution=seconds, total=seconds, stall=seconds, stop_grace=seconds, evaluator_grace=seconds,
)  # fmt: skip
people = st.lists(names, max_size=2).map(tuple)
environments = st.sampled_from([
    "python:///usr/bin/python3", "venv:///opt/tf", "conda:///opt/conda/envs/tf", "docker://registry:5000/tf:2.21",
    "env.tar.gz", "hdfs://nn/envs/tf.zip",
]).map(Environment.parse)  # fmt: skip


@st.composite
def jobs(draw):
    """Any valid JobSpec."""
    types = draw(st.lists(names.filter(lambda name: name not in ("ps", "tensorboard", "chiefworker", "master")),
                          min_size=1, max_size=3, unique=True))  # fmt: skip
    tensorboard = draw(st.none() | st.builds(TensorBoard, memory=st.integers(1, 9999), linger=seconds))
    return JobSpec(
        tasks={name: draw(tasks()) for name in types}, custom_types=tuple(types), command=draw(st.none() | commands), name=draw(texts),
        framework=draw(st.sampled_from(sorted(FRAMEWORKS))), queue=draw(names), user=draw(st.none() | names), priority=draw(st.integers(0, 100)),
        tags=tuple(draw(st.lists(names, max_size=3))), node_label=draw(st.none() | names), env=draw(variables),
        files=draw(st.dictionaries(names, texts.filter(bool), max_size=2)),
        script=draw(st.none() | st.just("/x/train.py")),
        input=draw(st.none() | texts), output="/out" if tensorboard else draw(st.none() | texts),
        environment=draw(st.none() | environments), tensorboard=tensorboard, restart=draw(restarts()),
        deadlines=draw(deadlines), acls=draw(st.builds(Acls, view_users=people, modify_groups=people)),
        am_memory=draw(st.integers(1, 9999)), am_vcores=draw(st.integers(1, 4)),
        report_log_tail=draw(st.integers(0, 8192)), file_systems=tuple(draw(st.lists(texts, max_size=2))),
    )  # fmt: skip


moments = st.none() | st.floats(0, 4e9, allow_nan=False)
#: A log may hold anything, lone surrogates of undecodable bytes included.
logs = st.text(st.characters(exclude_categories=()), max_size=60)
#: What every reader can hold.
plain_texts = logs.map(plain_text)
task_reports = st.builds(
    TaskReport, task=st.builds("{}:{}".format, names, st.integers(0, 99)),
    state=st.sampled_from(["pending", "registered", "running", "succeeded", "failed", "stopped", "lost"]),
    exit_code=st.none() | st.integers(0, 255), signal=st.none() | st.integers(1, 64), host=st.none() | names,
    starts=st.integers(0, 5), started_at=moments, finished_at=moments, log_tail=plain_texts,
)  # fmt: skip
reports = st.builds(
    JobReport, application_id=st.just("application_1700000000000_0001"), name=plain_texts, queue=names, user=names,
    state=st.sampled_from(["ACCEPTED", "RUNNING", "FINISHED"]), final_status=st.sampled_from(["UNDEFINED", "FAILED"]),
    reason=st.none() | st.sampled_from(list(Reason)), message=plain_texts, submitted_at=moments,
    rounds=st.lists(st.builds(Round, st.integers(1, 9), st.floats(0, 4e9), plain_texts), max_size=3).map(tuple),
    tasks=st.lists(task_reports, max_size=6, unique_by=lambda task: task.task).map(tuple),
    first_failure=st.none() | st.just("worker:0"),
    metrics=st.none() | st.dictionaries(names, st.integers(-(2**63), 2**63 - 1) | plain_texts, max_size=3),
    output_path=st.none() | texts, versions=st.dictionaries(names, names, max_size=2),
)  # fmt: skip

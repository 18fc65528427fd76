"""The parts of a job: valid once they exist, with the exact words for what is not."""

import contextlib
import dataclasses

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import Acls, Deadlines, DockerSettings, Environment, Resources, RestartPolicy, TensorBoard


def faults_of(part, **values):
    with pytest.raises(SpecInvalid) as error:
        part(**values)
    return list(map(str, error.value.faults))


def test_defaults_are_the_documented_ones():
    assert Resources() == Resources(memory=8192, vcores=1, gpus=0)
    assert TensorBoard() == TensorBoard(memory=2048, vcores=1, linger=0)
    assert Deadlines() == Deadlines(86400, 1800, 600, 60, 0, 604800, 0, 10)
    assert RestartPolicy() == RestartPolicy("never", 0, 3, (), (), 1.0, 0, 0)


@pytest.mark.parametrize(
    "value", [None, True, -1, 1.5, "\ud800", [[1]], {"a": [1]}, [None, "x"], float("nan"), object()]
)
@pytest.mark.parametrize("part", [Acls, Deadlines, DockerSettings, Environment, Resources, RestartPolicy, TensorBoard])
def test_any_value_of_any_field_is_valid_or_a_fault(part, value):
    for field in dataclasses.fields(part):
        with contextlib.suppress(SpecInvalid):
            part(
                **{"scheme": "venv", "location": "/v", field.name: value}
                if part is Environment
                else {field.name: value}
            )


def test_max_restarts_default_depends_on_the_mode():
    assert RestartPolicy(mode="task").max_restarts == 3 == RestartPolicy(mode="cluster").max_restarts
    assert RestartPolicy(mode="task", max_restarts=0).max_restarts == 0


def test_amounts_are_read_as_people_write_them():
    assert Resources(memory="8 GiB", vcores="2", gpus="1") == Resources(8192, 2, 1)
    assert Deadlines(heartbeat="30").heartbeat == 30.0
    assert Acls(view_users="ann").view_users == ("ann",)


@pytest.mark.parametrize(
    ("part", "values", "messages"),
    [
        (Resources, {"memory": 0, "vcores": 0, "gpus": -1}, [
            "memory: 0 is too little memory; give at least 1 MiB",
            "vcores: 0 is not a whole number of at least 1",
            "gpus: -1 is not a whole number of at least 0",
        ]),
        (Resources, {"vcores": True}, ["vcores: True is not a whole number of at least 1"]),
        (Deadlines, {"queue": -1, "total": "soon", "execution": float("nan")}, [
            "queue: -1 is not a number of seconds of at least 0",
            "execution: nan is not a number of seconds of at least 0",
            "total: 'soon' is not a number of seconds of at least 0",
        ]),
        (Deadlines, {"heartbeat": 4}, ["heartbeat: 4 is too short; give at least 5 seconds, or 0 for no limit"]),
        (TensorBoard, {"linger": -1}, ["linger: -1 is not a number of seconds of at least 0"]),
        (RestartPolicy, {"mode": "sometimes"}, ["mode: 'sometimes' is not one of never, task, cluster"]),
        (RestartPolicy, {"max_restarts": 2}, ["max_restarts: 2 needs mode to be task or cluster, not never"]),
        (RestartPolicy, {"retry_exit_codes": 256}, ["retry_exit_codes: 256 is not an exit code; give 1 to 255"]),
        (RestartPolicy, {"retry_exit_codes": [1, 2], "fatal_exit_codes": [2]},
         ["retry_exit_codes: fatal_exit_codes names 2 too; give each code in one of the two lists"]),
        (Acls, {"view_users": 3}, ["view_users: 3 is not a list of texts"]),
    ],
)  # fmt: skip
def test_faults_of_a_part_are_all_named(part, values, messages):
    assert faults_of(part, **values) == messages


@pytest.mark.parametrize(
    ("text", "scheme", "location"),
    [
        ("python:///usr/bin/python3", "python", "/usr/bin/python3"),
        ("venv:///opt/tf", "venv", "/opt/tf"),
        ("conda:///opt/conda", "conda", "/opt/conda"),
        ("docker://registry:5000/tf:2", "docker", "registry:5000/tf:2"),
        ("env.tar.gz", "archive", "env.tar.gz"),
        ("hdfs://nn/envs/tf.tgz", "archive", "hdfs://nn/envs/tf.tgz"),
        ("/data/tf.zip", "archive", "/data/tf.zip"),
    ],
)
def test_environments(text, scheme, location):
    environment = Environment.parse(text)
    assert (environment.scheme, environment.location) == (scheme, location)
    assert str(environment) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("virtualenv:///x", "'virtualenv:///x' is not an environment; give python:///path/to/python3, venv:///folder, "
                            "conda:///folder, docker://image, requirements://requirements.txt, or an archive (.tar.gz, .tgz, .zip)"),
        ("venv://x", "venv://x needs an absolute path on the nodes: venv:///path, with three slashes"),
        ("docker://", "docker:// names nothing; give python:///path/to/python3, venv:///folder, conda:///folder, "
                      "docker://image, requirements://requirements.txt, or an archive (.tar.gz, .tgz, .zip)"),
    ],
)  # fmt: skip
def test_invalid_environment_is_refused(text, message):
    with pytest.raises(SpecInvalid) as error:
        Environment.parse(text)
    assert str(error.value) == message


DIGEST = "@sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [
        "tf",
        "tf:2",
        "a/b/c:1.0-gpu",
        "localhost:5000/a/b:1",
        "Registry.example.com/a__b/c-d--e.f:A_1",
        f"tf:2{DIGEST}",
        "a" * 255,
    ],
)
def test_names_of_images_are_docker_s(image):
    assert Environment.parse(f"docker://{image}").location == image


@pytest.mark.parametrize(
    "image",
    ["my image", "Local/Py:1", "local/py:1 -v /:/x", "../x", "a,b", "-v", "a//b", "a/", "/a", "a:", "a@sha256:12", "$(id)",
     "`id`", "a\n", "a=b", "a;b", "ü", "tf:²", "a" * 256, "http://a/b", "a:b:c", "tf:" + "x" * 129, "a_-b", '"', "a\0b"],
)  # fmt: skip
def test_other_names_of_images_are_refused(image):
    with pytest.raises(SpecInvalid):
        Environment.parse(f"docker://{image}")


@pytest.mark.parametrize(
    "field, values",
    [
        ("runtime", ["a b", "-v", "$(id)", "a,b", "a\nb", "x" * 65]),
        ("tmpfs", [["shm"], ["/dev/shm:size=8g"], ["/a,/b"], ["/$(id)"], ["/a\n"], ["/`id`"], ["/"]]),
        ("client_config", ["hdfs:///me/config.json", "s3://b/c"]),
    ],
)
def test_docker_settings_that_yarn_refuses_are_faults(field, values):
    for value in values:
        with pytest.raises(SpecInvalid) as caught:
            DockerSettings(**{field: value})
        assert [fault.path.partition(".")[0] for fault in caught.value.faults] == [field], value


@pytest.mark.parametrize("arguments", ["--logdir=/x", "--reload_interval 5 --logdir /x"])
def test_arguments_of_the_front_are_refused_by_name(arguments):
    assert faults_of(TensorBoard, args=arguments) == [
        "args: --logdir is set by the program in front of TensorBoard; leave it out; the folder is logdir"
    ]

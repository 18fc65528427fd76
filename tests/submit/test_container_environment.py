"""What the environment argument means in a container."""

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import DockerSettings, Environment
from tf_yarn_ops.submit.container_environment import ContainerEnvironment, build_container_environment


@pytest.mark.parametrize(
    "text, placed",
    [
        ("python:///usr/bin/python3.11", ContainerEnvironment("/usr/bin/python3.11", ("/usr/bin",))),
        ("venv:///opt/tf", ContainerEnvironment("/opt/tf/bin/python", ("/opt/tf/bin",))),
        (
            "conda:///opt/conda/envs/tf",
            ContainerEnvironment("/opt/conda/envs/tf/bin/python", ("/opt/conda/envs/tf/bin",)),
        ),
        (
            "hdfs:///envs/tf.tar.gz",
            ContainerEnvironment(
                "environment/bin/python", ("environment/bin",), {"environment": "hdfs:///envs/tf.tar.gz"}
            ),
        ),
        ("tf.zip", ContainerEnvironment("environment/bin/python", ("environment/bin",), {"environment": "tf.zip"})),
    ],
)
def test_each_scheme_has_its_place(text, placed):
    assert build_container_environment(Environment.parse(text)) == placed


def test_without_an_environment_the_nodes_own_python_serves():
    assert build_container_environment(None) == ContainerEnvironment("python3")


@pytest.mark.parametrize(
    "paths, mounts",
    [
        (("/data/in", "hdfs://nn/out"), "/data/in:/data/in:ro"),
        (("hdfs://nn/in", "/data/out"), "/data/out:/data/out:rw"),
        (("/data/in", "/data/out"), "/data/in:/data/in:ro,/data/out:/data/out:rw"),
        (("file:///data/in", "file:/data/out"), "/data/in:/data/in:ro,/data/out:/data/out:rw"),
        (("/data/2024-*/x[12].csv", None), "/data:/data:ro"),
        (("file:///data/in/{a,b}", None), "/data/in:/data/in:ro"),
    ],
    ids=["local input", "local output", "both", "URIs of files", "wildcards", "a choice"],
)
def test_docker_gets_yarns_variables_and_the_seeds_mounts(paths, mounts):
    docker = Environment.parse("docker://tensorflow/tensorflow:2.16.1")
    placed = build_container_environment(docker, paths, ("/opt/hadoop", "/usr/java"))
    assert placed.docker_image == "tensorflow/tensorflow:2.16.1"
    assert placed.variables == {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "tensorflow/tensorflow:2.16.1",
        "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "host",
        "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": f"/opt/hadoop:/opt/hadoop:ro,/usr/java:/usr/java:ro,{mounts}",
    }


def test_docker_mounts_each_path_once():
    docker = Environment.parse("docker://tf")
    placed = build_container_environment(docker, ("/data", "/data"), ("/opt/hadoop", "/data", "/opt/hadoop"))
    assert placed.variables["YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS"] == "/opt/hadoop:/opt/hadoop:ro,/data:/data:rw"


def test_docker_settings_are_yarns_variables():
    given = DockerSettings(
        client_config="/me/config.json", runtime="nvidia", tmpfs=["/dev/shm", "/x"], delayed_removal=True
    )
    placed = build_container_environment(Environment.parse("docker://tf"), docker=given)
    assert placed.variables == {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "tf",
        "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "host",
        "YARN_CONTAINER_RUNTIME_DOCKER_RUNTIME": "nvidia",
        "YARN_CONTAINER_RUNTIME_DOCKER_TMPFS_MOUNTS": "/dev/shm,/x",
        "YARN_CONTAINER_RUNTIME_DOCKER_DELAYED_REMOVAL": "true",
    }


@pytest.mark.parametrize("text", ["tf", "venv://opt/tf", "python://", "http://x/y.rpm", "docker://"])
def test_unknown_environment_is_refused(text):
    with pytest.raises(SpecInvalid, match=r"environment|absolute|nothing"):
        Environment.parse(text)

"""The login for the registry of an image: from Docker's client configuration to the token of an application."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.tokens import decode_token, encode_token
from tf_yarn_ops.submit.registry_login import KIND, find_logins, read_login, registry_of

APPLICATION = "application_1700000000000_0007"
LOGIN = base64.b64encode(b"me:the-password").decode()


def write(folder, content):
    file = folder / "config.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize(
    "image, registry",
    [
        ("tensorflow/tensorflow:2.16.1", "docker.io"),
        ("docker.io/library/python:3", "docker.io"),
        ("local/py:1", "docker.io"),
        ("registry.example.com/tf:2", "registry.example.com"),
        ("localhost/tf", "localhost"),
        ("rm:5000/a/b@sha256:" + "0" * 64, "rm:5000"),
    ],
)
def test_registry_of_an_image(image, registry):
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    "image, key",
    [
        ("registry.example.com/tf:2", "registry.example.com"),
        ("registry.example.com/tf:2", "https://registry.example.com"),
        ("registry.example.com/tf:2", "https://registry.example.com/v2/"),
        ("tensorflow/tensorflow", "https://index.docker.io/v1/"),
        ("rm:5000/tf", "rm:5000"),
    ],
)
def test_token_is_that_of_hadoop_and_of_one_registry(tmp_path, image, key):
    file = write(tmp_path, {"auths": {"other.example.com": {"auth": "bWU6b3RoZXI="}, key: {"auth": LOGIN}}})
    token = read_login(file, image, APPLICATION)
    # DockerCredentialTokenIdentifierProto: 1 registry, 2 application.
    assert token.identifier == b"\n%c%b\x12%c%b" % (len(key), key.encode(), len(APPLICATION), APPLICATION.encode())
    assert (token.password, token.kind, token.service) == (LOGIN.encode(), KIND, key)
    assert "the-password" not in repr(token) and LOGIN not in repr(token)


@given(host=st.text("abc", min_size=1, max_size=200))
def test_a_long_registry_survives_the_text_of_a_token(tmp_path_factory, host):
    image = f"{host}.example.com/tf"
    file = write(tmp_path_factory.mktemp("login"), {"auths": {f"{host}.example.com": {"auth": LOGIN}}})
    token = read_login(file, image, APPLICATION)
    assert decode_token(encode_token(token)) == token
    length = (
        token.identifier[1] if token.identifier[1] < 128 else (token.identifier[1] & 127) + 128 * token.identifier[2]
    )
    assert length == len(host) + len(".example.com")


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is not a client configuration"),
        ("\x00\ud7ff", "is not a client configuration"),
        ("[" * 100_000, "is not a client configuration"),
        ([1], "is not a client configuration"),
        ({"auths": [LOGIN]}, "is not a client configuration"),
        ({"auth": LOGIN}, "is not a client configuration"),
        ({"auths": {}}, "has no login for registry.example.com; run: docker login registry.example.com"),
        ({"auths": {"b.example.com": {"auth": LOGIN}}}, "registry.example.com, only for b.example.com; run"),
        ({"auths": {"registry.example.com": {}}, "credsStore": "pass"}, "credsStore or credHelpers"),
        ({"auths": {"registry.example.com": LOGIN}}, "credsStore or credHelpers"),
        ({"auths": {"registry.example.com": {"auth": f"{LOGIN}!"}}}, "credsStore or credHelpers"),
        ({"auths": {"registry.example.com": {"auth": [LOGIN]}}}, "credsStore or credHelpers"),
    ],
)
def test_a_file_without_the_login_is_named_without_its_content(tmp_path, content, message):
    with pytest.raises(SpecInvalid) as caught:
        read_login(write(tmp_path, content), "registry.example.com/tf:2", APPLICATION)
    assert message in str(caught.value) and LOGIN not in str(caught.value)


def test_a_job_has_the_logins_of_its_images_only(tmp_path):
    names = [f"{name}.example.com" for name in "abc"]
    file = write(tmp_path, {"auths": {name: {"auth": LOGIN} for name in names}})
    tasks = {
        "worker": 2,
        "ps": {"environment": "docker://b.example.com/tf"},
        "evaluator": {"environment": "venv:///tf"},
    }
    fields = {"tasks": tasks, "command": "x", "environment": "docker://a.example.com/tf"}
    job = JobSpec(**fields, docker={"client_config": str(file)})
    assert list(find_logins(job, APPLICATION)) == names[:2]
    assert find_logins(JobSpec(**fields), APPLICATION) == {}

"""Secrets are known by the names of their variables, and masked wherever their values stand."""

import json

import pytest

from support.secret_spellings import spell_secrets
from tf_yarn_ops import validation
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common.masking import (
    MASK,
    is_secret,
    mask_command,
    mask_options,
    mask_output,
    mask_texts,
    secrets_of,
)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("API_KEY", True),
        ("DB_PASSWORD", True),
        ("aws_secret_access_key", True),
        ("HF_TOKEN", True),
        ("GOOGLE_CREDENTIALS", True),
        ("MAX_TOKENS", False),
        ("KEYBOARD", False),
        ("EPOCHS", False),
    ],
)
def test_a_variable_is_known_by_its_name(name, secret):
    assert is_secret(name) is secret
    assert mask_options({"env": {name: "v"}}) == {"env": {name: MASK if secret else "v"}}


def test_secrets_are_masked_also_where_one_contains_another():
    secrets = secrets_of(
        [
            {"env": {"API_KEY": "hunter2", "EPOCHS": "100000"}},
            {"env": {"TOKEN": "hunter2-long"}},
            {"env": {"KEY": "ab"}},
        ]
    )
    assert secrets == {"hunter2", "hunter2-long"}
    document = {
        "message": "no hunter2-long, no hunter2",
        "tasks": [{"log_tail": "key=hunter2\n"}],
        "hunter2": 1,
        "n": None,
    }
    assert mask_texts(document, secrets) == {
        "message": "no ***, no ***",
        "tasks": [{"log_tail": "key=***\n"}],
        "***": 1,
        "n": None,
    }
    assert mask_texts(document, ()) is document


def test_the_mask_is_the_one_that_a_job_refuses_as_a_value():
    assert validation.MASK == MASK


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python train.py --api-key=abc --steps=3", "python train.py --api-key=*** --steps=3"),
        ("python train.py --db_password 'a b' -n 3", "python train.py --db_password *** -n 3"),
        ("API_TOKEN=abc exec train", "API_TOKEN=*** exec train"),
        ("train --api-key abc -password x", "train --api-key *** -password ***"),
        ("train --token=abc", "train --token=***"),
        (
            "cat my-token  file && train fast TOKEN=abc --key  --steps 3",
            "cat my-token  file && train fast TOKEN=*** --key  --steps 3",
        ),
        ("train --max_tokens 512 --column id", "train --max_tokens 512 --column id"),
        ("echo the key is here", "echo the key is here"),
        ("load s3://ann:hush@host/data", "load s3://ann:***@host/data"),
        ("curl -H 'Authorization: Bearer abc.def' http://host", "curl -H 'Authorization: Bearer ***' http://host"),
        ('curl -H "authorization:abc" http://host', 'curl -H "authorization:***" http://host'),
        ("curl -H 'X-Api-Key: abc' http://host", "curl -H 'X-Api-Key: ***' http://host"),
        ("fetch 'https://host/x?X-Amz-Signature=abc&part=1'", "fetch 'https://host/x?X-Amz-Signature=***&part=1'"),
        ("run --options '--api-key=abc --steps=3'", "run --options '--api-key=*** --steps=3'"),
        ("""train '{"api_key": "abc", "steps": 3}'""", """train '{"api_key": ***, "steps": 3}'"""),
    ],
)
def test_a_command_shows_no_values_of_secret_options(command, shown):
    assert mask_command(command) == shown


def test_secrets_of_a_command_are_masked_in_every_text():
    job = {
        "command": "train --api-key=letmein99 s3://ann:hush-hush@host/data",
        "tasks": {"worker": {"command": "run letmein99 hush-hush"}},
    }
    assert secrets_of([job]) == {"letmein99", "hush-hush"}
    assert mask_options(job)["tasks"]["worker"]["command"] == "run *** ***"


def test_secrets_within_the_value_of_a_variable_are_masked():
    job = {
        "command": "run urlpass77 inenvopt99",
        "tasks": {"ps": {"env": {"OPTIONS": "--api-key=inenvopt99"}}},
        "env": {"DB": "postgres://u:urlpass77@h/db", "STEPS": 3},
    }
    assert secrets_of(job) == {"urlpass77", "inenvopt99"}
    shown = mask_options(job)
    assert shown == {
        "command": "run *** ***",
        "env": {"DB": "postgres://u:***@h/db", "STEPS": 3},
        "tasks": {"ps": {"env": {"OPTIONS": "--api-key=***"}}},
    }
    with pytest.raises(SpecInvalid, match="was masked by --dry_run"):
        validation.read_env(shown["env"])


def test_options_show_no_secrets_wherever_they_stand():
    job = {
        "command": "train --login letmein99",
        "env": {"API_TOKEN": "letmein99", "STEPS": "3"},
        "tasks": {"worker": {"command": "run letmein99", "env": {"DB_PASSWD": "other-secret"}}},
        "files": ["a"],
    }
    shown = mask_options(job)
    assert "letmein99" not in str(shown) and "other-secret" not in str(shown)
    assert shown["env"] == {"API_TOKEN": "***", "STEPS": "3"} and shown["files"] == ["a"]
    assert job["env"]["API_TOKEN"] == "letmein99"  # type: ignore[index]


def test_braces_within_braces_belong_to_the_secret():
    assert mask_command("key={x;y{z}w;v}") == "key=***;v}"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["{", "{{", "{a", "\\", "'{", "{}", "${"])
def test_text_after_a_key_is_masked_in_linear_time(text):
    assert len(mask_output(f"key={text * 50_000}", ())) <= 100_010


@pytest.mark.parametrize(("text", "secret", "whole"), [pytest.param(*row[1:], id=row[0]) for row in spell_secrets()])
def test_secret_is_masked_however_it_is_spelt(text, secret, whole):
    """Also where the text is JSON in a text of JSON, and where the program prints the secret alone."""
    assert secret not in mask_command(text)
    assert secret not in str(mask_options({"env": {"OPTIONS": text}, "command": f"echo '{text}'"}))
    assert secret not in mask_texts(f"printed {whole}.", secrets_of({"command": text}))
    assert secret not in mask_command(json.dumps(json.dumps({"options": text})))
    assert secret not in str(mask_output({"free": text, "of": [text]}, ()))


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'loss'",
        "ValueError: unknown key: learning_rate",
        "invalid token: 'foo' in line 3",
        "tokens: 512, max_tokens=512, keys: 3",
        "PWD=/data/app OLDPWD=/ HOME=/root",
        "train --auth kerberos --auth=basic",
        "docker run --user 1000:1000 -u 0 image",
        "http://host:8080/path@2x http://host:80?mail=a@b hdfs://nn:8020/user/ann@x",
        "ssh://git@host/x hdfs://user@ns/x s3a://bucket@y",
        "basic training, Basic authentication failed",
        "author: Ann, compass=north, bypass: 1",
        "at step 3: loss=0.25, accuracy: 0.9",
    ],
)
def test_text_without_a_secret_stays(text):
    assert mask_command(text) == text


def test_named_values_of_a_result_are_masked_and_numbers_and_names_stay():
    result = {"api_token": "abc", "token_count": 512, "note": "x hunter2 y", "hunter2": 1, "url": "https://u:pw@h/x"}
    assert mask_output(result, {"hunter2"}) == {
        "api_token": MASK, "token_count": 512, "note": "x *** y", "hunter2": 1, "url": "https://u:***@h/x",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece", ["x", "x-", "a=", "--a ", "-", "9", "TOKEN", " ", "'", '"', "://a:", "é", "\\", '\\"', "aA", "://a@"]
)
def test_long_values_are_searched_in_linear_time(piece):
    """A value of 9 KiB took seconds, and this one would take a minute."""
    text = piece * (2**16 // len(piece))
    assert mask_options({"env": {"DATA": text}, "command": text}) == {"env": {"DATA": text}, "command": text}

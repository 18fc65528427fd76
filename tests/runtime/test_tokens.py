"""Tokens as text, and in a container's credentials file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_yarn import FakeYarn, application, serving
from support.tokens import credentials_file, token
from support.wire import job_of
from tf_yarn_ops.runtime.common.container_http import token_header
from tf_yarn_ops.runtime.common.tokens import (
    TOKEN_HEADER,
    Token,
    decode_token,
    encode_token,
    read_credentials,
    read_length,
    write_length,
)
from tf_yarn_ops.runtime.master import verdict as ending

#: Hadoop's WritableUtils.writeVLong writes these lengths so.
LENGTHS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8f80",
    255: "8fff",
    256: "8e0100",
    65535: "8effff",
    65536: "8d010000",
    2**31 - 1: "8c7fffffff",
}
#: From GETDELEGATIONTOKEN of a NameNode of Hadoop 3.4.3, for alice, renewer yarn; only the password is made up.
RECORDED = (
    "HQAFYWxpY2UEeWFybgCKAaIDsvMTigGiJ793EwECFAABAgMEBQYHCAkKCwwNDg8QERITEldFQkhERlMgZGVsZWdhdG"
    "lvbg8xMjcuMC4wLjE6MTMxODg"
)
tokens = st.builds(
    Token, st.binary(max_size=300), st.binary(max_size=300), st.text(max_size=200), st.text(max_size=200)
)


@pytest.mark.parametrize("length, written", LENGTHS.items())
def test_lengths_are_written_as_hadoop_writes_them(length, written):
    assert write_length(length).hex() == written
    assert read_length(bytes.fromhex(written), 0) == (length, len(written) // 2)


@given(st.integers(0, 2**62), st.binary(max_size=3))
def test_a_length_comes_back(length, before):
    assert read_length(before + write_length(length) + b"x", len(before)) == (
        length,
        len(before + write_length(length)),
    )


def test_a_recorded_token():
    found = decode_token(RECORDED)
    assert (found.kind, found.service) == ("WEBHDFS delegation", "127.0.0.1:13188")
    assert found.password == bytes(range(20)) and found.identifier.startswith(b"\x00\x05alice\x04yarn\x00")
    assert encode_token(found) == RECORDED
    assert decode_token(RECORDED + "=" * (-len(RECORDED) % 4)) == found, "some daemons pad it"


@given(tokens)
def test_a_token_comes_back(one):
    assert decode_token(encode_token(one)) == one


@given(st.lists(tokens, max_size=4))
def test_the_credentials_of_a_container_come_back(several):
    assert read_credentials(credentials_file(several)) == several


def test_a_token_shows_no_secret():
    assert repr(decode_token(RECORDED)) == "Token(kind='WEBHDFS delegation', service='127.0.0.1:13188')"


@pytest.mark.parametrize(
    "text", ["", "\u00fc", "not base64!", RECORDED[:-8], RECORDED + "AAAA", "f39_", "gA", "iP__________8"]
)
def test_another_text_is_not_a_token_and_is_not_shown(text):
    with pytest.raises(ValueError) as raised:
        decode_token(text)
    assert not text or text not in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"HDTS", b"HDTS\x01\x00", b"nothing", b"HDTS\x00", b"HDTS\x00\x01", b"HDTS\x00\x02\x01a"]
)
def test_another_file_holds_no_credentials(content):
    with pytest.raises(ValueError):
        read_credentials(content)


@pytest.fixture
def container(tmp_path, monkeypatch):
    """A container's file with the tokens of a secured cluster."""
    path = tmp_path / "container_tokens"
    path.write_bytes(
        credentials_file([token("HDFS_DELEGATION_TOKEN", "nn:8020"), token("RM_DELEGATION_TOKEN", "rm:8032")])
    )
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(path))
    return path


def test_the_coordinator_asks_and_kills_with_its_containers_token(container):
    yarn = FakeYarn()
    name = yarn.add(application(42))
    yarn.faults.append(lambda method, path: yarn.apps[name].update(state="KILLED") if method == "PUT" else None)
    with serving(yarn) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ending, "KILL_SECONDS", 0.0)
        assert ending.resourcemanager_knows(job_of(url), name)
        ending.kill_by_rest(job_of(url, user="alice"), name, "why")
    assert [method for method, *_ in yarn.requests] == ["GET", "PUT"]
    for _, _, _, headers, _ in yarn.requests:
        assert decode_token({n.lower(): v for n, v in headers.items()}[TOKEN_HEADER.lower()]) == token(
            "RM_DELEGATION_TOKEN", "rm:8032"
        )


@pytest.mark.parametrize("content", [None, b"", b"HDTS\x00\x00"])
def test_without_a_token_it_asks_without_one(container, content, monkeypatch):
    container.unlink() if content is None else container.write_bytes(content)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(container))
    assert token_header() == {}
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION")
    assert token_header() == {}

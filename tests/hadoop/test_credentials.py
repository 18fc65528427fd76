"""The password or token for a gateway: from which file, to which address, and what a refusal says."""

import base64
import json
import logging
import os
import ssl
import time

import httpx
import pytest

from support.fake_yarn import FakeYarn, serving
from tf_yarn_ops.errors import CredentialsRefused, SpecInvalid, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.resourcemanager import ResourceManager
from tf_yarn_ops.hadoop.security import credentials
from tf_yarn_ops.hadoop.security.credentials import HttpCredentials
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.transport import LoginRefused

ENVIRON = {"HOME": "/nowhere", "HADOOP_USER_NAME": "somebody"}
SECRET = "ann:pass:wörd"
BASIC = f"Basic {base64.b64encode(SECRET.encode()).decode()}"


@pytest.fixture
def gateway(authority):
    """Return a cluster at a path of https, which takes us for ann."""
    yarn = FakeYarn()
    yarn.user_seen = "ann"
    with serving(yarn, authority.server("localhost", "127.0.0.1")):
        yield yarn


def written(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def jwt(**claims):
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "RS256"}, claims)
    ]
    return ".".join([*parts, "c2lnbmF0dXJl"])


def site(authority, **settings):
    return Site(ca_file=str(authority.file), request_timeout=5, **settings)


def authorizations(yarn):
    return {headers.get("Authorization") for _, _, _, headers, _ in yarn.requests}


def test_every_request_carries_the_password_and_no_user_name(gateway, authority, tmp_path):
    file = written(tmp_path / "password", SECRET + "\n")
    cluster = discover(gateway.url, ENVIRON, site=site(authority, gateway_password_file=file))
    assert (cluster.login, cluster.user) == ("ann", "ann")
    cluster.resourcemanager().find()
    assert authorizations(gateway) == {BASIC}
    assert not any("user.name" in parameters for _, _, parameters, *_ in gateway.requests)


def test_user_is_the_one_that_the_gateway_names(gateway, authority, tmp_path):
    """A passcode of Knox has the user name Token; a token's subject may be mapped to another name."""
    file = written(tmp_path / "password", "Token:passcode")
    assert discover(gateway.url, ENVIRON, site=site(authority, gateway_password_file=file)).user == "ann"


def test_another_user_needs_the_right_to_act_for_them(gateway, authority, tmp_path):
    settings = site(authority, gateway_password_file=written(tmp_path / "password", SECRET))
    with pytest.raises(
        SubmissionRejected,
        match="the gateway takes us for 'ann', not for 'bob': it does not let us act for "
        "other users; give the password or token of that user",
    ):
        discover(gateway.url, ENVIRON, user="bob", site=settings)
    gateway.user_seen = "bob"
    assert discover(gateway.url, ENVIRON, user="bob", site=settings).user == "bob"
    assert {parameters.get("doAs") for _, _, parameters, *_ in gateway.requests} == {"bob"}


def test_a_new_token_counts_without_a_restart(gateway, authority, tmp_path):
    file = tmp_path / "token"
    first, second = jwt(sub="ann"), jwt(sub="ann", exp=2)
    cluster = discover(gateway.url, ENVIRON, site=site(authority, gateway_token_file=written(file, first)))
    manager = cluster.resourcemanager()
    manager.find()
    assert authorizations(gateway) == {f"Bearer {first}"}
    gateway.requests.clear()
    os.replace(written(tmp_path / "new", second), file)
    manager.find()
    assert authorizations(gateway) == {f"Bearer {second}"}


def test_a_file_that_becomes_unfit_leaves_the_last_credentials(gateway, authority, tmp_path, caplog):
    file = tmp_path / "token"
    manager = ResourceManager(
        (gateway.url,),
        discover(gateway.url, ENVIRON, site=site(authority, gateway_token_file=written(file, "first"))).authentication,
        ca_file=str(authority.file),
    )
    manager.find()
    file.write_text("")
    manager.find()
    assert authorizations(gateway) == {"Bearer first"}
    assert "the old credentials stay in use: gateway_token_file: " in caplog.text


@pytest.mark.parametrize(
    "setting, text, mode, said",
    [
        ("gateway_password_file", SECRET, 0o644, "has mode 644, so that other users can use it; chmod 600 it"),
        ("gateway_token_file", "token", 0o660, "has mode 660, so that other users can use it; chmod 600 it"),
        ("gateway_password_file", "ann", 0o600, "does not hold one line USER:PASSWORD"),
        ("gateway_password_file", ":secret", 0o600, "does not hold one line USER:PASSWORD"),
        ("gateway_token_file", "two words", 0o600, "does not hold one line with a token"),
        ("gateway_token_file", "one\ntwo", 0o600, "does not hold one line with a token"),
        ("gateway_token_file", "", 0o600, "does not hold one line with a token"),
    ],
)
def test_a_file_that_is_unfit_is_a_fault_which_does_not_show_it(tmp_path, setting, text, mode, said):
    file = written(tmp_path / "file", text, mode)
    with pytest.raises(SpecInvalid) as raised:
        HttpCredentials(setting, file).header()
    assert str(raised.value) == f"{setting}: {file} {said}"


def test_a_file_that_is_missing_is_a_fault(tmp_path):
    with pytest.raises(SpecInvalid, match="gateway_token_file: /no/token can't be read: No such file or directory"):
        HttpCredentials("gateway_token_file", "/no/token").header()


def test_a_password_and_a_token_are_one_too_many():
    with pytest.raises(
        SpecInvalid,
        match="gateway_token_file: a gateway gets a token or a password; remove this setting or gateway_password_file",
    ):
        Site(gateway_password_file="/a", gateway_token_file="/b")


def test_credentials_go_over_https_only(yarn, tmp_path):
    settings = Site(gateway_token_file=written(tmp_path / "token", "secret"))
    with pytest.raises(
        SpecInvalid, match=f"gateway_token_file: {yarn.url} is not https, and passwords and tokens go over https only"
    ):
        discover(yarn.url, ENVIRON, site=settings)
    assert yarn.requests == []


def test_no_other_address_sees_them(gateway, authority, tmp_path):
    """A redirect leads where the answer wants."""
    options = HttpCredentials("gateway_token_file", written(tmp_path / "token", "secret")).http_options((gateway.url,))
    other = FakeYarn()
    with serving(other, authority.server("localhost", "127.0.0.1")) as url:
        gateway.faults.append(lambda method, path: (307, {"Location": f"{url}/elsewhere"}, ""))
        with httpx.Client(
            verify=ssl.create_default_context(cafile=authority.file), trust_env=False, follow_redirects=True, **options
        ) as client:
            client.get(f"{gateway.url}/x")
    assert authorizations(gateway) == {"Bearer secret"}
    assert authorizations(other) == {None}


def refused(gateway, authority, **settings):
    gateway.faults.append(lambda method, path: (401, {"WWW-Authenticate": 'Basic realm="application"'}, "no"))
    with pytest.raises(CredentialsRefused if settings else LoginRefused) as raised:
        discover(gateway.url, ENVIRON, site=site(authority, **settings))
    assert (raised.value.reason.exit_code, raised.value.reason.retryable, raised.value.command) == (
        3,
        False,
        "ytf doctor",
    )
    return str(raised.value)


def test_a_refused_password_names_the_setting_and_not_the_password(gateway, authority, tmp_path):
    said = refused(gateway, authority, gateway_password_file=written(tmp_path / "password", SECRET))
    assert ("it does not accept the user and password; correct the file that gateway_password_file names") in said
    assert "pass:" not in said


def test_refused_password_is_not_sent_again_until_it_changes(gateway, authority, tmp_path, monkeypatch):
    """A directory locks an account after a few wrong passwords; its outage looks the same."""
    file = written(tmp_path / "password", SECRET)
    refused(gateway, authority, gateway_password_file=file)
    assert len(gateway.requests) == 1
    with pytest.raises(CredentialsRefused, match="is sent again when the file has changed, or after 300 s"):
        discover(gateway.url, ENVIRON, site=site(authority, gateway_password_file=file))
    assert len(gateway.requests) == 1
    gateway.faults.clear()
    os.replace(written(tmp_path / "new", "ann:right"), file)
    cluster = discover(gateway.url, ENVIRON, site=site(authority, gateway_password_file=file))
    gateway.faults.append(lambda method, path: (401, {}, "no"))
    manager, before = cluster.resourcemanager(), len(gateway.requests)
    for _ in range(3):
        with pytest.raises(CredentialsRefused):
            manager.find()
    assert len(gateway.requests) == before + 1
    gateway.faults.clear()
    monkeypatch.setattr(credentials, "REFUSED_SECONDS", 0.0)
    assert manager.find() == []


def test_forbidden_is_not_retryable(gateway, authority, tmp_path):
    """The gateway knows the user, and gives no right."""
    gateway.faults.append(lambda method, path: (403, {"Content-Type": "application/json"}, '{"message": "Forbidden"}'))
    with pytest.raises(SubmissionRejected, match="YARN answers 403: Forbidden"):
        discover(gateway.url, ENVIRON, site=site(authority, gateway_token_file=written(tmp_path / "token", "x")))


def test_expired_token_is_reported(gateway, authority, tmp_path):
    said = refused(
        gateway, authority, gateway_token_file=written(tmp_path / "token", jwt(sub="ann", exp=time.time() - 3600))
    )
    assert "it does not accept the token, which ended at 20" in said
    assert "write a new one into the file that gateway_token_file names" in said


def test_gateway_login_is_demanded_with_the_settings(gateway, authority):
    assert (
        'wants a login that is not Kerberos: Basic realm="application"; for a gateway such as Knox set gateway_password_file '
        "or gateway_token_file in site.yaml"
    ) in refused(gateway, authority)


def test_no_log_line_shows_them(gateway, authority, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        discover(gateway.url, ENVIRON, site=site(authority, gateway_token_file=written(tmp_path / "token", "SECRET")))
    assert caplog.records and "SECRET" not in caplog.text

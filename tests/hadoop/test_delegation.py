"""Tokens for an application, from a ResourceManager and a NameNode on the wire."""

import logging
from dataclasses import replace

import pytest

from support.fake_yarn import FakeYarn, closed_address, serving
from tf_yarn_ops.errors import ClusterUnreachable, KmsUnreachable, SubmissionRejected
from tf_yarn_ops.hadoop.cluster import SecurityFacts, discover
from tf_yarn_ops.hadoop.configuration import Configuration
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.security.delegation import TokensUnavailable, obtain, resourcemanager_services
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common.tokens import decode_token

HDFS = "hdfs://127.0.0.1:8020"
SECURED = {
    "hadoop.security.authentication": "kerberos",
    "fs.defaultFS": HDFS,
    "yarn.resourcemanager.address": "localhost:8032",
    "yarn.resourcemanager.principal": "rm/_HOST@EXAMPLE.COM",
}


@pytest.fixture
def yarn():
    """A secured cluster whose pages ask for no ticket; one server is the ResourceManager and the NameNode."""
    fake = FakeYarn()
    fake.conf = SECURED
    with serving(fake) as fake.url:
        fake.conf = {**SECURED, "dfs.namenode.http-address": fake.url[len("http://") :]}
        yield fake


def cluster_of(yarn, **site):
    return discover(yarn.url, {"HOME": "/nowhere", "HADOOP_USER_NAME": "ann"}, site=Site(**site))


def get(cluster, needed=(), wished=()):
    return obtain(cluster, cluster.resourcemanager(), cluster.open_filesystem(), needed, wished)


def test_a_fresh_pair_in_the_form_that_applications_use(yarn):
    found = get(cluster_of(yarn)).texts()
    assert list(found) == ["127.0.0.1:8020", "127.0.0.1:8032,localhost:8032"]
    hdfs, manager = (decode_token(text) for text in found.values())
    given = [decode_token(text) for text in yarn.tokens]
    assert (hdfs.kind, hdfs.service) == ("HDFS_DELEGATION_TOKEN", "127.0.0.1:8020")
    assert (manager.kind, manager.service) == ("RM_DELEGATION_TOKEN", "127.0.0.1:8032,localhost:8032")
    for used, original in zip((hdfs, manager), given, strict=True):
        assert (used.identifier, used.password) == (original.identifier, original.password)
        assert b"rm/localhost@EXAMPLE.COM" in used.identifier, "the renewer is the ResourceManager's principal"


def test_each_submission_has_its_own(yarn):
    first, second = get(cluster_of(yarn)), get(cluster_of(yarn))
    assert len(set(yarn.tokens)) == 4
    assert not set(first.texts().values()) & set(second.texts().values())


def test_cancelled_tokens_are_cancelled_once_where_they_come_from(yarn, caplog):
    credentials = get(cluster_of(yarn))
    credentials.cancel()
    credentials.cancel()
    assert yarn.tokens == [] and yarn.tokens_given == 2
    assert [method for method, path, *_ in yarn.requests if "oken" in path or path == "/webhdfs/v1/"] == [
        "GET",
        "GET",
        "POST",
        "DELETE",
        "PUT",
    ]
    with caplog.at_level(logging.DEBUG):
        other = get(cluster_of(yarn))
        yarn.tokens.clear()
        other.cancel()
    assert "the token of the ResourceManager is not cancelled" in caplog.text


@pytest.mark.parametrize("site, renewer", [({}, b"yarn"), ({"token_renewer": "mapred"}, b"mapred")])
def test_the_renewer_where_the_configuration_can_not_be_read(yarn, site, renewer):
    yarn.conf = {}
    cluster = cluster_of(yarn, default_filesystem=HDFS, webhdfs=[yarn.url], resourcemanager_service=["rm:8050"], **site)
    cluster = replace(cluster, security=SecurityFacts(kerberos=True))
    assert all(renewer in decode_token(text).identifier for text in get(cluster).texts().values())


@pytest.mark.parametrize(
    "conf, services",
    [
        ({"yarn.resourcemanager.address": "LocalHost:8050"}, "127.0.0.1:8050,localhost:8050"),
        ({"yarn.resourcemanager.hostname": "localhost"}, "127.0.0.1:8032,localhost:8032"),
        ({"yarn.resourcemanager.address": "0.0.0.0:8032"}, "127.0.0.1:8032"),
        ({"yarn.resourcemanager.address": "127.0.0.1"}, "127.0.0.1:8032"),
        ({"yarn.resourcemanager.address": "no-such-host.invalid:8032"}, "no-such-host.invalid:8032"),
        (
            {
                "yarn.resourcemanager.ha.rm-ids": "b, a",
                "yarn.resourcemanager.hostname.a": "localhost",
                "yarn.resourcemanager.address.b": "127.0.0.1:8050",
                "yarn.resourcemanager.address": "ignored:1",
            },
            "127.0.0.1:8050,127.0.0.1:8032,localhost:8032",
        ),
    ],
)
def test_a_token_of_the_resourcemanagers_names_each_by_address_and_by_name(yarn, conf, services):
    yarn.conf = {"fs.defaultFS": HDFS, **conf}
    assert resourcemanager_services(cluster_of(yarn)) == services


def test_unknown_resourcemanager_address_is_reported_before_any_token(yarn):
    del yarn.conf["yarn.resourcemanager.address"]
    with pytest.raises(TokensUnavailable, match="'resourcemanager_service: host:8032'"):
        get(cluster_of(yarn))
    assert yarn.tokens_given == 0


def test_the_pair_of_namenodes_is_named_by_its_logical_name(yarn):
    address = yarn.url[len("http://") :]
    yarn.conf |= {
        "fs.defaultFS": "hdfs://Pair",
        "dfs.nameservices": "Pair,alone",
        "dfs.ha.namenodes.Pair": "a,b",
        "dfs.client.failover.proxy.provider.Pair": "x",
        "dfs.namenode.http-address.Pair.b": address,
        "dfs.namenode.http-address.Pair.a": closed_address()[len("http://") :],
    }
    yarn.token_services["WEBHDFS delegation"] = "127.0.0.1:23000"
    assert next(iter(get(cluster_of(yarn)).texts())) == "ha-hdfs:Pair"
    known = Configuration(yarn.conf)
    assert list(known.nameservices()) == ["Pair"]


def test_two_namenodes_of_the_site_file_are_a_pair(yarn):
    cluster = cluster_of(yarn, webhdfs=[closed_address(), yarn.url], default_filesystem="hdfs://pair")
    assert next(iter(get(cluster).texts())) == "ha-hdfs:pair"


def test_further_file_systems_of_a_job(yarn):
    yarn.token_services["WEBHDFS delegation"] = "10.0.0.9:8020"
    cluster = cluster_of(yarn, namenodes={"hdfs://other:8020/": yarn.url})
    needed = ["hdfs://other:8020/data/x.csv", "hdfs://other:8020/y", f"{HDFS}/z", "s3a://bucket/x", "/local", ""]
    with pytest.raises(ClusterUnreachable):
        get(cluster_of(yarn), ["hdfs://127.0.0.1:1/x"])
    found = get(cluster, needed)
    assert len(yarn.tokens) == 3, "each file system once, and the ResourceManager"
    assert "10.0.0.9:8020" in found.texts()


def test_a_file_system_that_may_do_without_a_token_is_only_logged(yarn, caplog):
    assert len(get(cluster_of(yarn), wished=["hdfs://127.0.0.1:1/x"]).texts()) == 2
    assert "the job gets no token for hdfs://127.0.0.1:1: " in caplog.text


@pytest.mark.parametrize("service", ["", "httpfs:14000"])
def test_an_httpfs_gives_tokens_for_itself_only(yarn, service):
    yarn.token_services["WEBHDFS delegation"] = service
    with pytest.raises(
        TokensUnavailable, match=r"not a NameNode's own: .* 'namenodes: {hdfs://127\.0\.0\.1:8020: http"
    ):
        get(cluster_of(yarn))
    assert yarn.tokens == [], "the useless token is cancelled too"


@pytest.mark.parametrize("kind, what", [("RM_DELEGATION_TOKEN", "the ResourceManager"), ("WEBHDFS delegation", HDFS)])
@pytest.mark.parametrize("status", [403, 404, 400])
def test_a_refusal_says_who_gives_none_and_leaves_none(yarn, kind, what, status):
    yarn.tokens_refused[kind] = status, {"exception": "IOException", "message": "only on a kerberos channel"}
    with pytest.raises(TokensUnavailable, match=f"{what} gives no token over HTTP: .*only on a kerberos channel"):
        get(cluster_of(yarn))
    assert yarn.tokens == []


def test_login_without_proxy_right_is_refused_at_once(yarn):
    yarn.tokens_refused["WEBHDFS delegation"] = (
        403,
        {"exception": "AuthorizationException", "message": "User: gw is not allowed to impersonate bob"},
    )
    with pytest.raises(SubmissionRejected, match="not allowed to impersonate bob") as raised:
        get(cluster_of(yarn))
    assert not isinstance(raised.value, TokensUnavailable)


def test_absent_namenode_does_not_change_the_route(yarn):
    yarn.conf["dfs.namenode.http-address"] = closed_address()[len("http://") :]
    with pytest.raises(ClusterUnreachable):
        get(cluster_of(yarn))


def test_no_message_shows_a_token(yarn):
    """The address of a request to a DataNode, and of one that cancels a token, contains one."""
    with pytest.raises(ClusterUnreachable) as raised:
        WebHdfs((yarn.url,), SimpleAuthentication("ann"), 1.0).cancel_token("SECRET")
    assert "answers 403" in str(raised.value) and "SECRET" not in str(raised.value)


def test_no_log_line_shows_a_token(yarn, caplog):
    """httpx logs each address at INFO, which Airflow's task logs show; httpcore logs headers at DEBUG."""
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.INFO, "httpx"):
        credentials = get(cluster_of(yarn))
        given = list(yarn.tokens)
        yarn.faults.append(
            lambda method, path: (
                (
                    307,
                    {
                        "Location": f"{yarn.url}/x?op=CREATE&delegation=SECRET&a=b",
                        "Set-Cookie": 'hadoop.auth="u=ann&s=SECRET="; Path=/',
                    },
                    "",
                )
                if path == "/webhdfs/v1/x"
                else None
            )
        )
        with pytest.raises(ClusterUnreachable):
            cluster_of(yarn).open_filesystem().create("/x", b"1", 0o600)
        credentials.cancel()
    assert "CANCELDELEGATIONTOKEN&token=(hidden)" in caplog.text.replace("user.name=ann&", "")
    assert "delegation=(hidden)&a=b" in caplog.text
    for secret in (*given, *credentials.texts().values(), "SECRET"):
        assert secret not in caplog.text


def test_the_namenodes_behind_an_httpfs_may_be_named(yarn):
    """The advice of the message above."""
    yarn.token_services["WEBHDFS delegation"] = "127.0.0.1:8020"
    cluster = cluster_of(yarn, webhdfs=[closed_address()], namenodes={HDFS: yarn.url})
    assert (
        next(iter(obtain(cluster, cluster.resourcemanager(), cluster.open_filesystem(), ()).texts()))
        == "127.0.0.1:8020"
    )


def test_namenodes_of_the_configuration_give_the_tokens_behind_an_httpfs(yarn):
    """The token that the HttpFS gives for itself is cancelled."""
    httpfs = FakeYarn()
    with serving(httpfs) as url:
        httpfs.token_services["WEBHDFS delegation"] = "httpfs:14000"
        found = get(cluster_of(yarn, webhdfs=[url])).texts()
    assert (httpfs.tokens, httpfs.tokens_given, len(yarn.tokens)) == ([], 1, 2)
    assert next(iter(found)) == "127.0.0.1:8020"


def test_namenodes_out_of_reach_behind_an_httpfs_are_an_outage_with_advice(yarn):
    httpfs = FakeYarn()
    with serving(httpfs) as url:
        httpfs.token_services["WEBHDFS delegation"] = "httpfs:14000"
        yarn.conf = {**yarn.conf, "dfs.namenode.http-address": closed_address()[len("http://") :]}
        with pytest.raises(ClusterUnreachable, match=r"gives no tokens of the NameNodes.* 'namenodes: \{hdfs://127"):
            get(cluster_of(yarn, webhdfs=[url]))


@pytest.mark.parametrize("service", ["", "its own"])
def test_an_httpfs_before_a_pair_of_namenodes_gives_tokens_for_itself_only(yarn, service):
    yarn.token_services["WEBHDFS delegation"] = service and yarn.url[len("http://") :]
    with pytest.raises(TokensUnavailable, match="not a NameNode's own"):
        get(cluster_of(yarn, webhdfs=[closed_address(), yarn.url], default_filesystem="hdfs://pair"))


@pytest.mark.parametrize("url", ["hdfs:///code.zip", "s3://bucket-[0-9]/x"])
def test_urls_without_a_host_and_patterns_need_no_further_token(yarn, caplog, url):
    assert len(get(cluster_of(yarn), [url], [url]).texts()) == 2
    assert caplog.text == ""


def key_provider(yarn, hosts=""):
    yarn.key_provider = f"kms://http@{hosts}{yarn.url[len('http://') :]}/kms"
    return yarn.key_provider


def test_key_server_gives_a_token_that_programs_find_by_its_uri(yarn):
    uri = key_provider(yarn)
    credentials = get(cluster_of(yarn))
    assert list(credentials.texts()) == ["127.0.0.1:8020", uri, "127.0.0.1:8032,localhost:8032"]
    token = decode_token(credentials.texts()[uri])
    assert (token.kind, token.service, b"rm/localhost@EXAMPLE.COM" in token.identifier) == ("kms-dt", uri, True)
    credentials.cancel()
    assert yarn.tokens == []


def test_second_key_server_answers_where_the_first_is_away(yarn):
    uri = key_provider(yarn, "no-such-host.invalid;")
    assert uri in get(cluster_of(yarn)).texts()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_key_servers_without_a_port_have_that_of_their_scheme(yarn, scheme):
    """As Hadoop's ``KMSClientProvider`` has it: the address may be that of load balancers."""
    yarn.key_provider = f"kms://{scheme}@one.invalid;two.invalid/kms"
    with pytest.raises(KmsUnreachable, match=f"at {scheme}://two.invalid, {scheme}://one.invalid: "):
        get(cluster_of(yarn))


def test_key_server_that_is_away_can_answer_later(yarn):
    yarn.key_provider = f"kms://http@{closed_address()[len('http://') :]}/kms"
    with pytest.raises(KmsUnreachable, match=r"no KMS answers at http://127.0.0.1:.* check that it runs") as raised:
        get(cluster_of(yarn))
    assert (raised.value.reason.exit_code, raised.value.reason.retryable) == (4, True)
    assert yarn.tokens == []


@pytest.mark.parametrize("uri", ["jceks://file@/keys", "kms://ftp@host/kms", "kms://http@host:x/kms"])
def test_other_key_providers_need_no_token(yarn, uri):
    yarn.key_provider = uri
    assert len(get(cluster_of(yarn)).texts()) == 2


@pytest.mark.parametrize(
    "message",
    ["ann may not", "User: gw is not allowed to impersonate bob", "No rules applied to ann@CORP.LOCAL"],
)
def test_key_server_that_refuses_is_logged(yarn, caplog, message):
    uri = key_provider(yarn)
    yarn.tokens_refused["kms-dt"] = (403, {"message": message})
    assert len(get(cluster_of(yarn)).texts()) == 2
    assert f"the job gets no token for the KMS {uri}, and can read no encryption zone: " in caplog.text

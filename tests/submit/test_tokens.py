"""Submission on a secured cluster: its tokens travel with it, and none is left behind. The cluster is on the wire."""

import logging
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.place import ID, USER, Place, cancel_at, job
from tf_yarn_ops.errors import Cancelled, ClusterUnreachable, HadoopClientUnfit, ResourcesImpossible, SubmissionRejected
from tf_yarn_ops.hadoop.security.delegation import TokensUnavailable
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.tokens import decode_token
from tf_yarn_ops.submit.submitter import make_submitter

OTHER = "hdfs://127.0.0.1:8020"
APPS = "/ws/v1/cluster/apps"


@pytest.fixture
def place(yarn, tmp_path):
    """Return a secured cluster whose pages ask for no ticket; its files lie in a local folder, which needs no token."""
    place = Place(yarn, tmp_path / "files")
    yarn.conf |= {
        "hadoop.security.authentication": "kerberos",
        "yarn.resourcemanager.address": "localhost:8032",
        "yarn.resourcemanager.principal": "rm/_HOST@EXAMPLE.COM",
    }
    place.site = Site(namenodes={OTHER: yarn.url})
    return place


def launcher(place, **options):
    return place.launcher(place.site, **options)


def sent(place, name=ID):
    """Return the tokens that an application got."""
    container = place.yarn.apps[name]["body"]["am-container-spec"]
    return {item["key"]: decode_token(item["value"]) for item in container["credentials"]["tokens"]["entry"]}


def secrets_of(texts):
    return {decode_token(text).password for text in texts}


def test_the_tokens_travel_with_the_application_and_stay(place):
    assert launcher(place).submit(job(file_systems=[f"{OTHER}/data"])) == ID
    assert list(sent(place)) == ["127.0.0.1:8020", "127.0.0.1:8032,localhost:8032"]
    assert {token.password for token in sent(place).values()} == secrets_of(place.yarn.tokens)
    environment = [item["key"] for item in place.body()["am-container-spec"]["environment"]["entry"]]
    assert "HADOOP_USER_NAME" not in environment, "the token names the user"


def test_files_of_the_staging_directory_need_no_token(place):
    launcher(place).submit(job(file_systems=[f"file://{place.root}"], output=f"{place.root}/out"))
    assert [token.kind for token in sent(place).values()] == ["RM_DELEGATION_TOKEN"]


def test_an_unsecured_cluster_gets_none(place):
    place.yarn.conf["hadoop.security.authentication"] = "simple"
    launcher(place).submit(job())
    assert place.yarn.tokens_given == 0
    assert "credentials" not in place.body()["am-container-spec"]


@pytest.mark.parametrize(
    "break_it, error",
    [
        (
            lambda place: place.yarn.faults.append(
                lambda method, path: (400, {}, "bad") if (method, path) == ("POST", APPS) else None
            ),
            SubmissionRejected,
        ),
        (
            lambda place: place.yarn.faults.append(
                lambda method, path: (400, {}, "bad") if path.endswith("/new-application") else None
            ),
            SubmissionRejected,
        ),
        (lambda place: place.yarn.maximum.update(memory=1, vCores=1, resourceInformations={}), ResourcesImpossible),
        (lambda place: (place.root / "user").write_text("no directory"), SubmissionRejected),
    ],
    ids=["refused", "no id", "too large", "not staged"],
)
@pytest.mark.parametrize("identity", [None, Identity("a")], ids=["submit", "ensure"])
def test_a_submission_that_fails_leaves_no_token(place, break_it, error, identity):
    client = launcher(place)
    break_it(place)
    with pytest.raises(error):
        client.submit(job()) if identity is None else client.ensure(job(), identity)
    assert place.yarn.tokens == []


@pytest.mark.parametrize("at", ["/ws/v1/cluster/apps/new-application", "/ws/v1/cluster/delegation-token"])
def test_a_cancelled_submission_leaves_no_token(place, at):
    client = launcher(place)
    cancel_at(place, client, "POST", at)
    with pytest.raises(Cancelled):
        client.ensure(job(), Identity("a"))
    assert place.yarn.tokens == [] and not place.directories()


def test_a_submission_without_an_answer_keeps_its_tokens(place):
    """YARN may have accepted the application, which would fail without them."""
    client = launcher(place, submit_with="rest")
    place.yarn.faults.append(lambda method, path: (503, {}, "away") if (method, path) == ("POST", APPS) else None)
    client.session.resourcemanager._patience = 0.0
    with pytest.raises(ClusterUnreachable):
        client.ensure(job(), Identity("a"))
    assert len(place.yarn.tokens) == 1


@pytest.mark.slow
def test_clients_that_lose_a_race_cancel_their_tokens(place):
    clients = [launcher(place) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda client: client.ensure(job(), Identity("a")), clients))
    assert len({report.application_id for report in reports}) == 1, "which client wins is open"
    assert place.yarn.tokens_given >= 1
    assert secrets_of(place.yarn.tokens) >= {
        token.password for token in sent(place, reports[0].application_id).values()
    }
    # Two clients that send the same id at the same moment both have the right to be the one.
    posts = sum((method, path) == ("POST", APPS) for method, path, *_ in place.yarn.requests)
    assert len(place.yarn.tokens) <= posts


def test_a_client_that_comes_when_the_id_is_submitted_sends_no_second_one(place):
    first, second = launcher(place), launcher(place)
    first.ensure(job(), Identity("a"))
    with make_submitter(second.session, job()) as submitter:
        submitter.submit(job(), ID)
    assert place.yarn.count("POST", APPS) == 2, "an id and a submission"
    assert secrets_of(place.yarn.tokens) == {token.password for token in sent(place).values()}


def test_a_refused_look_at_a_submitted_application_keeps_its_tokens(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.submit.rest._ACCEPT_TIMEOUT", 0.2)
    client = launcher(place)
    place.yarn.faults.append(
        lambda method, path: (
            (401, {"WWW-Authenticate": "Negotiate"}, "Authentication required")
            if method == "GET" and path.endswith(ID) and ID in place.yarn.apps
            else None
        )
    )
    with pytest.raises(ClusterUnreachable, match="in an unknown state"):
        client.ensure(job(), Identity("a"))
    assert secrets_of(place.yarn.tokens) == {token.password for token in sent(place).values()}
    assert place.directories() == [ID]


def test_client_without_files_does_not_repeat_anothers_submission(place):
    first, second = launcher(place), launcher(place)
    first.ensure(job(), Identity("a"))
    looks = []

    def forget(method, path):
        if method == "GET" and path.endswith(ID):
            looks.append(path)
            if len(looks) > 1:
                place.yarn.apps.pop(ID, None)

    place.yarn.faults.append(forget)
    with make_submitter(second.session, job()) as submitter, pytest.raises(ClusterUnreachable, match=f"forgotten {ID}"):
        submitter.submit(job(), ID)
    assert place.yarn.count("POST", APPS) == 2 and place.yarn.apps == {}, "an id and a submission, of the first"


REFUSED = {"exception": "YarnException", "message": "Delegation token operations need a Kerberos channel"}


def test_rest_refuses_before_it_stages_when_there_are_no_tokens(place):
    place.yarn.tokens_refused["RM_DELEGATION_TOKEN"] = 403, REFUSED
    with pytest.raises(
        TokensUnavailable, match=r"the ResourceManager gives no token over HTTP.*need a Kerberos channel"
    ):
        launcher(place, submit_with="rest").submit(job())
    assert not place.staging.exists() and place.yarn.count("POST", APPS) == 0


@pytest.mark.parametrize("identity", [None, Identity("a")], ids=["submit", "ensure"])
def test_auto_takes_skeins_client_where_there_are_no_tokens(place, caplog, tmp_path, identity):
    place.yarn.tokens_refused["RM_DELEGATION_TOKEN"] = 403, REFUSED
    client = launcher(place, environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    with caplog.at_level(logging.INFO), pytest.raises(SubmissionRejected, match="yarn"):
        client.submit(job()) if identity is None else client.ensure(job(), identity)
    assert re.search(
        "submitting with Skein's Java client, because .* no token over HTTP: .* a Kerberos channel", caplog.text
    )


@pytest.mark.parametrize("identity", [None, Identity("a")], ids=["submit", "ensure"])
def test_where_both_ways_are_closed_the_message_says_why(place, tmp_path, identity):
    place.yarn.tokens_refused["RM_DELEGATION_TOKEN"] = 403, REFUSED
    client = launcher(place, environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    with pytest.raises(
        HadoopClientUnfit,
        match=r"no 'yarn' on PATH.*\. Submission over HTTP is closed: .* no token over "
        r"HTTP: .* a Kerberos channel",
    ) as raised:
        client.submit(job()) if identity is None else client.ensure(job(), identity)
    assert raised.value.hint == "Correct Hadoop's client on this machine, or what closes HTTP, as the message says."


def test_failed_skein_submission_names_the_http_route(place, tmp_path):
    client = launcher(place, submit_with="skein", environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    with pytest.raises(HadoopClientUnfit, match=r"Put the bin folder of Hadoop there$") as raised:
        client.submit(job())
    assert raised.value.hint.endswith("or submit over HTTP.")


@pytest.mark.parametrize("identity", [None, Identity("a")], ids=["submit", "ensure"])
def test_auto_takes_skeins_client_where_the_namenode_takes_no_ticket(place, caplog, tmp_path, identity):
    place.yarn.conf |= {"fs.defaultFS": OTHER, "dfs.namenode.http-address": place.url[len("http://") :]}
    place.yarn.faults.append(
        lambda method, path: (
            (401, {"WWW-Authenticate": "Basic"}, "Authentication required") if path.startswith("/webhdfs/") else None
        )
    )
    client = launcher(place, environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    with caplog.at_level(logging.INFO), pytest.raises(SubmissionRejected, match="yarn"):
        client.submit(job()) if identity is None else client.ensure(job(), identity)
    assert re.search("submitting with Skein's Java client, because .* wants a login that is not Kerberos", caplog.text)


def test_a_renewal_that_yarn_could_not_do_is_a_refusal_with_what_to_do(place):
    """YARN answers 202, and fails the application when it can't renew a token."""
    failed = "Failed to renew token: Kind: HDFS_DELEGATION_TOKEN, Service: 127.0.0.1:8020"

    def refuse(method, path):
        if method == "GET" and path == f"{APPS}/{ID}" and ID in place.yarn.apps:
            place.yarn.end(ID, failed, "FAILED", "FAILED")

    place.yarn.faults.append(refuse)
    with pytest.raises(
        SubmissionRejected, match=r"YARN refused .*: Failed to renew token: .*set token_renewer in site\.yaml"
    ):
        launcher(place).submit(job())
    assert place.yarn.tokens == [] and not place.directories()


def test_the_user_of_a_doas_owns_the_tokens(place):
    place.yarn.user_seen = "bob"
    from tf_yarn_ops.hadoop.cluster import discover
    from tf_yarn_ops.launch.launcher import Launcher

    cluster = discover(place.url, {"HOME": "/nowhere", "HADOOP_USER_NAME": USER}, user="bob", site=place.site)
    with make_submitter(Launcher(cluster).session, job(tasks={"worker": TaskSpec()})) as submitter:
        submitter.check(job())
        asked = [parameters for _, path, parameters, *_ in place.yarn.requests if path.endswith("/delegation-token")]
    assert asked == [{"user.name": USER, "doAs": "bob"}]
    assert place.yarn.requests[-1][0] == "DELETE" and place.yarn.requests[-1][2] == {"user.name": USER, "doAs": "bob"}

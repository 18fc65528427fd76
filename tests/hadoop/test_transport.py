"""Requests to a ResourceManager: fail-over, redirects, truncated answers, patience."""

import json
import socket
import struct
import threading
import time

import httpx
import pytest

from support.fake_webhdfs import serving_files
from support.fake_yarn import STAMP, FakeYarn, application, closed_address, serving, slowly, stand_by
from support.hadoop_clients import client
from support.waiting import until
from tf_yarn_ops.errors import ClusterUnreachable, KerberosRefused, SubmissionRejected
from tf_yarn_ops.hadoop.resourcemanager import ResourceManager
from tf_yarn_ops.hadoop.security.authentication import KerberosAuthentication, SimpleAuthentication
from tf_yarn_ops.hadoop.security.tickets import Tickets
from tf_yarn_ops.hadoop.transport import Addresses, Failover, explain_body, seconds_ahead
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common import container_http, webhdfs_calls
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.webhdfs_calls import PROBE_SECONDS

ID = f"application_{STAMP}_0001"


def test_proxies_of_the_environment_are_not_used(wire_and_real, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert client(wire_and_real.url).info()["hadoopVersion"] == "3.4.3"


def test_server_that_is_not_a_resourcemanager_is_reported(yarn):
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "text/html"}, "<html><b>It works!</b></html>"))
    with pytest.raises(ClusterUnreachable, match="is no YARN ResourceManager: It works!"):
        client(yarn.url).info()


@pytest.mark.parametrize("text", ["", '{"app": {"id": "x"', "[]", "null", '{"other": 1}', "[" * 100_000])
@pytest.mark.parametrize(
    "ask",
    [
        lambda rm: rm.info(),
        lambda rm: rm.get(ID),
        lambda rm: rm.scheduler(),
        lambda rm: rm.kill(ID, "x"),
        lambda rm: rm.new_application(),
    ],
    ids=["info", "get", "scheduler", "kill", "new application"],
)
def test_truncated_answer_is_an_error_of_ours(yarn, text, ask):
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "application/json"}, text))
    with pytest.raises(ClusterUnreachable, match="does not answer as YARN does"):
        ask(client(yarn.url))


@pytest.mark.parametrize(
    "text",
    ["", '{"apps": {"app": [', "[]", '{"apps": "x", "nodes": "x"}', '{"apps": {"app": [1]}, "nodes": {"node": ["x"]}}'],
)
def test_truncated_list_is_an_error_of_ours(yarn, text):
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "application/json"}, text))
    for ask in (lambda rm: rm.find(), lambda rm: rm.nodes()):
        with pytest.raises(ClusterUnreachable, match=r"does not (answer|list (apps|nodes)) as YARN does"):
            ask(client(yarn.url))


def test_absent_resourcemanager_is_reported_within_the_patience():
    started = time.monotonic()
    address = closed_address()
    with pytest.raises(
        ClusterUnreachable, match=f"no ResourceManager answers at {address}.*refused.*--resourcemanager"
    ):
        client(address, patience=0.3).info()
    assert time.monotonic() - started < 60


def test_a_resourcemanager_that_hangs_does_not_hang_us(wire_and_real):
    wire_and_real.faults.append(slowly(120))
    started = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="timed out"):
        client(wire_and_real.url, patience=0.1, request_timeout=0.2).info()
    assert time.monotonic() - started < 60


#: Of the probes in the rows below, a quarter of the real ones.
SHORT_PROBES = tuple(seconds / 4 for seconds in PROBE_SECONDS)


@pytest.fixture
def hung(monkeypatch):
    """Return the address of a server that takes connections, and answers nothing, as after SIGSTOP."""
    monkeypatch.setattr(webhdfs_calls, "PROBE_SECONDS", SHORT_PROBES)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("limit", "probes"),
    [(1.5, []), (5.9, []), (6.0, [2.0]), (10.0, [2.0]), (30.0, [2.0, 4.0, 8.0]), (None, [2.0, 4.0, 8.0])],
)
def test_probes_take_a_part_of_the_time_of_a_request(limit, probes):
    """A kill in the last seconds of a worker is the first request."""
    addresses = Addresses(["http://a:1", "http://b:1"])
    failover, seen = Failover(addresses), []
    while probe := failover.probe(limit):
        seen.append(probe[1])
        failover.skip(TimeoutError())
    assert seen == [seconds for seconds in probes for _ in addresses.urls]
    addresses.answering.add(failover.address)
    assert failover.probe(limit) is None


@pytest.mark.parametrize(
    "open_files",
    [lambda *urls: WebHdfs(urls, SimpleAuthentication("ann"), 60.0), lambda *urls: Hdfs(urls, "ann", {}, seconds=60.0)],
    ids=["client", "container"],
)
@pytest.mark.parametrize("first", ["write", "read"])
@pytest.mark.parametrize("others", ["active", "standby and active"])
def test_hung_namenode_costs_a_new_client_one_short_wait(hung, open_files, first, others):
    with serving_files() as active, serving_files() as standby:
        standby.faults.append(lambda operation, path: (403, "StandbyException", "standby"))
        files = open_files(hung, *([standby.url] if others != "active" else []), active.url)
        began = time.monotonic()
        for _ in range(2):
            if first == "write":
                files.makedirs("/x/y", 0o755)
            assert files.find("/nothing") is None
            files.makedirs("/x/y", 0o755)
        assert SHORT_PROBES[0] <= time.monotonic() - began < 20 * PROBE_SECONDS[0]
        assert "/x/y" in active.folders


@pytest.mark.parametrize(
    "open_files",
    [lambda *urls: WebHdfs(urls, SimpleAuthentication("ann"), 60.0), lambda *urls: Hdfs(urls, "ann", {}, seconds=60.0)],
    ids=["client", "container"],
)
@pytest.mark.parametrize("other", ["hangs", "answers", "is down"])
def test_datanode_asks_namenode_that_answers_if_other_hangs(hung, open_files, other):
    """Its own client of the pair would wait minutes for the other one."""
    with serving_files() as active, serving_files() as standby:
        standby.faults.append(lambda operation, path: (403, "StandbyException", "standby"))
        active.datanodes = {"127.0.0.1": "127.0.0.1"}
        files = open_files({"hangs": hung, "answers": standby.url, "is down": closed_address()}[other], active.url)
        files.replace("/x", b"content", 0o600)
        assert files.read_appended("/x", 0, 7, 9) == b"content"
        named = {query["namenoderpcaddress"] for *_, query in active.requests if "step" in query}
        assert named == {"nn2:8020" if other == "hangs" else "pair"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "open_files",
    [lambda *urls: WebHdfs(urls, SimpleAuthentication("ann"), 60.0), lambda *urls: Hdfs(urls, "ann", {}, seconds=60.0)],
    ids=["client", "container"],
)
def test_slow_namenode_is_asked_before_the_whole_wait_for_the_hung_one(hung, open_files):
    with serving_files() as active:
        active.released.clear()
        threading.Timer(2.5 * SHORT_PROBES[0], active.released.set).start()
        began = time.monotonic()
        open_files(hung, active.url).makedirs("/x", 0o755)
        assert time.monotonic() - began < 20 * PROBE_SECONDS[0]


@pytest.mark.slow
def test_slow_namenode_has_the_whole_limit_after_all_others(monkeypatch):
    """A probe that has no answer decides nothing: the request goes to the active one, once."""
    monkeypatch.setattr(webhdfs_calls, "PROBE_SECONDS", SHORT_PROBES)
    with serving_files() as active, serving_files() as standby:
        standby.faults.append(lambda operation, path: (403, "StandbyException", "standby"))
        active.released.clear()
        threading.Timer(1.5 * SHORT_PROBES[0], active.released.set).start()
        Hdfs([active.url, standby.url], "ann", {}, seconds=60.0).makedirs("/x", 0o755)
        assert [operation for _, operation, *_ in active.requests].count("MKDIRS") == 1


@pytest.mark.parametrize("ask", [lambda rm: rm.find(), lambda rm: rm.new_application()], ids=["read", "write"])
def test_hung_resourcemanager_costs_a_new_client_one_short_wait(hung, yarn, ask):
    resourcemanager = client(hung, yarn.url, request_timeout=60.0)
    began = time.monotonic()
    ask(resourcemanager)
    ask(resourcemanager)
    assert SHORT_PROBES[0] <= time.monotonic() - began < 20 * PROBE_SECONDS[0]


def test_hung_resourcemanager_costs_a_container_one_wait(yarn, monkeypatch):
    monkeypatch.setattr(container_http, "RM_REQUEST_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(3):
            found = container_http.query_yarn(
                [f"http://127.0.0.1:{server.getsockname()[1]}", yarn.url], "info", "clusterInfo"
            )
            assert found["hadoopVersion"] == "3.4.3"
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_the_next_address_is_asked_when_the_first_is_down(wire_and_real):
    resourcemanager = client(closed_address(), wire_and_real.url)
    resourcemanager.info()
    resourcemanager.info()
    assert wire_and_real.count("GET", "/ws/v1/cluster/info") == 2
    assert resourcemanager.address == wire_and_real.url


def test_a_standby_redirects_and_is_not_asked_again(wire_and_real):
    standby = FakeYarn()
    with serving(standby) as url:
        standby.faults.append(
            lambda method, path: (
                307,
                {"Location": f"{wire_and_real.url}{path}?user.name=x"},
                "This is standby RM. The redirect url is: ...",
            )
        )
        resourcemanager = client(url, wire_and_real.url)
        assert resourcemanager.new_application()[0].startswith("application_")
        name = wire_and_real.add(application(1))
        resourcemanager.kill(name, "because")
        assert [path for method, path, *_ in standby.requests if method != "GET"] == [
            "/ws/v1/cluster/apps/new-application"
        ]
        until(lambda: resourcemanager.get(name)["state"] == "KILLED")


@pytest.mark.parametrize("known", ["one", "both"])
def test_a_standby_that_was_asked_first_leads_to_the_active_one(yarn, known):
    standby = FakeYarn()
    with serving(standby) as url:
        stand_by(standby, yarn.url)
        asker = client(url, *([yarn.url] if known == "both" else []))
        asker.await_active()
        assert asker.address == yarn.url
        asker.submit({"application-id": ID, "application-name": "x", "queue": "default"})
    assert ID in yarn.apps


def test_an_active_one_is_waited_for_before_a_submission(yarn):
    stand_by(yarn)
    with pytest.raises(
        ClusterUnreachable, match=r"no ResourceManager answers .* is not active .Can not find any active RM"
    ):
        client(yarn.url, patience=0.3).submit({"application-id": ID})
    assert yarn.count("POST", "/") == 0


def test_no_active_resourcemanager_yet_is_waited_for(wire_and_real):
    answers = [(200, {"Content-Type": "text/plain", "Refresh": "3"}, "Can not find any active RM. Will retry.")] * 2
    wire_and_real.faults.append(lambda method, path: answers.pop() if answers else None)
    assert client(wire_and_real.url, patience=5).info()["haState"] == "ACTIVE"
    assert len(wire_and_real.requests) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "status, text",
    [
        (307, "Can not find any active RM. Will retry in next 5 seconds."),
        (302, "This is standby RM."),
        (200, "There is no active RM right now."),
    ],
)
def test_a_standby_that_knows_no_active_one_is_waited_for(yarn, status, text):
    """Hadoop answers 307 without a Location while no ResourceManager is active."""
    answers = [(status, {"Content-Type": "text/plain", "Refresh": "3"}, text)] * 2
    yarn.faults.append(lambda method, path: answers.pop() if answers else None)
    assert client(yarn.url, patience=5).scheduler()["type"] == "capacityScheduler"
    answers += [(status, {}, text)] * 1000
    with pytest.raises(ClusterUnreachable, match=f"is not active .{text}."):
        client(yarn.url, patience=0.2).scheduler()


def test_so_many_redirects_are_followed_before_an_address_counts_as_failed():
    failover = Failover(Addresses(["http://a:1"]), patience=0.0)
    hop = httpx.Response(307, headers={"Location": "http://a:1/x"})
    assert [failover.answered(hop) for _ in range(container_http.MAX_HOPS)] == [0.0] * container_http.MAX_HOPS
    with pytest.raises(ClusterUnreachable, match="http://a:1 redirects in a circle"):
        failover.answered(hop)


def test_redirects_in_a_circle_end(wire_and_real):
    wire_and_real.faults.append(lambda method, path: (307, {"Location": f"{wire_and_real.url}{path}"}, ""))
    with pytest.raises(ClusterUnreachable, match="redirects in a circle"):
        client(wire_and_real.url, patience=0.2).info()


def test_a_dropped_connection_is_tried_again(wire_and_real):
    dropped = []

    def drop(method, path):
        if not dropped:
            dropped.append(path)
            raise ConnectionResetError

    wire_and_real.faults.append(drop)
    assert client(wire_and_real.url, patience=5).info()["hadoopVersion"]


@pytest.mark.parametrize(
    "ask", [lambda rm: rm.get(ID), lambda rm: rm.kill(ID, "x"), lambda rm: rm.set_priority(ID, 1), lambda rm: rm.find()]
)
@pytest.mark.parametrize("state", ["INITIALIZING", "STANDBY"])
def test_an_answer_counts_only_from_an_active_resourcemanager(yarn, ask, state):
    yarn.ha_state = state
    with pytest.raises(ClusterUnreachable, match=r"is still starting|no ResourceManager (is active|answers)"):
        ask(client(yarn.url, patience=0.1))


def test_a_token_that_a_standby_does_not_know_is_shown_to_the_other():
    refusal = "SecretManager$InvalidToken: Token for real user: , can't be found in cache"
    one, two = FakeYarn(), FakeYarn()
    one.faults.append(lambda method, path: (403, {"Content-Type": "text/html"}, refusal))
    with serving(one) as first, serving(two) as second:
        assert client(first, second).info()["haState"] == "ACTIVE"
        two.faults.extend(one.faults)
        with pytest.raises(SubmissionRejected, match="can't be found in cache"):
            client(first, second).info()


@pytest.mark.parametrize(
    "body, cause",
    [
        ("", ""),
        ("no such user\nsecond line", "no such user"),
        ('{"RemoteException": {"exception": "NotFoundException", "message": "app is unknown"}}', "app is unknown"),
        (
            '{\n  "servlet":"default",\n  "message":"Not Found",\n  "url":"/gateway/x",\n  "status":"404"\n}',
            "Not Found",
        ),
        ('{"status":"401","message":"Bad request: Token has expired"}', "Bad request: Token has expired"),
        (
            '{\n"url":"/conf",\n"status":"500",\n"message":"org.apache.hadoop.security.authentication.util.'
            'KerberosName$NoMatchingRule: No rules applied to eve@OTHER"\n}',
            "No rules applied to eve@OTHER",
        ),
        ('{"error": {"code": 403, "message": "not for you"}}', "not for you"),
        ('{"error": "invalid_token", "error_description": "it has ended"}', "it has ended"),
        ('{"message": "", "reason": "busy"}', "busy"),
        ('{"message": null}', '{"message": null}'),
        ('"a text"', "a text"),
        ('{"cut": ', '{"cut":'),
        ("<RemoteException><exception>X</exception><message>a &lt;b&gt;</message></RemoteException>", "a <b>"),
        ("<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>no key</Message></Error>", "no key"),
        (
            "<html><head><style>body {\n color: red }</style>\n<title>Error 403 Forbidden</title></head></html>",
            "Error 403 Forbidden",
        ),
        ("[" * 100_000, "[" * 500),
        ("java.io.IOException: java.net.ConnectException: Connection refused", "Connection refused"),
    ],
)
def test_body_of_an_error_is_explained(body, cause):
    assert explain_body(body) == cause


def test_principal_without_a_rule_is_refused_for_good(wire_and_real):
    text = '{\n"status": "500",\n"message": "a.KerberosName$NoMatchingRule: No rules applied to eve@OTHER"\n}'
    wire_and_real.faults.append(lambda method, path: (500, {"Content-Type": "application/json"}, text))
    with pytest.raises(KerberosRefused, match=r"has no user for the principal .No rules applied to eve@OTHER.*auth_to"):
        client(wire_and_real.url).info()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["a", "<", "<!--", "<style ", "<message>", "a.", "{", "<a", "Exception: "])
def test_error_body_of_any_text_is_read_in_linear_time(text):
    assert len(explain_body(text * (60_000 // len(text)))) <= 500


def test_kept_connection_that_is_reset_is_replaced_once():
    """A daemon may close an idle connection at the moment at which the next request begins on it."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    content = json.dumps({"clusterInfo": {"state": "STARTED", "haState": "ACTIVE"}}).encode()
    accepted = []

    def serve(listener):
        while True:
            connection = listener.accept()[0]
            accepted.append(connection)
            for number in range(2):
                if not connection.recv(65536):
                    break
                if number or len(accepted) > 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.close()
                    break
                connection.sendall(answer % (len(content), content))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        made = client(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=0.0)
        assert made.info()["state"] == made.info()["state"] == "STARTED" and len(accepted) == 2
        with pytest.raises(ClusterUnreachable, match="reset by peer"):
            made.info()


@pytest.mark.parametrize(
    "date, ahead",
    [
        ("Thu, 01 Jan 1970 00:16:40 GMT", 0.5),
        ("Thu, 01 Jan 1970 00:26:40 GMT, Thu, 01 Jan 1970 00:26:40 GMT", 600.5),
        (None, None),
        ("", None),
        ("soon", None),
        ("Thu, 32 Jan 1970 00:00:00 GMT", None),
        ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Thu, 01 Jan 1970 99999999999999999999:00:00 GMT", None),
    ],
)
def test_clock_of_a_server_is_read_from_its_answer_if_it_has_one(date, ahead):
    answer = httpx.Response(200, headers={} if date is None else {"Date": date})
    assert seconds_ahead(answer, 1000.0) == ahead


class OneTicket(Tickets):
    """The tickets of a process whose KDC gives one for every service."""

    def begin(self, host):
        return None, b"ticket"


def test_ticket_is_shown_to_an_address_that_demands_it():
    """The first answer of a request with a ticket counts as one of httpx's redirects."""
    yarn, demands = FakeYarn(), [(401, {"WWW-Authenticate": "Negotiate"}, "")]
    yarn.faults.append(lambda method, path: demands.pop() if demands else None)
    with serving(yarn) as url:
        manager = ResourceManager([url], KerberosAuthentication("ann", tickets=OneTicket()))
        assert manager.info()["haState"] == "ACTIVE"
        manager.close()

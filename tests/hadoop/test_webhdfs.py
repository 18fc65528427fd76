"""HDFS over HTTP: the two steps of a file's content, fail-over, time limits, errors; NameNodes and DataNodes on the wire."""

import json
import re
import socket
import threading
import time
import tracemalloc
from contextlib import contextmanager
from urllib.parse import quote

import httpx
import pytest

from support.fake_yarn import FakeYarn, closed_address, serving, slowly
from tf_yarn_ops.errors import ClusterUnreachable, KerberosRefused, KmsUnreachable, SubmissionRejected, TicketMissing
from tf_yarn_ops.hadoop.security.authentication import KerberosAuthentication, SimpleAuthentication
from tf_yarn_ops.hadoop.security.tickets import Tickets
from tf_yarn_ops.hadoop.webhdfs import WebHdfs

ANN = SimpleAuthentication("ann")


class Pieces:
    """The content of a file that never lies in memory as a whole."""

    def __init__(self, number, length):
        self.size = number * length
        self.number, self.length = number, length

    def __iter__(self):
        for _ in range(self.number):
            yield b"x" * self.length


#: More than the sockets' buffers of both sides hold.
LARGE = Pieces(128, 1 << 18)


@contextmanager
def datanode(pause=0.0, answer=b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"):
    """Serve one upload: read the request's head, nothing for a while, then the rest; yields its URL and what it got."""
    got = {}

    def serve(server):
        connection, _ = server.accept()
        with connection:
            content = b""
            while b"\r\n\r\n" not in content:
                content += connection.recv(4096)
            got["head"], _, rest = content.partition(b"\r\n\r\n")
            time.sleep(pause)
            got["size"], length = len(rest), int(re.search(rb"(?i)content-length: (\d+)", got["head"])[1])
            while got["size"] < length and (piece := connection.recv(1 << 20)):  # type: ignore[operator]
                got["size"] += len(piece)  # type: ignore[operator]
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", got


@contextmanager
def leading_to(url):
    """Serve a NameNode that redirects to another address; yields its URL and the requests."""
    yarn = FakeYarn()
    yarn.faults.append(lambda method, path: (307, {"Location": f"{url}{quote(path)}?op=CREATE&token=a%2Bb"}, ""))
    with serving(yarn) as namenode:
        yield namenode, yarn.requests


class NoTickets(Tickets):
    """A ticket cache that is empty, on a machine without Kerberos's library too."""

    def begin(self, host):
        raise TicketMissing("there is no valid Kerberos ticket")


def test_missing_ticket_keeps_its_hint(yarn):
    """Its next step is kinit, not another address; a wait counts it as another kind of outage."""
    yarn.faults.append(lambda method, path: (401, {"WWW-Authenticate": "Negotiate"}, ""))
    files = WebHdfs((yarn.url,), KerberosAuthentication("ann", tickets=NoTickets()), 10.0)
    with pytest.raises(TicketMissing, match=r"^looking at /x: there is no valid Kerberos ticket$") as raised:
        files.status("/x")
    assert "Kerberos" in raised.value.hint


def test_a_file_is_created_in_two_steps_and_streamed():
    """The NameNode gets no content and names the DataNode, which gets it in pieces, with its length."""
    with datanode() as (url, got), leading_to(url) as (namenode, requests):
        files = WebHdfs((namenode,), SimpleAuthentication("ann", "bob"), 10.0)
        tracemalloc.start()
        try:
            assert files.create("/user/a b/%41+c", LARGE, 0o600)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    method, path, parameters, headers, body = requests[0]
    assert (method, path, body) == ("PUT", "/webhdfs/v1/user/a b/%41+c", None)
    assert parameters == {"op": "CREATE", "user.name": "ann", "doas": "bob", "overwrite": "false", "permission": "600"}
    lines = got["head"].decode().splitlines()
    assert lines[0] == "PUT /webhdfs/v1/user/a%20b/%2541%2Bc?op=CREATE&token=a%2Bb HTTP/1.1"
    sent = dict(line.lower().split(": ", 1) for line in lines[1:])
    for name in ("x-xsrf-header", "content-type"):
        assert sent[name] == {key.lower(): value for key, value in headers.items()}[name]
    assert sent["content-type"] == "application/octet-stream", "HttpFS takes nothing else"
    assert (got["size"], sent["content-length"], "transfer-encoding" in sent) == (LARGE.size, str(LARGE.size), False)
    assert peak < LARGE.size / 4


@pytest.mark.parametrize("content", [b"", b"some bytes"])
def test_bytes_are_sent_with_their_length(content):
    with datanode() as (url, got), leading_to(url) as (namenode, _):
        assert WebHdfs((namenode,), ANN, 10.0).create("/x", content, 0o600)
    assert got["size"] == len(content)


@pytest.mark.slow
def test_a_datanode_may_stop_reading_for_longer_than_a_namenode_may_take():
    timeout = 1.5
    with datanode(pause=1.5 * timeout) as (url, got), leading_to(url) as (namenode, _):
        assert WebHdfs((namenode,), ANN, timeout).create("/x", LARGE, 0o600)
    assert got["size"] == LARGE.size


@pytest.mark.slow
def test_a_datanode_that_stops_reading_for_good_is_given_up():
    began = time.monotonic()
    with (
        datanode(pause=120) as (url, _),
        leading_to(url) as (namenode, _),
        pytest.raises(ClusterUnreachable, match=f"writing /x: the DataNode {url[7:]} does not answer: .*timed out"),
    ):
        WebHdfs((namenode,), ANN, 1.0).create("/x", LARGE, 0o600)
    assert time.monotonic() - began < 60


def test_only_datanode_may_take_as_long_as_a_look_to_connect(monkeypatch):
    """On a machine with a load of 20 the handshake of TLS has taken longer than 3 s."""
    request, given = httpx.Client.request, []

    def noting(client, method, url, **options):
        if str(url).startswith(content):
            given.append(options["timeout"])
            if len(given) == 1:
                raise httpx.ConnectTimeout("the handshake takes long")
        return request(client, method, url, **options)

    monkeypatch.setattr(httpx.Client, "request", noting)
    with datanode() as (content, _), leading_to(content) as (namenode, _):
        assert WebHdfs((namenode,), ANN, 10.0).create("/x", b"content", 0o600)
    assert [(limits.connect, limits.read) for limits in given] == [(3.0, 90.0), (10.0, 90.0)]


def test_unreachable_datanode_is_named_with_advice():
    address = closed_address()
    with leading_to(address) as (namenode, _), pytest.raises(ClusterUnreachable) as raised:
        WebHdfs((namenode,), ANN, 10.0).read("/x")
    assert str(raised.value) == (
        f"reading /x: the DataNode {address[7:]} does not answer: [Errno 111] Connection refused. A file's content goes "
        "to the DataNodes directly: let this machine reach them, or set webhdfs in site.yaml to an HttpFS"
    )


TAKEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 87\r\n\r\n"
    b'{"RemoteException":{"exception":"FileAlreadyExistsException","message":"/x exists"}}   '
)


def test_a_file_that_a_datanode_finds_taken_is_not_created():
    with datanode(answer=TAKEN) as (url, _), leading_to(url) as (namenode, _):
        assert WebHdfs((namenode,), ANN, 10.0).create("/x", b"1", 0o600) is False


def test_second_redirect_is_an_error():
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n"
    with (
        datanode(answer=answer) as (url, _),
        leading_to(url) as (namenode, _),
        pytest.raises(ClusterUnreachable, match="answers 307, not as a NameNode"),
    ):
        WebHdfs((namenode,), ANN, 10.0).create("/x", b"1", 0o600)


def test_only_a_files_content_lies_elsewhere():
    with leading_to("http://elsewhere") as (namenode, _):
        files = WebHdfs((namenode,), ANN, 10.0)
        for ask in (lambda: files.makedirs("/x", 0o700), lambda: files.rename("/x", "/y"), lambda: files.status("/x")):
            with pytest.raises(ClusterUnreachable, match="answers 307, not as a NameNode"):
                ask()


def test_a_namenode_that_names_no_datanode_has_taken_nothing():
    yarn = FakeYarn()
    yarn.pages["/webhdfs/v1/x"] = ("application/json", "{}")
    with serving(yarn) as url, pytest.raises(ClusterUnreachable, match="the answer is 200, and names no DataNode"):
        WebHdfs((url,), ANN, 10.0).create("/x", b"1", 0o600)


@pytest.mark.parametrize("there, renamed", [(200, False), (404, None)], ids=["taken", "another cause"])
def test_rename_returns_whether_the_target_was_free(there, renamed):
    """WebHDFS answers false without a cause."""
    yarn = FakeYarn()
    yarn.pages["/webhdfs/v1/a"] = ("application/json", '{"boolean": false}')
    status = (
        '{"FileStatus": {"pathSuffix": "", "type": "FILE", "length": 1, "modificationTime": 1, "accessTime": 1, '
        '"owner": "ann", "permission": "600"}}'
    )
    none = '{"RemoteException": {"exception": "FileNotFoundException", "message": "none"}}'
    yarn.faults.append(
        lambda method, path: (
            (there, {"Content-Type": "application/json"}, status if there == 200 else none)
            if path.endswith("/b")
            else None
        )
    )
    with serving(yarn) as url:
        files = WebHdfs((url,), ANN, 10.0)
        if renamed is None:
            with pytest.raises(SubmissionRejected, match="renaming /a: the file system refused to rename it to /b"):
                files.rename("/a", "/b")
        else:
            assert files.rename("/a", "/b") is renamed
    assert yarn.requests[0][2] == {"op": "RENAME", "user.name": "ann", "destination": "/b"}


def test_listing_a_file_is_an_error():
    yarn = FakeYarn()
    item = (
        '{"pathSuffix": "", "type": "FILE", "length": 1, "modificationTime": 1, "accessTime": 1, "owner": "ann", '
        '"permission": "600"}'
    )
    yarn.pages["/webhdfs/v1/x"] = ("application/json", f'{{"FileStatuses": {{"FileStatus": [{item}]}}}}')
    with serving(yarn) as url, pytest.raises(SubmissionRejected, match="listing /x: it is a file, not a directory"):
        WebHdfs((url,), ANN, 10.0).list("/x")


def test_namenode_that_is_down_is_asked_only_once():
    active = FakeYarn()
    active.pages["/webhdfs/v1/x"] = ("application/json", '{"boolean": true}')
    with serving(active) as url:
        files = WebHdfs((closed_address(), url), ANN, 10.0)
        files.makedirs("/x", 0o700)
        files.makedirs("/x", 0o700)
    assert active.count("PUT", "/webhdfs/v1/x") == 2


@pytest.mark.parametrize(
    "offered, says",
    [
        (
            "Negotiate",
            r"making the directory /x: \S+ wants a Kerberos ticket. Only an address that is configured as webhdfs is shown one",
        ),
        ("Basic realm=x", "wants a login that is not Kerberos: Basic realm=x"),
    ],
)
def test_a_namenode_that_wants_a_login_is_a_refusal(offered, says):
    yarn = FakeYarn()
    yarn.faults.append(lambda method, path: (401, {"WWW-Authenticate": offered}, "Authentication required"))
    with serving(yarn) as url, pytest.raises(SubmissionRejected, match=says):
        WebHdfs((url,), ANN, 10.0).makedirs("/x", 0o700)


def test_principal_without_a_rule_is_refused_for_good():
    """An HttpFS has rules of its own, and answers as its web server does."""
    yarn = FakeYarn()
    text = (
        '{"servlet": "x", "message": "a.KerberosName$NoMatchingRule: No rules applied to eve@OTHER", "status": "500"}'
    )
    yarn.faults.append(lambda method, path: (500, {"Content-Type": "application/json"}, text))
    says = r"making .* has no user for the principal \(No rules applied to eve@OTHER\).* httpfs.authentication.kerberos.name"
    with serving(yarn) as url, pytest.raises(KerberosRefused, match=says):
        WebHdfs((url,), ANN, 10.0).makedirs("/x", 0o700)


def namenode(*answers):
    """A NameNode on the wire that gives these (status, exception, message)."""
    yarn = FakeYarn()
    left = list(answers)

    def fault(method, path):
        status, exception, message = left.pop(0) if len(left) > 1 else left[0]
        text = f'{{"RemoteException": {{"exception": "{exception}", "message": "{message}"}}}}'
        return status, {"Content-Type": "application/json"}, text

    yarn.faults.append(fault)
    return yarn


@pytest.mark.parametrize(
    "exception, message, error, says",
    [
        (
            "SafeModeException",
            "Cannot create directory. Name node is in safe mode.",
            ClusterUnreachable,
            "can't write now",
        ),
        (
            "StandbyException",
            "Operation category WRITE is not supported",
            ClusterUnreachable,
            r"no NameNode answers at \S+: \S+ is not active \(Operation category WRITE is not supported\)",
        ),
        (
            "IOException",
            "Failed to find datanode, suggest to check cluster health. excludeDatanodes=null",
            ClusterUnreachable,
            "no DataNode for the content now: Failed to find datanode.*hdfs dfsadmin -report",
        ),
        (
            "IOException",
            "All datanodes [DatanodeInfoWithStorage[127.0.0.1:9866,DS-1,DISK]] are bad. Aborting...",
            ClusterUnreachable,
            "no DataNode for the content now: All datanodes",
        ),
        (
            "IOException",
            "File /x could only be written to 0 of the 1 minReplication nodes. There are 1 datanode(s) running",
            ClusterUnreachable,
            "no DataNode for the content now: File /x could only be written to 0",
        ),
        ("IOException", "No active nodes contain this block", ClusterUnreachable, "no DataNode for the content now"),
        ("AccessControlException", "Permission denied: user=ann", SubmissionRejected, "refused: Permission denied"),
        (
            "NSQuotaExceededException",
            "The NameSpace quota is exceeded",
            SubmissionRejected,
            "refused: The NameSpace quota",
        ),
    ],
)
def test_what_a_namenode_refuses_becomes_our_error(exception, message, error, says):
    with serving(namenode((403, exception, message))) as url:
        files = WebHdfs((url,), ANN, 10.0)
        with pytest.raises(error, match=says):
            files.makedirs("/user/ann", 0o700)


def test_failure_of_each_namenode_is_reported():
    """After a restart of both: the active one is in safe mode, which the standby's answer must not hide."""
    first, second = (
        namenode((403, "RetriableException", "Name node is in safe mode")),
        namenode((403, "StandbyException", "no writes")),
    )
    closed = closed_address()
    with serving(first) as url, serving(second) as standby, pytest.raises(ClusterUnreachable) as error:
        WebHdfs((url, standby, closed), ANN, 10.0).makedirs("/user/ann", 0o700)
    for said in (
        f"{url} is not active (Name node is in safe mode)",
        f"{standby} is not active (no writes)",
        f"{closed}: ",
    ):
        assert said in str(error.value)


def test_a_response_of_the_last_address_asks_no_other_address_again(monkeypatch):
    """A watcher reads responses in its event loop, which a look at a certificate would hold up."""
    monkeypatch.delattr("tf_yarn_ops.hadoop.transport.explain_failure")
    closed = closed_address()
    with serving(namenode((403, "StandbyException", "no writes"))) as url, pytest.raises(ClusterUnreachable) as error:
        WebHdfs((closed, url), ANN, 10.0).makedirs("/user/ann", 0o700)
    assert (
        f"{closed}: " in str(error.value)
        and "refused" in str(error.value)
        and f"{url} is not active" in str(error.value)
    )


@pytest.mark.parametrize(
    "status, kind, text",
    [
        (404, "text/html", "<HTML><body>Not Found</body></HTML>"),
        (200, "text/html", "<html>a wiki</html>"),
        (200, "application/json", "[]"),
        (200, "application/json", "{}"),
        (200, "application/json", '{"FileStatuses": {"FileStatus": ["x"]}}'),
    ],
)
def test_server_that_is_not_a_namenode_is_reported_with_its_address(status, kind, text):
    yarn = FakeYarn()
    yarn.faults.append(lambda method, path: (status, {"Content-Type": kind}, text))
    with serving(yarn) as url:
        files = WebHdfs((url,), ANN, 10.0)
        for look in (files.status, files.list):
            with pytest.raises(ClusterUnreachable, match=f"no NameNode answers at {url}.*Check webhdfs in site.yaml"):
                look("/user/ann")


def test_a_missing_file_is_none_and_no_error():
    with serving(namenode((404, "FileNotFoundException", "File does not exist"))) as url:
        files = WebHdfs((url,), ANN, 10.0)
        assert files.status("/none") is None and files.list("/none") == [] and files.read("/none") is None


def test_datanode_that_dies_while_answering_is_an_error_of_ours():
    yarn = FakeYarn()
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "text/plain", "Content-Length": "100"}, "begin."))
    with serving(yarn) as url, pytest.raises(ClusterUnreachable, match="reading /x"):
        WebHdfs((url,), ANN, 1.0).read("/x")


def test_the_other_namenode_is_asked_when_one_is_on_standby():
    active = FakeYarn()
    active.pages["/webhdfs/v1/x"] = ("application/json", '{"boolean": true}')
    with serving(namenode((403, "StandbyException", "standby"))) as standby, serving(active) as url:
        WebHdfs((standby, url), ANN, 10.0).makedirs("/x", 0o711)
    assert active.requests[-1][2] == {"op": "MKDIRS", "permission": "711", "user.name": "ann"}


@pytest.mark.slow
def test_looks_wait_a_third_as_long_as_writes():
    """A NameNode that hangs is reported in seconds; a slow write is awaited."""
    yarn = FakeYarn()
    yarn.pages["/webhdfs/v1/x"] = ("application/json", '{"boolean": true}')
    yarn.faults.append(slowly(1.5))
    with serving(yarn) as url:
        files = WebHdfs((url,), ANN, 1.0)
        files.makedirs("/x", 0o700)
        for look in (files.status, files.list):
            with pytest.raises(ClusterUnreachable, match="no NameNode answers"):
                look("/x")


def test_no_namenode_names_the_addresses_and_no_proxy_is_used(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(namenode((404, "FileNotFoundException", "none"))) as url:
        assert WebHdfs((url,), ANN, 10.0).status("/x") is None
    with pytest.raises(ClusterUnreachable, match=f"no NameNode answers at {url}.*webhdfs in site.yaml"):
        WebHdfs((url,), ANN, 10.0).status("/x")


@pytest.mark.parametrize(
    "exception, message",
    [
        ("ConnectException", "Connection refused"),
        ("IOException", "java.util.concurrent.ExecutionException: java.net.ConnectException: Connection refused"),
        (  # of a NameNode with its zone's KMS away
            "IOException",
            "Exception while contacting value generator \n\tat org.x.ValueQueue.getAtMost(ValueQueue.java:396)\nCaused by: "
            "java.net.ConnectException: Connection refused\n\tat java.base/x.Net.pollConnect(Native Method)\n",
        ),
        ("IOException", "Failed to connect to: http://kms:9600/kms/v1/keyversion/zone%400/_eek?eek_op=decrypt"),
        ("SocketTimeoutException", "Read timed out"),
        ("UnknownHostException", "kms.example"),
        ("NoRouteToHostException", "No route to host"),
    ],
)
@pytest.mark.parametrize("provider", ["", "kms://http@kms:9600/kms"])
def test_server_behind_the_file_system_that_is_away_is_an_outage(yarn, exception, message, provider):
    yarn.key_provider = provider
    document = {"RemoteException": {"exception": exception, "message": message}}
    yarn.faults.append(
        lambda method, path: (
            (403, {"Content-Type": "application/json"}, json.dumps(document)) if path != "/webhdfs/v1/" else None
        )
    )
    files = WebHdfs((yarn.url,), SimpleAuthentication("ann"), 5.0)
    with pytest.raises(
        KmsUnreachable if provider else ClusterUnreachable, match=f"{provider} does not answer|behind"
    ) as raised:
        files.makedirs("/x", 0o700)
    assert (raised.value.reason.exit_code, raised.value.reason.retryable) == (4, True)
    assert "value generator" not in str(raised.value)


def test_gateway_that_hides_the_answer_leads_to_the_key_server(yarn):
    """Seen at Knox: while a DataNode takes content, its refusal is an empty 500."""
    yarn.key_provider = "kms://http@kms:9600/kms"
    yarn.faults.append(lambda method, path: (500, {}, "") if path != "/webhdfs/v1/" else None)
    with pytest.raises(
        KmsUnreachable, match=r"answers 500.*If it lies in an encryption zone, check the KMS kms://http@kms"
    ):
        WebHdfs((yarn.url,), SimpleAuthentication("ann"), 5.0).makedirs("/x", 0o700)


@pytest.mark.parametrize("status, exception", [(500, "ConnectException"), (500, "")])
def test_httpfs_whose_namenode_is_away_is_an_outage(yarn, status, exception):
    """It gives the same answer to the request for the KMS, which must not lead to another one."""
    document = {"RemoteException": {"exception": exception, "message": "Connection refused"}} if exception else {}
    yarn.faults.append(lambda method, path: (status, {"Content-Type": "application/json"}, json.dumps(document)))
    with pytest.raises(ClusterUnreachable, match="behind the file system" if exception else "answers 500"):
        WebHdfs((yarn.url,), ANN, 5.0).makedirs("/x", 0o700)
    assert len(yarn.requests) == 2

"""DataNodes that can't be reached: NameNodes name others, for a client and for a container."""

import contextlib
import errno
import io
import json
import socket
import threading
from types import SimpleNamespace

import pytest

from support.fake_webhdfs import remote, serving_files
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common import datanodes
from tf_yarn_ops.runtime.common.file_storage import StorageRefused, put_whole
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.hdfs_file import HdfsReader, HdfsWriter

#: Where no server listens at the port of the good DataNode, 127.0.0.1.
BAD = "127.0.0.2"


def of_client(url):
    return WebHdfs((url,), SimpleAuthentication("ann"), 0.3)


def of_container(url):
    return Hdfs([url], "ann", {}, seconds=0.5)


def reads_whole(hdfs):
    return hdfs.read("/x") if isinstance(hdfs, WebHdfs) else HdfsReader(hdfs, "/x").readall()


#: What is done with the file that holds "content", and what it gives; "create" is the one that is not repeatable.
OPERATIONS = {
    "read": (reads_whole, b"content"),
    "read news": (lambda hdfs: hdfs.read_appended("/x", 2, 7, 9), b"ntent"),
    "replace": (lambda hdfs: hdfs.replace("/x", b"content", 0o600), None),
    "create": (lambda hdfs: hdfs.create("/new", b"more", 0o600), True),
}


@pytest.fixture
def names(monkeypatch):
    """Return the addresses of host names; all others that begin with dn are unknown."""
    known, resolve = {"dn2": "127.0.0.1"}, socket.getaddrinfo

    def getaddrinfo(host, *words, **options):
        name = host.decode() if isinstance(host, bytes) else host
        if name and name.startswith("dn") and name not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return resolve(known.get(name, name), *words, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture
def files(names):
    with serving_files() as served:
        served.files["/x"] = b"content"
        served.datanodes = {"dn1": BAD, "dn2": "127.0.0.1"}
        yield served


@pytest.mark.parametrize("kind", [of_client, of_container])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("service", ["NameNode", "a service that ignores the exclusion"])
@pytest.mark.parametrize("fault", ["refuses", "its name is unknown"])
def test_unreachable_datanode_is_left_out(files, names, kind, operation, service, fault):
    act, expected = OPERATIONS[operation]
    files.httpfs = service != "NameNode"
    if fault == "refuses":
        names["dn1"] = BAD
    hdfs = kind(files.url)
    for _ in range(3):
        files.files.pop("/new", None)
        assert act(hdfs) == expected


@pytest.mark.parametrize("kind", [of_client, of_container])
def test_later_requests_leave_out_the_datanode_at_once(files, names, kind):
    names["dn1"] = BAD
    hdfs = kind(files.url)
    for _ in range(4):
        hdfs.replace("/x", b"content", 0o600)
    asked = [query.get("excludedatanodes") for *_, query in files.requests if "step" not in query]
    assert BAD in asked and asked[asked.index(BAD) :] == [BAD] * (len(asked) - asked.index(BAD))


@pytest.mark.parametrize("operation", ["read", "replace"])
@pytest.mark.parametrize("first", [True, False])
def test_ended_token_is_refused_at_once_though_a_namenode_is_away(files, operation, first):
    act, _ = OPERATIONS[operation]
    files.faults.append(lambda *_: (403, "InvalidToken", "Token has expired, current time: now"))
    pair = [files.url, files.url.replace("127.0.0.1", BAD)]
    with pytest.raises(StorageRefused, match="has expired"):
        act(Hdfs(pair if first else pair[::-1], "ann", {}, seconds=5.0, patience=3.0))
    assert len(files.requests) == 1


@pytest.mark.parametrize("operation", ["read", "replace"])
def test_only_datanode_of_a_pair_is_tried_again_at_once(files, operation):
    """It was busy; that it is left out is no outage of the NameNodes, of which the standby refuses every call."""
    files.datanodes = {"dn2": "127.0.0.1"}
    act, expected = OPERATIONS[operation]
    with serving_files() as standby:
        standby.faults.append(lambda *_: (403, "StandbyException"))
        hdfs = Hdfs([standby.url, files.url], "ann", {}, seconds=5.0, patience=5.0)
        hdfs.leave_out(SimpleNamespace(url=f"http://dn2:{files.url.rpartition(':')[2]}/x"))
        assert act(hdfs) == expected
        assert len(standby.requests) < 3


@pytest.mark.parametrize("kind", [of_client, of_container])
@pytest.mark.parametrize("operation", ["read", "read news", "replace"])
def test_datanode_that_hangs_is_left_out(files, names, kind, operation):
    names["dn1"] = BAD
    act, expected = OPERATIONS[operation]
    with socket.create_server((BAD, int(files.url.rpartition(":")[2]))):
        hdfs = kind(files.url)
        for _ in range(2):
            assert act(hdfs) == expected


@pytest.mark.parametrize("kind", [of_client, of_container])
def test_write_that_may_have_been_done_is_not_repeated(files, names, kind):
    """A new file that a DataNode may have made would look like somebody else's."""
    names["dn1"] = BAD
    with socket.create_server((BAD, int(files.url.rpartition(":")[2]))):
        files.datanodes = {"dn1": BAD}
        with pytest.raises(Exception, match=r"dn1:.* does not answer"):
            kind(files.url).create("/new", b"more", 0o600)
    assert len([query for *_, query in files.requests if "step" not in query]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [of_client, of_container])
@pytest.mark.parametrize("operation", ["create", "replace"])
def test_write_may_take_longer_than_a_read(files, kind, operation):
    """A DataNode has a dead one in its pipeline, and writes without it after its own time limit."""
    files.datanodes, files.pause = {"dn2": "127.0.0.1"}, 1.0
    act, expected = OPERATIONS[operation]
    assert act(kind(files.url)) == expected


@pytest.mark.slow
def test_open_file_may_wait_longer_for_a_write_than_for_a_read(files):
    files.datanodes, files.pause = {"dn2": "127.0.0.1"}, 1.0
    with io.BufferedWriter(HdfsWriter(of_container(files.url), "/x")) as file:
        file.write(b"content")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [of_client, of_container])
def test_file_appears_whole_though_a_datanode_hangs_after_the_bytes(files, names, kind):
    names["dn1"] = BAD
    with socket.create_server((BAD, int(files.url.rpartition(":")[2]))):
        for number in range(2):
            assert put_whole(kind(files.url), f"/d/{number}", b"content")
    assert not put_whole(kind(files.url), "/d/0", b"other")
    assert files.files == {"/x": b"content", "/d/0": b"content", "/d/1": b"content"}


@pytest.mark.parametrize("kind", [of_client, of_container])
def test_datanode_that_comes_back_is_used_again(files, names, kind):
    """It is the only one, and was left out a moment ago."""
    names["dn1"] = BAD
    files.datanodes = {"dn1": BAD}
    hdfs = kind(files.url)
    with pytest.raises(Exception, match=r"dn1:.* does not answer"):
        hdfs.replace("/x", b"content", 0o600)
    names["dn1"] = "127.0.0.1"
    hdfs.replace("/x", b"content", 0o600)


def test_writer_leaves_out_an_unreachable_datanode(files, names):
    names["dn1"] = BAD
    hdfs = of_container(files.url)
    for _ in range(2):
        with io.BufferedWriter(HdfsWriter(hdfs, "/x", append=True)) as file:
            file.write(b"")
    assert files.files["/x"] == b"content"


@pytest.fixture
def impatient(monkeypatch):
    """Let a program try again at once."""
    monkeypatch.setattr("tf_yarn_ops.runtime.common.hdfs._PAUSE", 0.05)
    monkeypatch.setattr("tf_yarn_ops.runtime.common.hdfs_file._PAUSE", 0.05)


@pytest.mark.parametrize("kind", [of_client, of_container])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_datanode_that_is_back_replaces_the_next_lost_one(files, names, kind, operation):
    """A NameNode leads a client without exclusions to the DataNode of its own host, which may be the dead one."""
    act, expected = OPERATIONS[operation]
    hdfs = kind(files.url)
    hdfs._datanodes.add(f"dn2:{files.url.rpartition(':')[2]}")
    names["dn1"] = BAD
    assert act(hdfs) == expected


@pytest.mark.parametrize("append", [False, True])
def test_program_waits_for_a_datanode_to_write_to(files, names, impatient, append):
    """As for NameNodes: a minute, of which this test takes half a second."""
    files.datanodes = {"dn1": BAD}
    names["dn1"] = BAD
    hdfs = Hdfs([files.url], "ann", {}, seconds=0.5, patience=30.0)
    locates = hdfs._request

    def comes_back(*words):
        if len(files.requests) > 8:
            names["dn1"] = "127.0.0.1"
        return locates(*words)

    hdfs._request = comes_back
    with io.BufferedWriter(HdfsWriter(hdfs, "/x", append=append)) as file:
        file.write(b" and more")
    assert files.files["/x"] == (b"content and more" if append else b" and more")


@pytest.fixture
def leaving():
    """Return a function that starts a DataNode at the bad address, which takes so many bytes and is lost."""
    with contextlib.ExitStack() as stack:

        def start(files, most, answer=b""):
            server = stack.enter_context(socket.create_server((BAD, int(files.url.rpartition(":")[2]))))

            def serve():
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    server.close()
                    with connection:
                        while most > len(connection.recv(most, socket.MSG_PEEK)):
                            pass
                        connection.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()

        yield start


BAD_PIPELINE = json.dumps(remote("IOException", "All datanodes [dn1] are bad. Aborting...")).encode()
LOST = {
    "": b"",
    "it answers": b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(BAD_PIPELINE), BAD_PIPELINE),
}


@pytest.mark.parametrize("most", [1, 300, 70_000])
@pytest.mark.parametrize("answer", LOST)
def test_new_file_is_sent_again_when_a_datanode_is_lost(files, names, leaving, most, answer):
    """At its begin, in its content, and after its end."""
    names["dn1"] = BAD
    files.redirects = 1
    leaving(files, most, LOST[answer])
    hdfs = Hdfs([files.url], "ann", {}, seconds=5.0, patience=30.0)
    content = bytes(range(256)) * 300
    with io.BufferedWriter(HdfsWriter(hdfs, "/x"), 4096) as file:
        for at in range(0, len(content), 1000):
            file.write(content[at : at + 1000])
    assert files.files["/x"] == content


@pytest.mark.parametrize("error", [errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT, errno.EPIPE])
def test_content_comes_once_however_a_connection_is_lost(files, names, error):
    names["dn1"] = "127.0.0.1"
    raw = HdfsWriter(Hdfs([files.url], "ann", {}, seconds=0.5, patience=30.0), "/x")

    def fail(_content):
        raise OSError(error, "lost")

    raw._upload._connection.send = fail
    with io.BufferedWriter(raw) as file:
        file.write(b"sixteen bytes...")
        file.flush()
    assert files.files["/x"] == b"sixteen bytes..."


def test_refused_content_is_not_sent_again(files, names, monkeypatch):
    """A buffer offers what was refused again, at its next flush and at its close."""
    file = io.BufferedWriter(HdfsWriter(Hdfs([files.url], "ann", {}, seconds=5.0, patience=30.0), "/x"))
    file.write(b"sixteen bytes...")
    with monkeypatch.context() as patched:

        def refuse(_upload, _content):
            raise StorageRefused("the quota of /x is used up")

        patched.setattr("tf_yarn_ops.runtime.common.hdfs.Upload.send", refuse)
        with pytest.raises(StorageRefused, match="quota"):
            file.flush()
    for step in (file.flush, file.flush, file.close):
        with pytest.raises(StorageRefused, match="quota"):
            step()
    assert b"sixteen" not in files.files["/x"]


@pytest.mark.parametrize("fault", ["it was flushed", "it is too long"])
def test_file_that_is_not_kept_fails_when_a_datanode_is_lost(files, names, leaving, fault, monkeypatch):
    """A part of it would be lost, or come twice."""
    names["dn1"] = BAD
    files.redirects = fault == "it is too long"
    monkeypatch.setattr("tf_yarn_ops.runtime.common.hdfs_file.MAX_KEPT", 100)
    leaving(files, 300)
    hdfs = Hdfs([files.url], "ann", {}, seconds=5.0, patience=30.0)
    file = HdfsWriter(hdfs, "/x")
    with pytest.raises(StorageRefused, match="writing /x"):
        if fault == "it was flushed":
            file.write(b"first")
            file.flush()
        file.write(b"more" * 100)
        file.flush()
    for _ in range(2):
        with pytest.raises(StorageRefused, match="writing /x"):
            file.write(b"more")
    file.close()
    assert files.files["/x"] == (b"first" if fault == "it was flushed" else b"content")


def test_outage_is_forgotten_after_a_minute(names):
    now = [0.0]
    known = datanodes.UnreachableDatanodes(lambda: now[0])
    names["dn1"] = BAD
    known.add("dn1:9864")
    assert known.parameters() == {"excludedatanodes": BAD}
    now[0] = datanodes.OUTAGE_SECONDS
    assert known.parameters() == {}


def test_cause_is_kept_while_another_thread_forgets_datanodes(names):
    """Uploads share what they know: another one may forget all DataNodes between a request and its answer."""
    now = [0.0]
    known = datanodes.UnreachableDatanodes(lambda: now[0])
    names |= {"dn1": BAD, "dn2": "127.0.0.1"}

    def locate(excluded):
        for name, address in names.items():
            if address not in excluded.get("excludedatanodes", ""):
                return f"http://{name}:9864/"
        now[0] += datanodes.OUTAGE_SECONDS
        known.parameters()
        raise OSError("Failed to find datanode")

    def transfer(location, last_chance):
        raise datanodes.DatanodeUnreachable from ConnectionRefusedError(location)

    with pytest.raises(ConnectionRefusedError):
        known.follow(locate, transfer)


def test_written_file_has_a_position_and_no_other_place(files):
    with HdfsReader(of_container(files.url), "/x") as file:
        file.seek(-4, io.SEEK_END)
        assert (file.tell(), file.read()) == (3, b"tent")
    with HdfsWriter(of_container(files.url), "/x", append=True) as file:
        file.write(b" more")
        assert file.tell() == len(b"content more")
        with pytest.raises(io.UnsupportedOperation, match="/x: a file of HDFS is written in order"):
            file.seek(0)

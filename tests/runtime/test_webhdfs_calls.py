"""WebHDFS without a network: places, redirects and what answers mean; and servers that never end their answers."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_webhdfs import serving_files
from support.hostile_page import KINDS, hostile_page
from support.waiting import PATIENCE
from tf_yarn_ops.runtime.common import container_http
from tf_yarn_ops.runtime.common import webhdfs_calls as calls
from tf_yarn_ops.runtime.common.file_storage import StorageRefused
from tf_yarn_ops.runtime.common.hdfs import Hdfs, error_of

STATUS = {
    "pathSuffix": "x",
    "type": "FILE",
    "length": 1,
    "modificationTime": 2,
    "accessTime": 3,
    "owner": "ann",
    "permission": "600",
}


def remote(exception, message="no"):
    return json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()


class Scripted(calls.WebHdfsCalls):
    """A transport that answers from a list, and keeps what it is asked."""

    _refusal = StorageRefused

    def __init__(self, *answers):
        super().__init__()
        self.answers, self.requests = list(answers), []

    def _request(self, operation, path, parameters=None, tolerated=()):
        self.requests.append((operation, path, parameters))
        answer = self.answers.pop(0)
        return None if calls.is_tolerated(answer.exception()[0], tolerated) else answer

    def _namenodes(self):
        return ()

    def _probe(self, url, seconds):
        raise AssertionError(url)

    def _exchange(self, step, location, last_chance):
        self.requests.append((step.operation, location, step.data))
        answer = self.answers.pop(0)
        return None if calls.is_tolerated(answer.exception()[0], step.tolerated) else answer

    def _unexpected_answer(self, what, why):
        return StorageRefused(f"{what}: {why}")


def yes(**document):
    return calls.Answer(200, json.dumps(document).encode(), "http://nn")


def leading(url="http://dn:1/x?op=OPEN&offset=4&token=a"):
    return calls.Answer(307, b"", "http://nn", url)


@pytest.mark.parametrize(
    "operation, path, parameters, place",
    [
        ("MKDIRS", "/a b/c=1", {"permission": "700"}, "/webhdfs/v1/a%20b/c=1?op=MKDIRS&permission=700"),
        ("OPEN", "/a/../%41+?#&", {}, "/webhdfs/v1/%2541%2B%3F%23%26?op=OPEN"),
        (
            "RENAME",
            "/ä",
            {"destination": "/x&op=DELETE"},
            "/webhdfs/v1/%C3%A4?op=RENAME&destination=%2Fx%26op%3DDELETE",
        ),
    ],
)
def test_place_of_a_request(operation, path, parameters, place):
    assert calls.build_place(operation, path, parameters) == place


@pytest.mark.parametrize(
    "exception, error",
    [
        ("FileNotFoundException", FileNotFoundError),
        ("PathNotFoundException", FileNotFoundError),
        ("FileAlreadyExistsException", FileExistsError),
        ("ParentNotDirectoryException", NotADirectoryError),
        ("AccessControlException", PermissionError),
        ("IOException", StorageRefused),
    ],
)
def test_error_by_name_of_hadoops_exception(exception, error):
    found = error_of(calls.Answer(403, remote(exception, "a\n b")), "writing /x")
    assert type(found) is error and str(found) == f"writing /x: {exception}: a b"


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"7", b'{"RemoteException": 1}', b"[" * 100_000, b"\xff", b'{"a":' * 100_000]
)
def test_answer_that_is_not_webhdfs_is_a_refusal(content):
    answer = calls.Answer(200, content, "http://nn")
    assert answer.exception() == ("", "")
    for call in (lambda it: it.find("/x"), lambda it: it.list("/x"), lambda it: it.delete("/x")):
        with pytest.raises(StorageRefused, match="/x: http://nn does not answer as a NameNode"):
            call(Scripted(answer))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*STATUS, "FileStatus", "FileStatuses", "boolean"]), inner, max_size=4)
        ),
    )
)
def test_any_json_is_a_value_or_a_refusal(document):
    for field in (document, {"FileStatus": document}, {"FileStatus": {**STATUS, "length": document}}):
        answer = calls.Answer(200, json.dumps(field).encode(), "http://nn")
        for call in (lambda it: it.find("/x"), lambda it: it.list("/x"), lambda it: it.delete("/x")):
            try:
                call(Scripted(answer))
            except StorageRefused:
                continue


def test_write_takes_two_steps():
    files = Scripted(leading("http://dn/x"), calls.Answer(201, b""))
    assert files.create("/x", b"content", 0o600) is True
    assert files.requests == [
        ("CREATE", "/x", {"permission": "600", "overwrite": "false"}),
        ("CREATE", "http://dn/x", b"content"),
    ]


@pytest.mark.parametrize("exception", calls.TAKEN)
@pytest.mark.parametrize("step", [0, 1])
def test_taken_path_is_not_created(exception, step):
    taken = calls.Answer(403, remote(exception))
    assert Scripted(*[leading()][:step], taken).create("/x", b"1", 0o600) is False


@pytest.mark.parametrize("call", [lambda it: it.create("/x", b"1", 0o600), lambda it: it.append("/x", b"1")])
def test_write_without_redirect_has_taken_nothing(call):
    with pytest.raises(StorageRefused, match="writing /x: the answer is 200, and names no DataNode"):
        call(Scripted(calls.Answer(200, b"{}")))


@pytest.mark.parametrize(
    "offset, known, accepted, location",
    [(2, 5, 2, "offset=2"), (5, 5, 4, "offset=5"), (9, 5, 4, "offset=9"), (0, 0, 0, "offset=0")],
)
def test_news_lie_at_the_offset_of_the_redirect(offset, known, accepted, location):
    files = Scripted(leading(), calls.Answer(200, b"news and more"))
    assert files.read_appended("/x", offset, known, 4) in (b"news", b"news and more")
    assert files.requests[0] == (
        "OPEN", "/x", {"offset": accepted, "length": 4 + (offset - accepted if offset >= known else 0)}
    )  # fmt: skip
    assert location in files.requests[1][1] and "token=a" in files.requests[1][1]


@pytest.mark.parametrize("exception", ["FileNotFoundException", "IOException", "EOFException"])
@pytest.mark.parametrize("step", [0, 1])
def test_no_news_of_a_file_that_is_shorter(exception, step):
    assert Scripted(*[leading()][:step], calls.Answer(403, remote(exception))).read_appended("/x", 5, 5, 4) is None


def test_news_without_redirect_begin_at_the_offset():
    assert Scripted(calls.Answer(200, b"0news")).read_appended("/x", 5, 5, 4) == b"news"


@pytest.mark.parametrize("there, renamed", [(yes(FileStatus=STATUS), False), (None, None)], ids=["taken", "gone"])
def test_rename_that_is_refused(there, renamed):
    files = Scripted(yes(boolean=False), there or calls.Answer(404, remote("FileNotFoundException")))
    if renamed is None:
        with pytest.raises(StorageRefused, match="renaming /a: the file system refused to rename it to /b"):
            files.rename("/a", "/b")
    else:
        assert files.rename("/a", "/b") is renamed


READS = {
    "status": lambda files: files.status("/x"),
    "makedirs": lambda files: files.makedirs("/x", 0o700),
    "read": lambda files: files.read("/x", 0, 100),
    "news": lambda files: files.read_appended("/x", 0, 1, 100),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", READS)
def test_container_gives_up_a_namenode_without_end(monkeypatch, kind, call):
    """A NameNode that drips a byte a second would hold the coordinator for ever, one that floods fill its memory."""
    began = time.monotonic()
    monkeypatch.setattr(container_http, "ANSWER_BYTES", 1 << 20, raising=False)
    with hostile_page(kind) as url, pytest.raises(StorageRefused, match="/x: "):
        READS[call](Hdfs([url.rstrip("/")], "ann", {}, seconds=0.2))
    assert time.monotonic() - began < 30, "its deadline is 0.6 s"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ["read", "news", "replace"])
def test_container_gives_up_a_datanode_without_end(kind, call):
    began = time.monotonic()
    acts = {**READS, "replace": lambda files: files.replace("/x", b"1", 0o600)}
    with serving_files() as served, hostile_page(kind) as url:
        served.files["/x"] = b"content"
        served.datanodes = {"127.0.0.1": "127.0.0.1"}
        served.redirect = lambda *words: (307, {"Location": f"{url}?offset=0"}, {})
        with pytest.raises(StorageRefused, match=r"the DataNode .* does not answer"):
            acts[call](Hdfs([served.url], "ann", {}, seconds=0.2 * PATIENCE))
    assert time.monotonic() - began < 60

"""Copies of event files, by the reader of the containers and by that of the clients, from a small NameNode."""

import json
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import pytest

from support.http_server import Handler, running
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common.file_storage import StorageRefused
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.tokens import HDFS_KIND, Token, encode_token, write_length
from tf_yarn_ops.runtime.tensorboard import event_copies
from tf_yarn_ops.runtime.tensorboard.event_copies import EventCopies

BLOCK = 10
TRAIN = "/models/logs/train/events.out.tfevents.1.host"


class NameNode:
    """Files, and the lengths of those that are being written, as the NameNode knows them."""

    def __init__(self):
        self.files, self.known = {}, {}
        self.refusal = None  # the exception that it answers
        self.tokens = None  # the good ones
        self.seen = []  # (operation, offset)

    def answer(self, path, parameters):
        """Return status, location and document or bytes."""
        operation, offset = parameters["op"], int(parameters.get("offset", 0))
        self.seen.append((operation, offset))
        if self.refusal:
            return 403, "", self.remote(self.refusal)
        if self.tokens is not None and "datanode" not in parameters and parameters.get("delegation") not in self.tokens:
            return 403, "", self.remote("InvalidToken")
        if operation == "LISTSTATUS":
            below = {
                name[len(path.rstrip("/")) + 1 :].partition("/")
                for name in self.files
                if name.startswith(f"{path.rstrip('/')}/")
            }
            if not below:
                return 404, "", self.remote("FileNotFoundException")
            return 200, "", {"FileStatuses": {"FileStatus": [self.status(path, *parts) for parts in sorted(below)]}}
        if path not in self.files:
            return 404, "", self.remote("FileNotFoundException")
        content, known = self.files[path], self.known.get(path, len(self.files[path]))
        if "datanode" not in parameters:
            if offset and offset >= known:
                return 403, "", self.remote("IOException")
            query = urlencode(
                {**{name: value for name, value in parameters.items() if name != "delegation"}, "datanode": 1}
            )
            return 307, f"/webhdfs/v1{quote(path)}?{query}", {}
        if offset > len(content):
            return 403, "", self.remote("IOException")
        return 200, "", content[offset : offset + int(parameters["length"])]

    def status(self, path, name, slash, _):
        file = f"{path.rstrip('/')}/{name}"
        length = 0 if slash else self.known.get(file, len(self.files[file]))
        return {
            "pathSuffix": name,
            "type": "DIRECTORY" if slash else "FILE",
            "length": length,
            "blockSize": BLOCK,
            "modificationTime": 1,
            "accessTime": 1,
            "owner": "ann",
            "permission": "644",
        }

    @staticmethod
    def remote(exception):
        return {"RemoteException": {"exception": exception, "message": f"{exception} of a test"}}


@pytest.fixture
def serve():
    """Return a function that starts a `NameNode` with a ``url``."""

    def start():
        node = NameNode()

        class Requests(Handler):
            def do_GET(self):
                split = urlsplit(self.path)
                parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
                status, location, found = node.answer(unquote(split.path).removeprefix("/webhdfs/v1"), parameters)
                headers = {"Location": node.url + location} if location else {}
                if isinstance(found, bytes):
                    return self.reply(status, headers | {"Content-Type": "application/octet-stream"}, found)
                self.reply(status, headers | {"Content-Type": "application/json"}, json.dumps(found))

        node.url = f"http://127.0.0.1:{servers.enter_context(running(Requests)).server_port}"
        return node

    with ExitStack() as servers:
        yield start


@pytest.fixture
def node(serve):
    return serve()


@pytest.fixture(params=["container", "client"])
def mirror(request, node, tmp_path):
    """Return a mirror of /models by either reader."""
    if request.param == "container":
        source = Hdfs([node.url], "ann", {})
    else:
        source = WebHdfs((node.url,), SimpleAuthentication("ann", "ann"), 10.0)
    return EventCopies(source, "/models/", str(tmp_path / "copy"))


def copies(tmp_path):
    folder = tmp_path / "copy"
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_event_files_are_copied_and_nothing_else(mirror, node, tmp_path):
    node.files = {
        TRAIN: b"abc",
        "/models/model.bin": b"x",
        "/models/.tmp/a.tfevents.1": b"x",
        "/models/logs/plugins/profile/a b#1/host.pb": b"p",
        "/other/a.tfevents.1": b"x",
    }
    assert mirror.refresh() == 4
    assert copies(tmp_path) == {
        "logs/train/events.out.tfevents.1.host": b"abc",
        "logs/plugins/profile/a b#1/host.pb": b"p",
    }
    node.seen.clear()
    assert mirror.refresh() == 0
    assert {operation for operation, _ in node.seen} == {"LISTSTATUS"}, "nothing new is read"


def test_file_that_would_fill_the_disk_is_not_copied(mirror, node, tmp_path):
    node.files, node.known = {TRAIN: b"abc"}, {TRAIN: 10**18}
    with pytest.raises(OSError, match=r"the copy of logs/train/.* needs more than half of the free space"):
        mirror.refresh()
    assert set(copies(tmp_path).values()) == {b""}


@pytest.mark.slow
def test_a_file_that_grows_is_copied_from_where_it_was(mirror, node, tmp_path):
    node.files = {TRAIN: b"abc"}
    mirror.refresh()
    node.files[TRAIN] += b"def"
    assert mirror.refresh() == 3
    assert list(copies(tmp_path).values()) == [b"abcdef"]


@pytest.mark.slow
def test_open_file_is_copied_beyond_the_length_at_the_namenode(mirror, node, tmp_path):
    node.files, node.known = {TRAIN: b"abc"}, {TRAIN: 0}
    mirror.refresh()
    for grown in (b"abcdef", b"x" * BLOCK, b"x" * BLOCK, b"x" * (BLOCK + 5)):
        node.files[TRAIN] = (b"abcdef" + grown)[: len(grown)]
        node.known[TRAIN] = len(grown) // BLOCK * BLOCK
        mirror.refresh()
        assert list(copies(tmp_path).values()) == [node.files[TRAIN]]
    node.known.clear()  # it is closed
    assert mirror.refresh() == 0


@pytest.mark.slow
def test_a_file_that_was_written_anew_is_copied_anew(mirror, node, tmp_path):
    node.files = {TRAIN: b"a long file"}
    mirror.refresh()
    node.files[TRAIN] = b"short"
    mirror.refresh()
    mirror.refresh()
    assert list(copies(tmp_path).values()) == [b"short"]


@pytest.mark.slow
def test_a_file_that_is_gone_is_gone_from_the_copy(mirror, node, tmp_path):
    node.files = {TRAIN: b"abc", "/models/b.tfevents.2": b"d"}
    mirror.refresh()
    del node.files[TRAIN]
    mirror.refresh()
    assert list(copies(tmp_path)) == ["b.tfevents.2"]


def test_a_folder_that_does_not_exist_yet_is_empty(mirror, node, tmp_path):
    assert mirror.refresh() == 0
    node.files = {TRAIN: b"abc"}
    assert mirror.refresh() == 3


def test_a_large_file_is_copied_in_pieces(node, tmp_path, monkeypatch):
    monkeypatch.setattr(event_copies, "PIECE", 7)
    node.files = {TRAIN: bytes(range(100))}
    EventCopies(Hdfs([node.url], "ann", {}), "/models", str(tmp_path / "copy")).refresh()
    assert list(copies(tmp_path).values()) == [bytes(range(100))]


def test_the_active_namenode_is_found_and_asked_first_from_then_on(serve, tmp_path):
    standby, active = serve(), serve()
    standby.refusal = "StandbyException"
    active.files = {TRAIN: b"abc"}
    mirror = EventCopies(Hdfs([standby.url, active.url], "ann", {}), "/models", str(tmp_path / "copy"))
    assert mirror.refresh() == 3
    assert [operation for operation, _ in standby.seen].count("LISTSTATUS") == 1


def test_the_containers_own_token_proves_who_reads(node, tmp_path):
    texts = [
        encode_token(Token(b"id", password, HDFS_KIND, service))
        for password, service in ((b"p" * 20, "other:8020"), (b"secret-of-the-token!", "nn:8020"))
    ]
    tokens = [
        Token(b"id", b"p" * 20, HDFS_KIND, "other:8020"),
        Token(b"id", b"secret-of-the-token!", HDFS_KIND, "nn:8020"),
    ]
    parts = [
        part
        for token in tokens
        for part in (
            token.service.encode(),
            token.identifier,
            token.password,
            token.kind.encode(),
            token.service.encode(),
        )
    ]
    file = tmp_path / "tokens"
    file.write_bytes(b"HDTS\0" + write_length(2) + b"".join(write_length(len(part)) + part for part in parts))
    reader = Hdfs([node.url], "ann", {"HADOOP_TOKEN_FILE_LOCATION": str(file)})
    node.files, node.tokens = {TRAIN: b"abc"}, {texts[1]}
    assert EventCopies(reader, "/models", str(tmp_path / "copy")).refresh() == 3
    node.tokens = set()
    with pytest.raises(StorageRefused) as refused:
        reader.list("/models")
    assert str(refused.value) == f"listing /models: {node.url}: InvalidToken: InvalidToken of a test"


def test_unanswering_namenode_is_reported_without_the_request(tmp_path):
    with pytest.raises(StorageRefused, match=r"listing /models: http://127\.0\.0\.1:1: .*refused"):
        Hdfs(["http://127.0.0.1:1"], "ann", {}).list("/models")
    assert not Path(tmp_path / "copy").exists()

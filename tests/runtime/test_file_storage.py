"""The calls of a store mean the same on a local folder and in HDFS, for a container and for a client."""

import os

import pytest

from support.fake_webhdfs import serving_files
from tf_yarn_ops.errors import SubmissionRejected
from tf_yarn_ops.hadoop.filesystem import MountedFileSystem
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common.file_storage import LocalFolder, StorageRefused, put_whole, read_file_status
from tf_yarn_ops.runtime.common.hdfs import Hdfs


@pytest.fixture(params=["local folder", "mounted", "container", "client"])
def store(request, tmp_path):
    """Yield each store, and a function that returns the content of its file /d/x."""
    if request.param in ("local folder", "mounted"):
        files = {"local folder": LocalFolder, "mounted": MountedFileSystem}[request.param](str(tmp_path))
        files.makedirs("/d", 0o700)
        yield files, lambda: (tmp_path / "d/x").read_bytes()
    else:
        with serving_files() as served:
            files = (
                Hdfs([served.url], "ann", {})
                if request.param == "container"
                else WebHdfs((served.url,), SimpleAuthentication("ann"), 10.0)
            )
            yield files, lambda: served.files["/d/x"]


def test_create_keeps_the_file_that_has_the_path(store):
    files, content = store
    assert files.create("/d/x", b"1", 0o600) is True
    assert files.create("/d/x", b"2", 0o600) is False
    assert content() == b"1"


def test_replace_writes_over_the_file(store):
    files, content = store
    for text in (b"1", b"2"):
        files.replace("/d/x", text, 0o600)
        assert content() == text


def test_put_whole_writes_once_and_leaves_no_other_file(store):
    files, content = store
    assert put_whole(files, "/d/x", b"1") is True
    assert put_whole(files, "/d/x", b"2") is False
    assert content() == b"1"
    assert files.delete("/d/x") is True and files.delete("/d/x") is False


@pytest.mark.parametrize("kind", [LocalFolder, MountedFileSystem])
def test_list_without_a_file_that_is_gone_has_the_others(tmp_path, kind):
    """A link to nothing answers as a file does that is deleted, or renamed, while its folder is listed."""
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to("gone")
    (tmp_path / "c").touch()
    assert [status.name for status in kind(str(tmp_path)).list("/")] == ["a", "c"]


@pytest.mark.parametrize("kind", [LocalFolder, MountedFileSystem])
def test_link_of_another_user_has_its_own_owner(tmp_path, kind, monkeypatch):
    """Whoever may write a folder can link there to any file of its reader."""
    files, link = kind(str(tmp_path)), tmp_path / "foreign"
    link.symlink_to("/")
    (tmp_path / "own").symlink_to("/")
    if os.geteuid() == 0:
        os.lchown(link, 12345, 12345)
        owners = {"foreign": "12345", "own": tmp_path.owner()}
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
        owners = {"foreign": tmp_path.owner(), "own": tmp_path.owner()}
    assert {status.name: status.owner for status in files.list("/")} == owners
    found = files.status("/foreign")
    assert found.owner == owners["foreign"] and found.is_directory


@pytest.mark.parametrize("kind", [LocalFolder, MountedFileSystem])
def test_pipe_is_refused_and_keeps_no_reader(tmp_path, kind):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(OSError if kind is LocalFolder else SubmissionRejected, match="it is no regular file"):
        kind(str(tmp_path)).read("/x")


STATUS = {"pathSuffix": "a", "type": "FILE", "length": 1, "modificationTime": 1, "accessTime": 1, "owner": "ann"}


@pytest.mark.parametrize(
    "fields",
    [
        {"pathSuffix": 5},
        {"pathSuffix": "../../x"},
        {"pathSuffix": ".."},
        {"length": float("inf")},
        {"length": 10**400},
        {"accessTime": -(10**400)},
        {"blockSize": float("nan")},
    ],
)
def test_file_status_that_no_file_system_has_is_refused(fields):
    with pytest.raises(ValueError):
        read_file_status({**STATUS, "permission": "644", **fields})


class Pieces:
    """A content of 300,000 bytes in three pieces."""

    size = 300_000

    def __iter__(self):
        return iter([b"a" * 100_000, b"b" * 100_000, b"c" * 100_000])


@pytest.fixture(params=["local folder", "namenode", "httpfs"])
def container_store(request, tmp_path):
    """Yield each store of a container, and a function that returns the content of its file /x."""
    if request.param == "local folder":
        yield LocalFolder(str(tmp_path)), lambda: (tmp_path / "x").read_bytes()
    else:
        with serving_files() as served:
            served.httpfs = request.param == "httpfs"
            yield Hdfs([served.url], "ann", {}), lambda: served.files["/x"]


def test_content_in_pieces_is_written_and_appended(container_store):
    files, content = container_store
    assert files.create("/x", Pieces(), 0o600) is True
    assert content() == b"".join(Pieces())
    files.append("/x", Pieces())
    assert content() == b"".join(Pieces()) * 2


def test_append_to_a_missing_file_is_an_error(container_store):
    with pytest.raises(OSError):
        container_store[0].append("/x", b"1")


def test_move_over_replaces_the_target(container_store):
    files, content = container_store
    for text in (b"1", b"2"):
        files.create("/.x", text, 0o600)
        files.move_over("/.x", "/x")
        assert content() == text
    with pytest.raises(OSError):
        files.move_over("/.x", "/x")
    assert content() == b"2"


def test_a_local_folder_names_what_the_system_refuses(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageRefused, match=r"writing /file/x: Not a directory"):
        LocalFolder(str(tmp_path)).create("/file/x", b"", 0o600)
